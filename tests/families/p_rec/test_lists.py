"""Answers of several objects, and rounds of different sizes: what is shown, kept and charged."""

import asyncio
from dataclasses import replace

import pytest

from discreet.errors import InvalidArgument, RewardConflict
from discreet.families.p_rec.run_parameters import VotingParameters, parameters_for
from discreet.families.questions import Answered
from tests.families.p_rec.conftest import VOTERS, Bench, InterruptedStore, stored_document

pytestmark = pytest.mark.anyio

LISTS = {
    "objects": 4,
    "most_shown": 3,
    "peers": 190,
    "client_runs": {"most": 5},
    "privacy": {"budget": {"epsilon": 400.0, "delta": 1e-6}},
}


def lists() -> Bench:
    return Bench(stored=stored_document(**LISTS))


async def split_round(bench: Bench, name: str, objects: str = "abcd") -> None:
    """A round whose first two objects have nearly all votes, in halves."""
    await bench.round(name, tuple(objects))
    await bench.votes(name, {f"v{number}": objects[number % 2] for number in range(VOTERS)})


async def credit_of(bench: Bench, probe: str) -> int:
    """The voters' credit with Ann, all of them voting, once she goes on."""
    await bench.full_round(probe)
    own = await bench.recommender.clients.prepare(bench.recommender.principal("ann"), probe)
    assert own.view is not None
    return own.view.tally.credit


async def test_a_list_holds_different_objects_and_is_shown_again_unchanged() -> None:
    bench = lists()
    await split_round(bench, "monday")
    first = await bench.ask(limit=3)
    assert len(set(first.decision.items)) == 3
    assert set(first.decision.items) <= set("abcd")
    assert first.decision.personalised
    other = bench.another()
    assert (await other.ask(limit=3)).decision.items == first.decision.items
    # Fewer of the same, and never a further draw.
    assert (await other.ask(limit=1)).decision.items == first.decision.items[:1]
    single = await bench.ask("bob", limit=1)
    assert (await bench.ask("bob", limit=3)).decision.items == single.decision.items


async def test_a_run_of_lists_is_charged_for_every_object_before_its_first_answer() -> None:
    bench = lists()
    await split_round(bench, "monday")
    answer = await bench.ask(limit=3)
    voting = VotingParameters(objects=4, rounds=60, shown=3)
    run = parameters_for(voting=voting, peers=190, voters=1000, delta=1e-9)
    assert bench.epsilon(answer) == pytest.approx(run.event.epsilon, rel=1e-6)
    alone = parameters_for(voting=replace(voting, shown=1), peers=190, voters=1000, delta=1e-9)
    assert bench.epsilon(answer) > 1.5 * alone.event.epsilon
    # A caller who asks for one object pays the same: the next answer may be a list.
    single = await bench.ask("bob")
    assert bench.epsilon(single) == bench.epsilon(answer)


@pytest.mark.parametrize("limit", [4, 100])
async def test_more_objects_than_are_paid_for_are_refused(limit: int) -> None:
    bench = lists()
    await split_round(bench, "monday")
    with pytest.raises(InvalidArgument, match="most_shown") as refusal:
        await bench.ask(limit=limit)
    assert refusal.value.argument == "limit"
    assert (await bench.ask()).decision.personalised  # nothing was closed, stored or lost


@pytest.mark.parametrize("objects", ["ab", "abc", "abcd"])
async def test_rounds_have_from_two_objects_to_the_documents_most(objects: str) -> None:
    bench = lists()
    await split_round(bench, "monday", objects)
    answer = await bench.ask(limit=3)
    assert len(set(answer.decision.items)) == min(3, len(objects))
    assert set(answer.decision.items) <= set(objects)
    assert answer.decision.personalised


async def test_the_price_of_a_run_does_not_depend_on_the_sizes_of_its_rounds() -> None:
    charged = set()
    for objects in ("ab", "abc", "abcd"):
        bench = lists()
        await split_round(bench, "monday", objects)
        charged.add(bench.epsilon(await bench.ask(limit=3)))
    assert len(charged) == 1


@pytest.mark.parametrize("objects", ["a", "abcde"])
async def test_other_sizes_are_refused(objects: str) -> None:
    bench = lists()
    with pytest.raises(InvalidArgument, match="from 2 to 4"):
        await bench.round("monday", tuple(objects))
    assert await bench.rounds.count() == 0


async def test_feedback_names_the_object_of_a_list() -> None:
    bench = lists()
    await split_round(bench, "monday")
    answer = await bench.ask(limit=3)
    with pytest.raises(InvalidArgument) as refusal:
        await bench.give_feedback(answer, 1.0)
    assert refusal.value.argument == "item"
    (left,) = set("abcd") - set(answer.decision.items)
    with pytest.raises(InvalidArgument):
        await bench.another().give_feedback(answer, 1.0, item=left)
    second = answer.decision.items[1]
    assert not (await bench.another().give_feedback(answer, 1.0, item=second)).duplicate
    assert (await bench.give_feedback(answer, 1.0, item=second)).duplicate
    with pytest.raises(RewardConflict):
        await bench.give_feedback(answer, 0.0, item=second)


async def test_a_list_is_shown_until_something_is_liked_or_all_is_disliked() -> None:
    bench = lists()
    for name in ("one", "two", "three"):
        await split_round(bench, name)
    first = await bench.ask(limit=2)
    await bench.give_feedback(first, 0.0, item=first.decision.items[0])
    assert (await bench.ask(limit=2)).decision.round == "one"
    await bench.give_feedback(first, 0.0, item=first.decision.items[1])
    second = await bench.ask(limit=2)
    assert second.decision.round == "two"
    await bench.give_feedback(second, 1.0, item=second.decision.items[1])
    assert (await bench.ask(limit=2)).decision.round == "three"
    # The client went on: what was not said then is not taken any more.
    with pytest.raises(RewardConflict):
        await bench.give_feedback(second, 1.0, item=second.decision.items[0])


async def given(bench: Bench, *rewards: float | None) -> Answered:
    """A list of "a" and "b", in either order, and opinions on them; None is none."""
    await split_round(bench, "monday", "ab")
    answer = await bench.ask(limit=2)
    for item, reward in zip(answer.decision.items, rewards, strict=True):
        if reward is not None:
            await bench.give_feedback(answer, reward, item=item)
    return answer


@pytest.mark.parametrize(
    ("rewards", "left"),
    [
        # One like spares half of the voters; a second one spares nobody else.
        ((1.0, None), VOTERS // 2),
        ((1.0, 0.0), VOTERS // 2),
        ((1.0, 1.0), VOTERS // 2),
        ((0.0, 1.0), VOTERS // 2),
        ((None, 1.0), VOTERS // 2),
        ((0.0, 0.0), 0),
        ((None, None), 0),
        ((0.0, None), 0),
    ],
)
async def test_every_list_that_may_reveal_something_takes_credit(
    rewards: tuple[float | None, ...], left: int
) -> None:
    bench = lists()
    await given(bench, *rewards)
    assert await credit_of(bench, "probe") == left
    # The same from the page alone.
    assert await credit_of(bench.another(), "another") == left


async def test_an_opinion_that_comes_while_the_next_answer_is_stored_is_not_lost() -> None:
    store = InterruptedStore()
    bench = Bench(store, stored_document(**LISTS))
    other = bench.another()
    first = await given(bench, None, None)
    await split_round(bench, "tuesday")
    # Just before the next answer is written, another worker takes a like of the last object.
    store.before_write = (32, other.give_feedback(first, 1.0, item=first.decision.items[1]))
    await bench.ask(limit=2, round="tuesday")
    history = await bench.history()
    found = history.find(0)
    assert found is not None
    assert found[1].liked == found[1].chosen[1]


async def test_two_workers_show_one_list() -> None:
    bench = lists()
    workers = [bench, bench.another(), bench.another()]
    await split_round(bench, "monday")
    shown = await asyncio.gather(*(one.ask(limit=3) for one in workers for _ in range(4)))
    assert len({one.decision.items for one in shown}) == 1
    assert len((await bench.history()).records) == 1 + 3


async def test_the_second_object_follows_the_votes() -> None:
    # Two of four objects have the votes of like-minded voters, six to four.
    budget = {"budget": {"epsilon": 4e4, "delta": 1e-3}}
    bench = Bench(stored=stored_document(**{**LISTS, "privacy": budget}))
    await bench.round("monday", tuple("abcd"))
    await bench.votes("monday", {f"v{at}": "a" if at % 5 < 3 else "b" for at in range(VOTERS)})
    shown = [(await bench.ask(f"client {at}", limit=2)).decision.items for at in range(60)]
    # At random a pair would be these two in one case of six.
    assert sum(set(items) == {"a", "b"} for items in shown) > 50
    assert sum(items[0] == "a" for items in shown) > 50
