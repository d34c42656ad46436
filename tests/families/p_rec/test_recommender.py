"""Answers from votes: drawn once, paid once, the same with any worker and after any loss."""

import asyncio
import copy
from collections.abc import Awaitable, Sequence
from typing import Any

import pytest

from discreet.errors import (
    BudgetExhausted,
    DiscreetError,
    InvalidArgument,
    NothingToRecommend,
    StoreUnavailable,
)
from discreet.families.budgets import UNPROTECTED
from discreet.families.observer import AnswerOutcome
from discreet.families.p_rec.clients import NO_RUN_LEFT, TOO_FEW_PEERS
from discreet.families.p_rec.history import AnswerRecord, ClientOpinion
from discreet.families.p_rec.votes import Votes
from discreet.families.questions import Answered, Ask
from discreet.research.noise import SeededNoise
from discreet.state.memory import MemoryStore
from discreet.state.ready import Failed
from discreet.state.stores import PageWrite, Written
from tests.families.p_rec.conftest import (
    NAME,
    VOTERS,
    Bench,
    InterruptedStore,
    recommender_of,
    stored_document,
)

pytestmark = pytest.mark.anyio


class TestOneAnswer:
    async def test_everybodys_choice_is_recommended(self, bench: Bench) -> None:
        await bench.full_round("monday", "b")
        answer = await bench.ask()
        assert answer.decision.round == "monday"
        assert answer.decision.personalised
        assert answer.decision.reason is None
        assert answer.outcome is AnswerOutcome.PERSONALISED
        assert answer.decision.items == ("b",)
        history = await bench.history()
        [run, answered] = history.records
        assert history.runs == 1
        assert isinstance(answered, AnswerRecord)
        assert answered.used_votes
        assert answered.opinion is ClientOpinion.PENDING
        assert len(run.encode()) == 8
        assert bench.observer.counts["client_runs", "begun"] == 1

    async def test_votes_are_followed(self, bench: Bench) -> None:
        followed = 0
        for number in range(20):
            await bench.full_round(f"round {number}", "ab"[number % 2])
            answer = await bench.ask()
            right = answer.decision.items == ("ab"[number % 2],)
            followed += right
            # Liking what nobody voted for would leave nobody to follow.
            await bench.give_feedback(answer, float(right))
        # Each misses with probability gamma / 2 = 1/179; four of twenty with less than 1e-5.
        # Without votes, 17 or more of twenty would have probability 0.0013.
        assert followed > 16

    async def test_a_retry_is_never_a_second_draw(self, bench: Bench) -> None:
        await bench.round("monday")
        first = await bench.ask()
        again = [await bench.ask() for _ in range(40)]
        again += [await bench.ask(round="monday") for _ in range(40)]
        assert {one.decision for one in again} == {first.decision}
        assert {one.outcome for one in again} == {AnswerOutcome.REPEATED}
        await bench.give_feedback(first, 0.0)
        assert (await bench.ask(round="monday")).decision == first.decision

    async def test_a_run_is_charged_when_it_begins_and_not_again(self, bench: Bench) -> None:
        await bench.full_round("one")
        await bench.full_round("two")
        first = await bench.ask()
        assert bench.epsilon(first) == bench.run_epsilon
        report = bench.recommender.report(first)
        assert report.spent is not None
        assert report.spent.epsilon == pytest.approx(bench.run_epsilon)
        assert report.spent.delta == pytest.approx(1e-9)
        assert bench.epsilon(await bench.ask()) == 0
        await bench.give_feedback(first, 1.0)
        second = await bench.ask()
        assert second.decision.round == "two"
        assert bench.epsilon(second) == 0
        assert bench.spent(second) == bench.spent(first)

    async def test_rounds_come_in_their_order(self, bench: Bench) -> None:
        for name in ("c", "a", "b"):
            await bench.round(name)
        await bench.give_feedback(await bench.ask(round="b"), 1.0)
        order = []
        for _ in range(2):
            answer = await bench.ask()
            order.append(answer.decision.round)
            await bench.give_feedback(answer, 0.0)
        assert order == ["c", "a"]
        with pytest.raises(NothingToRecommend):
            await bench.ask()

    async def test_without_enough_voters_the_answer_is_random(self, bench: Bench) -> None:
        items = []
        for number in range(40):
            await bench.full_round(f"round {number}", "a", voters=20)
            answer = await bench.ask()
            assert not answer.decision.personalised
            assert answer.decision.reason == TOO_FEW_PEERS
            assert answer.outcome is AnswerOutcome.DEGRADED
            items.append(answer.decision.items)
            await bench.give_feedback(answer, 1.0)
        # All forty alike by chance: 2**-39.
        assert len(set(items)) == 2
        assert bench.observer.counts["client_runs", "ended"] == 1

    async def test_once_ended_a_run_uses_no_votes_again(self, bench: Bench) -> None:
        await bench.full_round("few", voters=20)
        await bench.give_feedback(await bench.ask(), 1.0)
        for number in range(3):
            await bench.full_round(f"many {number}")
            answer = await bench.ask()
            assert not answer.decision.personalised
            await bench.give_feedback(answer, 1.0)
        assert (await bench.history()).runs == 1

    async def test_a_new_run_begins_after_the_horizon(self) -> None:
        bench = Bench(stored=stored_document(client_runs={"most": 2}))
        for number in range(60):
            await bench.round(f"round {number}")
            await bench.give_feedback(await bench.ask(), 1.0)
        assert (await bench.history()).runs == 1
        await bench.full_round("next")
        answer = await bench.ask()
        history = await bench.history()
        assert history.runs == 2
        assert answer.decision.personalised
        assert bench.epsilon(answer) == bench.run_epsilon
        assert bench.spent(answer) == pytest.approx(2 * bench.run_epsilon)
        assert history.length == 8 + 8 * 63  # a mark, two runs, 61 answers

    async def test_going_on_counts_as_dislike(self, bench: Bench) -> None:
        await bench.full_round("one")
        await bench.full_round("two")
        await bench.ask(round="one")
        await bench.ask(round="two")
        [_, first, second] = (await bench.history()).records
        assert isinstance(first, AnswerRecord)
        assert isinstance(second, AnswerRecord)
        assert first.opinion is ClientOpinion.SKIPPED
        assert second.opinion is ClientOpinion.PENDING

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("limit", 2),
            ("exclude", ["a"]),
            ("candidates", ["a"]),
            ("context", [0.5]),
            ("category", "x"),
            ("round", "tuesday"),
        ],
    )
    async def test_what_makes_no_sense_here_is_refused_and_nothing_is_stored(
        self, bench: Bench, field: str, value: Any
    ) -> None:
        await bench.round("monday")
        before = _stored(bench)
        with pytest.raises(InvalidArgument) as refusal:
            await bench.ask(**{field: value})
        assert refusal.value.argument == field
        assert _stored(bench) == before

    async def test_many_questions_succeed_or_fail_each_by_itself(self, bench: Bench) -> None:
        await bench.full_round("monday")
        asks = [
            Ask(recommender=NAME, client=client, round=name)
            for client, name in (("ann", "monday"), ("bob", "nowhere"), ("cec", None))
        ]
        questions = [bench.recommender.question(ask) for ask in asks]
        first, second, third = await bench.recommender.answer(questions, [None] * 3)
        assert isinstance(second, InvalidArgument)
        for one in (first, third):
            assert isinstance(one, Answered)
            assert bench.spent(one) == pytest.approx(2 * bench.run_epsilon)

    async def test_a_client_asking_twice_at_once_is_answered_in_turn(self, bench: Bench) -> None:
        await bench.full_round("one")
        await bench.full_round("two")
        questions = [
            bench.recommender.question(Ask(recommender=NAME, client="ann", round=name))
            for name in ("one", "two", "one")
        ]
        answers = await bench.recommender.answer(questions, [None] * 3)
        shown = [one.decision.round for one in answers if isinstance(one, Answered)]
        assert shown == ["one", "two", "one"]
        assert (await bench.history()).runs == 1


def _stored(bench: Bench) -> Any:
    store = bench.store
    assert isinstance(store, MemoryStore)
    held = (store._pages, store._rosters, store._blobs, store._queues, store._ledgers)
    return copy.deepcopy(held)


class TestDecide:
    async def test_a_function_of_its_arguments_alone(self, bench: Bench) -> None:
        await bench.full_round("monday", "b")
        shown = await bench.ask("begun", round="monday")
        await bench.give_feedback(shown, float(shown.decision.items == ("b",)), "begun")
        await bench.full_round("tuesday", "b")
        questions = [
            bench.recommender.question(Ask(recommender=NAME, client=client, round="tuesday"))
            for client in ("begun", "new")
        ]
        own: Sequence[Any] = await bench.recommender.read_own(questions)
        # Another recommender over an empty store decides alike.
        stranger = Bench().recommender
        model = bench.recommender.current.model
        for seed in range(20):
            decided = [
                one.decide(model, questions, own, SeededNoise(seed))
                for one in (bench.recommender, bench.recommender, stranger)
            ]
            assert decided[0] == decided[1] == decided[2]
            paid, unpaid = decided[0]
            # Whoever's run was not paid for is answered without the votes.
            assert paid.personalised
            assert not unpaid.personalised
            assert unpaid.reason == NO_RUN_LEFT

    async def test_an_answer_that_stands_is_not_drawn_again(self, bench: Bench) -> None:
        await bench.full_round("monday")
        shown = await bench.ask()
        question = bench.recommender.question(Ask(recommender=NAME, client="ann"))
        own: Sequence[Any] = await bench.recommender.read_own([question])
        for seed in range(20):
            run, noise = bench.recommender.run, SeededNoise(seed)
            assert bench.recommender.decide(run, [question], own, noise) == [shown.decision]


class TestCredits:
    async def test_voters_who_contradict_lose_their_say(self, bench: Bench) -> None:
        # A quarter of the voters is always wrong; after one liked round they count no more, and in
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
            assert answer.decision.personalised
            liked += answer.decision.items == (good,)
            await bench.give_feedback(answer, float(answer.decision.items == (good,)))
        assert liked > 8
        clients = bench.recommender.clients
        state = await clients.read(bench.recommender.principal("ann"))
        assert state is not None
        assert state.credits is not None
        assert state.credits.counting.sum() == VOTERS - 100


class TestSeveralWorkers:
    async def test_many_questions_at_once_get_one_draw_and_one_debit(self, bench: Bench) -> None:
        workers = [bench, *(bench.another() for _ in range(3))]
        await bench.round("monday")
        answers = await asyncio.gather(*(one.ask() for one in workers for _ in range(5)))
        assert len({answer.decision.items for answer in answers}) == 1
        assert bench.spent(await bench.ask()) == pytest.approx(bench.run_epsilon)
        assert len((await bench.history()).records) == 2

    async def test_a_draw_that_came_second_is_thrown_away(self) -> None:
        # While this worker draws, another one answers the same client.
        store = InterruptedStore()
        bench = Bench(store)
        await bench.full_round("monday")
        await bench.full_round("tuesday")
        await bench.give_feedback(await bench.ask(), 1.0)
        shown: list[Answered] = []

        async def answer_elsewhere() -> None:
            shown.append(await bench.another().ask())

        store.before_write = (8, answer_elsewhere())
        answer = await bench.ask()
        assert [one.outcome for one in shown] == [AnswerOutcome.PERSONALISED]
        assert answer.outcome is AnswerOutcome.REPEATED
        assert answer.decision == shown[0].decision
        assert len((await bench.history()).records) == 3

    async def test_going_on_loses_against_an_opinion_that_comes_meanwhile(self) -> None:
        store = InterruptedStore()
        bench = Bench(store)
        for name in ("one", "two", "three"):
            await bench.full_round(name)
        first = await bench.ask(round="one")
        liked = float(first.decision.items == ("a",))
        # Two records at once are an answer that goes past a pending one.
        store.before_write = (16, bench.another().give_feedback(first, liked))
        second = await bench.ask(round="two")
        assert second.decision.personalised
        [_, given, _] = (await bench.history()).records
        assert isinstance(given, AnswerRecord)
        assert given.opinion in (ClientOpinion.LIKED, ClientOpinion.DISLIKED)

    async def test_memory_goes_with_the_recommender_object(self, bench: Bench) -> None:
        await bench.full_round("one")
        await bench.give_feedback(await bench.ask(), 1.0)
        fresh = bench.another()
        assert len(fresh.recommender.clients._states) == 0
        assert len(fresh.votes_of._ballots) == 0
        assert len(bench.recommender.clients._states) == 1


class FailingStore(MemoryStore):
    """Loses the connection at the next write of so many bytes."""

    fails_at = 0

    def write_pages(
        self, writes: Sequence[PageWrite]
    ) -> Awaitable[Sequence[Written | DiscreetError]]:
        if self.fails_at in [len(each.content) for each in writes]:
            self.fails_at = 0
            return Failed(StoreUnavailable())
        return super().write_pages(writes)


class TestLostStore:
    async def test_a_debit_whose_answer_was_not_stored_is_not_made_again(self) -> None:
        store = FailingStore()
        bench = Bench(store)
        await bench.full_round("monday")
        store.fails_at = 16  # a run and its first answer
        with pytest.raises(StoreUnavailable):
            await bench.ask()
        assert (await bench.history()).records == []
        answer = await bench.ask()
        assert bench.spent(answer) == pytest.approx(bench.run_epsilon)
        assert bench.epsilon(answer) == bench.run_epsilon
        assert answer.decision.personalised

    async def test_nothing_is_answered_if_the_debit_fails(self) -> None:
        class NoLedgers(MemoryStore):
            def spend(self, debits: Any) -> Any:
                return Failed(StoreUnavailable())

        bench = Bench(NoLedgers())
        await bench.full_round("monday")
        with pytest.raises(StoreUnavailable):
            await bench.ask()
        assert (await bench.history()).records == []


class TestBudget:
    def _limited(self, epsilon: float, **changes: Any) -> Bench:
        privacy = {"budget": {"epsilon": epsilon, "delta": 1e-6}, **changes}
        return Bench(stored=stored_document(privacy=privacy))

    def _runs(self, bench: Bench) -> int:
        """How many runs the budget pays for, by either rule."""
        limit, charge = bench.recommender.voters_budget.limit, bench.recommender.run_charge
        assert limit.pico_delta == 500_000
        return min(
            limit.pico_delta // charge.pico_delta,
            max(limit.nano_epsilon // charge.nano_epsilon, limit.nano_rho // charge.nano_rho),
        )

    async def test_without_budget_new_runs_are_answered_at_random(self) -> None:
        bench = self._limited(20.0)
        runs = self._runs(bench)
        assert runs == int(20 / bench.run_epsilon) >= 2
        await bench.full_round("monday")
        answers = [await bench.ask(f"client {number}") for number in range(runs + 3)]
        personalised = [answer.decision.personalised for answer in answers]
        assert personalised == [True] * runs + [False] * 3
        assert answers[-1].decision.reason == NO_RUN_LEFT
        assert answers[-1].outcome is AnswerOutcome.DEGRADED
        assert bench.epsilon(answers[-1]) == 0
        assert bench.spent(answers[-1]) <= 20
        assert bench.observer.counts["client_runs", "unpaid"] == 3
        # The reason stays with the answer when it is shown again.
        again = await bench.ask(f"client {runs}", round="monday")
        assert again.decision.reason == NO_RUN_LEFT
        # A run that was paid for goes on.
        liked = float(answers[0].decision.items == ("a",))
        await bench.give_feedback(answers[0], liked, "client 0")
        await bench.full_round("tuesday")
        assert (await bench.ask("client 0")).decision.personalised

    async def test_cheap_runs_are_paid_for_by_the_sum_of_rhos(self) -> None:
        bench = Bench(
            stored=stored_document(
                peers=1500, voters=2000, privacy={"budget": {"epsilon": 4.0, "delta": 1e-6}}
            )
        )
        runs = self._runs(bench)
        assert runs > 2 * int(4 / bench.run_epsilon)
        await bench.full_round("monday", voters=2000)
        answers = [await bench.ask(f"client {number}") for number in range(runs + 1)]
        personalised = [answer.decision.personalised for answer in answers]
        assert personalised == [True] * runs + [False]
        assert bench.spent(answers[-1]) <= 4

    async def test_or_refused(self) -> None:
        bench = self._limited(5.0, on_exhausted="refuse")
        await bench.full_round("monday")
        runs = self._runs(bench)
        assert runs >= 1
        for number in range(runs):
            assert (await bench.ask(f"client {number}")).decision.personalised
        with pytest.raises(BudgetExhausted):
            await bench.ask("one more")
        # Nothing of the refused client but an empty history is there.
        assert (await bench.history("one more")).records == []

    async def test_a_wider_budget_pays_for_clients_who_were_unpaid(self, bench: Bench) -> None:
        tight = self._limited(5.0)
        await tight.full_round("monday")
        for number in range(self._runs(tight)):
            await tight.ask(f"client {number}")
        last = await tight.ask("late")
        assert not last.decision.personalised
        await tight.give_feedback(last, 1.0, "late")
        wider = tight.stored.with_document(stored_document().document)
        other = Bench(tight.store, wider)
        await other.full_round("tuesday")
        answer = await other.ask("late")
        assert answer.decision.personalised
        # What was random stays labelled as such.
        assert (await other.ask("late", round="monday")).decision.reason == NO_RUN_LEFT

    async def test_the_ledger_follows_the_name(self, bench: Bench) -> None:
        await bench.full_round("monday")
        before = bench.spent(await bench.ask())
        await bench.recommender.erase()
        anew = Bench(bench.store)
        assert anew.stored.generation != bench.stored.generation
        await anew.full_round("monday")
        assert anew.spent(await anew.ask("bob")) == pytest.approx(2 * before)

    async def test_the_budget_shown_is_the_voters(self, bench: Bench) -> None:
        await bench.full_round("monday")
        answer = await bench.ask()
        answers, feedback = await bench.recommender.budgets("anybody")
        assert answers.spent == bench.recommender.report(answer).spent
        assert feedback == UNPROTECTED

    def test_a_budget_that_pays_for_no_run_is_refused(self) -> None:
        with pytest.raises(InvalidArgument) as refusal:
            self._limited(0.1)
        assert refusal.value.argument == "privacy.budget"


class TestClosing:
    async def test_the_first_answer_ends_the_voting(self, bench: Bench) -> None:
        await bench.full_round("monday")
        await bench.ask()
        with pytest.raises(InvalidArgument) as refusal:
            await bench.votes("monday", {"late": "a"})
        assert refusal.value.argument == "round"

    async def test_or_closing_does(self) -> None:
        bench = Bench(stored=stored_document(voting_ends="when_closed"))
        await bench.full_round("monday")
        await bench.full_round("tuesday")
        with pytest.raises(NothingToRecommend):
            await bench.ask()
        with pytest.raises(InvalidArgument) as refusal:
            await bench.ask(round="monday")
        assert refusal.value.argument == "round"
        await bench.votes("monday", {"late": "a"})
        await bench.rounds.close(await bench.rounds.require("tuesday"))
        assert (await bench.ask()).decision.round == "tuesday"


class TestLife:
    def test_what_cannot_be_served_is_refused_before_it_is_stored(self) -> None:
        for changes, argument in (
            ({"peers": 11}, "peers"),
            ({"peers": 2000}, "peers"),
            ({"horizon": 3, "radius": 1}, "horizon"),
            ({"horizon": 60, "radius": 40}, "horizon"),
            ({"objects": 200, "horizon": 1_000_000, "peers": 1200, "voters": 2000}, "sharpness"),
        ):
            with pytest.raises(InvalidArgument) as refusal:
                recommender_of(MemoryStore(), stored_document(**changes))
            assert refusal.value.argument == argument

    def test_it_offers_rounds_and_votes(self, bench: Bench) -> None:
        assert bench.recommender.part(Votes) is bench.votes_of

    def test_no_model_is_ever_released(self, bench: Bench) -> None:
        one = bench.recommender
        assert not one.due(1e12)
        model = one.release(one.current.model, {}, SeededNoise(1))
        assert one.decode(one.encode(model)) == one.current.model

    async def test_erasing_leaves_nothing_but_the_ledger(self, bench: Bench) -> None:
        await bench.full_round("monday")
        for number in range(3):
            await bench.ask(f"client {number}")
        await bench.recommender.forget("v1")
        await bench.recommender.erase()
        pages, rosters, blobs, queues, ledgers = _stored(bench)
        assert not pages
        assert not rosters
        assert not blobs
        assert not any(queues.values())
        assert ledgers[bench.recommender.population].answers.nano_epsilon > 0

    async def test_forgetting_a_client_erases_history_and_votes(self, bench: Bench) -> None:
        await bench.round("monday")
        await bench.votes("monday", {"ann": "a"})
        await bench.ask("ann")
        assert await bench.recommender.forget("ann") == 2
        assert await bench.recommender.forget("ann") == 0
        assert (await bench.history("ann")).mark == b""

    async def test_another_worker_notices_that_a_client_was_erased(self, bench: Bench) -> None:
        other = bench.another()
        await bench.full_round("monday")
        first = await other.ask()
        await other.ask()  # now its memory holds the run and the answer
        await bench.recommender.forget("ann")
        again = await other.ask()
        assert again.decision.note != first.decision.note
        # The history begins anew, and the count of the client's runs does not.
        assert again.outcome is AnswerOutcome.DEGRADED
        assert bench.spent(again) == pytest.approx(bench.run_epsilon)

    async def test_rounds_are_counted_once_in_a_while_and_voters_never(self, bench: Bench) -> None:
        await bench.recommender.tend()
        assert bench.observer.gauges["rounds", "open"] == 0
        await bench.full_round("one")
        await bench.full_round("two")
        await bench.ask(round="one")
        await bench.recommender.tend()
        assert bench.observer.gauges["rounds", "open"] == 0
        bench.clock.now += 5
        await bench.recommender.tend()
        assert bench.observer.gauges == {
            ("rounds", "open"): 1,
            ("rounds", "closed"): 1,
        }
