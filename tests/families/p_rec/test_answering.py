"""Answers from votes: drawn once, paid once, the same with any worker and after any loss."""

import asyncio

import pytest

from discreet.families.questions import Recommendation
from discreet.families.p_rec.clients import read_history
from discreet.families.p_rec.history import Answered, History, Word
from discreet.errors import BudgetExhausted, InvalidArgument, NothingToRecommend
from discreet.state.memory import MemoryStore
from tests.families.p_rec.conftest import NAME, VOTERS, Bench, open_bench

pytestmark = pytest.mark.anyio


async def history_of(bench: Bench, client: str = "ann") -> History:
    recommender = await bench.recommender()
    who = bench.runtime.principals.client(NAME, client)
    content = await bench.runtime.store.read_page(page=recommender.history(who))
    history = History(content[:8])
    history.take(content[8:], position=0)
    return history


async def standing(bench: Bench, client: str, number: int) -> tuple[int, list[int]]:
    """Return what a round would look like to a client now, by this worker's memory."""
    runtime, recommender, desk = bench.runtime, await bench.recommender(), await bench.desk()
    who = runtime.principals.client(NAME, client)
    known = await read_history(runtime, recommender, who, desk.clients.get(who))
    assert known is not None
    so_far = known.history.run()
    assert so_far is not None
    credits = await known.credits_for(runtime, recommender, desk.ballots, so_far)
    ballots = await desk.ballots.of(runtime, recommender, number)
    seen = credits.standing(ballots=ballots, objects=2)
    return seen.credit, seen.votes.tolist()


class TestOneAnswer:
    async def test_everybodys_choice_is_recommended(self, bench: Bench) -> None:
        await bench.full_round("monday", "b")
        answer = await bench.ask()
        # The other object comes with probability gamma / 2 = 1/179.
        assert answer.round == "monday"
        assert answer.personalised
        assert answer.items in (("a",), ("b",))
        history = await history_of(bench)
        [run, answered] = history.records
        assert history.runs == 1
        assert isinstance(answered, Answered)
        assert answered.counted
        assert answered.word is Word.PENDING
        assert len(run.encode()) == 8

    async def test_votes_are_followed(self, bench: Bench) -> None:
        followed = 0
        for number in range(20):
            await bench.full_round(f"round {number}", "ab"[number % 2])
            answer = await bench.ask()
            right = answer.items == ("ab"[number % 2],)
            followed += right
            # Liking what nobody voted for would leave nobody to follow.
            await bench.tell(answer, float(right))
        # Each misses with probability 1/179; four of twenty with less than 1e-5.
        assert followed > 16

    async def test_a_retry_is_never_a_second_draw(self, bench: Bench) -> None:
        await bench.round("monday")
        first = await bench.ask()
        seen = {(await bench.ask()).items for _ in range(40)}
        seen |= {(await bench.ask(round="monday")).items for _ in range(40)}
        assert seen == {first.items}
        await bench.tell(first, 0.0)
        assert (await bench.ask(round="monday")).items == first.items

    async def test_a_run_is_charged_when_it_begins_and_not_again(self, bench: Bench) -> None:
        charge = (await bench.recommender()).charge
        await bench.full_round("one")
        await bench.full_round("two")
        first = await bench.ask()
        assert first.privacy.epsilon == charge.nano_epsilon / 1e9
        assert first.privacy.spent is not None
        assert first.privacy.spent.epsilon == pytest.approx(charge.nano_epsilon / 1e9)
        assert first.privacy.spent.delta == pytest.approx(1e-9)
        again = await bench.ask()
        assert again.privacy.epsilon == 0
        await bench.tell(first, 1.0)
        second = await bench.ask()
        assert second.round == "two"
        assert second.privacy.epsilon == 0
        assert second.privacy.spent == first.privacy.spent

    async def test_rounds_come_in_their_order(self, bench: Bench) -> None:
        for name in ("c", "a", "b"):
            await bench.round(name)
        named = await bench.ask(round="b")
        await bench.tell(named, 1.0)
        order = []
        for _ in range(2):
            answer = await bench.ask()
            order.append(answer.round)
            await bench.tell(answer, 0.0)
        assert order == ["c", "a"]
        with pytest.raises(NothingToRecommend):
            await bench.ask()

    async def test_without_enough_voters_the_answer_is_chance(self, bench: Bench) -> None:
        items = []
        for number in range(40):
            await bench.full_round(f"round {number}", "a", voters=20)
            answer = await bench.ask()
            assert not answer.personalised
            items.append(answer.items)
            await bench.tell(answer, 1.0)
        # All forty alike by chance: 2**-39.
        assert len(set(items)) == 2

    async def test_once_ended_a_run_uses_no_votes_again(self, bench: Bench) -> None:
        await bench.full_round("few", voters=20)
        await bench.tell(await bench.ask(), 1.0)
        for number in range(3):
            await bench.full_round(f"many {number}")
            answer = await bench.ask()
            assert not answer.personalised
            await bench.tell(answer, 1.0)
        history = await history_of(bench)
        assert history.runs == 1

    async def test_a_new_run_begins_after_the_horizon(self, bench: Bench) -> None:
        await bench.round("first")
        await bench.tell(await bench.ask(), 1.0)
        for number in range(59):
            await bench.round(f"round {number}")
            await bench.tell(await bench.ask(), 1.0)
        assert (await history_of(bench)).runs == 1
        await bench.full_round("next")
        answer = await bench.ask()
        history = await history_of(bench)
        assert history.runs == 2
        assert answer.personalised
        assert answer.privacy.epsilon == (await bench.recommender()).charge.nano_epsilon / 1e9
        assert history.length == 8 + 8 * 63  # a mark, two runs, 61 answers

    async def test_passing_on_is_dislike(self, bench: Bench) -> None:
        await bench.full_round("one")
        await bench.full_round("two")
        await bench.ask(round="one")
        await bench.ask(round="two")
        [_, first, second] = (await history_of(bench)).records
        assert isinstance(first, Answered)
        assert isinstance(second, Answered)
        assert first.word is Word.PASSED
        assert second.word is Word.PENDING

    async def test_what_makes_no_sense_here_is_refused(self, bench: Bench) -> None:
        await bench.round("monday")
        for field, value in (
            ("limit", 2),
            ("exclude", ["a"]),
            ("candidates", ["a"]),
            ("context", [0.5]),
            ("category", "x"),
            ("round", "tuesday"),
        ):
            with pytest.raises(InvalidArgument) as refusal:
                await bench.ask(**{field: value})  # type: ignore[arg-type]
            assert refusal.value.argument == field


class TestCredits:
    async def test_voters_who_contradict_lose_their_say(self, bench: Bench) -> None:
        # A third of the voters is always wrong; after one liked round they count no more, and in
        # the next the wrong object is as good as gone.
        wrong = {f"v{number}" for number in range(100)}
        liked = 0
        for number in range(12):
            name, good, bad = f"r{number}", "ab"[number % 2], "ba"[number % 2]
            await bench.round(name)
            await bench.votes(
                name, {f"v{at}": bad if f"v{at}" in wrong else good for at in range(VOTERS)}
            )
            answer = await bench.ask()
            assert answer.personalised
            liked += answer.items == (good,)
            await bench.tell(answer, float(answer.items == (good,)))
        assert liked > 8
        desk = await bench.desk()
        known = desk.clients.get(bench.runtime.principals.client(NAME, "ann"))
        assert known is not None
        assert known.credits is not None
        assert known.credits.counting.sum() == VOTERS - 100

    async def test_a_lost_cache_is_rebuilt_to_the_same_credits(self, memory: MemoryStore) -> None:
        # Credit for many contradictions; what that costs does not matter here.
        bench = await open_bench(
            memory,
            radius=4,
            diversity=8,
            privacy={"budget": {"epsilon": 1000.0, "delta": 1e-6}},
        )
        for number in range(9):
            name = f"r{number}"
            await bench.round(name)
            voted = {f"v{at}": "ab"[(at >> (number % 3)) % 2] for at in range(VOTERS)}
            voted |= {f"w{at}": "a" for at in range(number, 300)}
            await bench.votes(name, voted)
            answer = await bench.ask()
            if number < 8:
                await bench.tell(answer, float(number % 2))
        other = await open_bench(memory)
        assert (await other.ask()).items == (await bench.ask()).items
        # The two take turns: each goes on from where it was, over what the other has written.
        for number, worker in enumerate((other, bench, other, bench)):
            await worker.full_round(f"late {number}", voters=300 + number)
            answer = await worker.ask(round=f"late {number}")
            if number % 2:
                await worker.tell(answer, 1.0)
        fresh = await open_bench(memory)
        found = [await standing(worker, "ann", 8) for worker in (bench, other, fresh)]
        assert found[0] == found[1] == found[2]
        assert VOTERS < found[0][0] < 25 * (VOTERS + 300)
        for one in (bench, other, fresh):
            await one.runtime.close()


class TestSeveralWorkers:
    async def test_many_questions_at_once_get_one_draw_and_one_debit(
        self, bench: Bench, memory: MemoryStore
    ) -> None:
        others = [await open_bench(memory) for _ in range(3)]
        await bench.round("monday")
        answers = await asyncio.gather(*(one.ask() for one in (bench, *others) for _ in range(5)))
        assert len({answer.items for answer in answers}) == 1
        charge = (await bench.recommender()).charge
        spent = answers[0].privacy.spent
        last = (await bench.ask()).privacy.spent
        assert spent is not None
        assert last is not None
        assert last.epsilon == pytest.approx(charge.nano_epsilon / 1e9)
        assert len((await history_of(bench)).records) == 2
        for one in others:
            await one.runtime.close()

    async def test_a_draw_that_came_second_is_thrown_away(
        self, bench: Bench, memory: MemoryStore
    ) -> None:
        other = await open_bench(memory)
        await bench.full_round("monday")
        await bench.full_round("tuesday")
        await bench.tell(await bench.ask(), 1.0)
        await other.ask(round="monday")
        # Both believe that tuesday is unanswered; the store takes one of them.
        shown = await asyncio.gather(bench.ask(), other.ask(), bench.ask(), other.ask())
        assert len({answer.items for answer in shown}) == 1
        assert len((await history_of(bench)).records) == 3
        await other.runtime.close()


class TestBudget:
    async def test_without_budget_new_runs_are_answered_by_chance(
        self, memory: MemoryStore
    ) -> None:
        bench = await open_bench(memory)
        charge = (await bench.recommender()).charge.nano_epsilon / 1e9
        runs = int(20 / charge)
        assert runs >= 2
        await bench.full_round("monday")
        answers = [await bench.ask(f"client {number}") for number in range(runs + 3)]
        assert [answer.personalised for answer in answers] == [True] * runs + [False] * 3
        assert answers[-1].privacy.epsilon == 0
        # A run that was paid for goes on.
        await bench.tell(answers[0], float(answers[0].items == ("a",)))
        await bench.full_round("tuesday")
        assert (await bench.ask("client 0")).personalised
        await bench.runtime.close()

    async def test_or_refused(self, memory: MemoryStore) -> None:
        bench = await open_bench(
            memory,
            privacy={"budget": {"epsilon": 5.0, "delta": 1e-6}, "on_exhausted": "refuse"},
        )
        charge = (await bench.recommender()).charge.nano_epsilon / 1e9
        await bench.full_round("monday")
        runs = int(5 / charge)
        assert runs >= 1
        for number in range(runs):
            assert (await bench.ask(f"client {number}")).personalised
        with pytest.raises(BudgetExhausted):
            await bench.ask("one more")
        await bench.runtime.close()

    async def test_zcdp_pays_for_more_runs(self, memory: MemoryStore) -> None:
        bench = await open_bench(
            memory,
            privacy={"budget": {"epsilon": 20.0, "delta": 1e-6}, "accounting": "zcdp"},
        )
        recommender = await bench.recommender()
        limit, charge = recommender.population_terms.limit, recommender.charge
        runs = min(limit.nano_rho // charge.nano_rho, limit.pico_delta // charge.pico_delta)
        assert runs > 2
        assert limit.pico_delta == 500_000
        await bench.full_round("monday")
        answers: list[Recommendation] = [await bench.ask(f"c{at}") for at in range(runs + 1)]
        assert [answer.personalised for answer in answers] == [True] * runs + [False]
        spent = answers[-1].privacy.spent
        assert spent is not None
        assert spent.epsilon <= 20
        await bench.runtime.close()

    async def test_removing_and_making_anew_opens_no_fresh_ledger(self, bench: Bench) -> None:
        await bench.full_round("monday")
        before = (await bench.ask()).privacy.spent
        document = (await bench.recommender()).document
        await bench.runtime.registry.remove(NAME)
        await bench.runtime.registry.put(NAME, document)
        await bench.full_round("monday")
        after = await bench.ask()
        assert before is not None
        assert after.privacy.spent is not None
        assert after.privacy.spent.epsilon == pytest.approx(2 * before.epsilon)


class TestClosing:
    async def test_the_first_answer_ends_the_voting(self, bench: Bench) -> None:
        await bench.full_round("monday")
        await bench.ask()
        with pytest.raises(InvalidArgument) as refusal:
            await bench.votes("monday", {"late": "a"})
        assert refusal.value.argument == "round"

    async def test_or_closing_does(self, memory: MemoryStore) -> None:
        bench = await open_bench(memory, voting_ends="when_closed")
        await bench.full_round("monday")
        await bench.full_round("tuesday")
        with pytest.raises(NothingToRecommend):
            await bench.ask()
        with pytest.raises(InvalidArgument) as refusal:
            await bench.ask(round="monday")
        assert refusal.value.argument == "round"
        await bench.votes("monday", {"late": "a"})
        desk, recommender = await bench.desk(), await bench.recommender()
        one = await desk.rounds.named(bench.runtime, recommender, "tuesday")
        await desk.rounds.close(bench.runtime, recommender, one)
        assert (await bench.ask()).round == "tuesday"
        await bench.runtime.close()
