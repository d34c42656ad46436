"""A client's opinion: counted once, contradicted never."""

import pytest

from discreet.errors import DiscreetError, InvalidArgument, RewardConflict, UnknownDecision
from discreet.families.p_rec.history import ClientOpinion
from discreet.families.p_rec.learning import AnswerPlace, opinion_of
from discreet.families.questions import Lesson, Receipt
from discreet.state.stores import NO_CHARGE
from tests.families.p_rec.conftest import Bench

pytestmark = pytest.mark.anyio


async def test_the_same_opinion_again_is_a_duplicate(bench: Bench) -> None:
    await bench.round("monday")
    answer = await bench.ask()
    assert await bench.give_feedback(answer, 1.0) == Receipt(duplicate=False, learned=True)
    assert await bench.give_feedback(answer, 1.0) == Receipt(duplicate=True, learned=True)
    # The answer shown again is the same decision.
    assert (await bench.give_feedback(await bench.ask(round="monday"), 1.0)).duplicate


async def test_another_opinion_is_a_conflict(bench: Bench) -> None:
    await bench.round("monday")
    answer = await bench.ask()
    await bench.give_feedback(answer, 0.0)
    with pytest.raises(RewardConflict):
        await bench.give_feedback(answer, 1.0)
    assert not (await bench.history()).pending


async def test_feedback_after_going_on_must_be_dislike(bench: Bench) -> None:
    await bench.round("monday")
    await bench.round("tuesday")
    answer = await bench.ask(round="monday")
    await bench.ask(round="tuesday")
    assert (await bench.give_feedback(answer, 0.0)).duplicate
    with pytest.raises(RewardConflict):
        await bench.give_feedback(answer, 1.0)


@pytest.mark.parametrize("reward", [0.5, 0.999, 1e-9])
async def test_an_opinion_is_like_or_dislike(bench: Bench, reward: float) -> None:
    await bench.round("monday")
    answer = await bench.ask()
    with pytest.raises(InvalidArgument) as refusal:
        await bench.give_feedback(answer, reward)
    assert refusal.value.argument == "reward"
    assert not (await bench.give_feedback(answer, 1.0)).duplicate


def test_rewards_mean_opinions() -> None:
    assert opinion_of(1.0) is ClientOpinion.LIKED
    assert opinion_of(0.0) is ClientOpinion.DISLIKED


async def test_the_item_must_be_the_one_that_was_shown(bench: Bench) -> None:
    await bench.round("monday")
    answer = await bench.ask()
    (item,) = answer.decision.items
    with pytest.raises(InvalidArgument) as refusal:
        await bench.give_feedback(answer, 1.0, item="b" if item == "a" else "a")
    assert refusal.value.argument == "item"
    # Also in a worker that has not met the round.
    assert not (await bench.another().give_feedback(answer, 1.0, item=item)).duplicate


async def test_an_erased_client_has_no_recommendations(bench: Bench) -> None:
    await bench.round("monday")
    answer = await bench.ask()
    assert await bench.recommender.forget("ann") == 1
    with pytest.raises(UnknownDecision):
        await bench.give_feedback(answer, 1.0)
    # The same client again has a history of its own, which is paid for anew.
    await bench.ask()
    with pytest.raises(UnknownDecision):
        await bench.give_feedback(answer, 1.0)


async def test_many_succeed_or_fail_each_by_itself(bench: Bench) -> None:
    await bench.round("monday")
    shown = {client: await bench.ask(client) for client in ("ann", "bob")}
    receipts = await bench.recommender.record_feedback(
        [
            bench.feedback(shown["ann"], 1.0),
            bench.feedback(shown["bob"], 0.5, "bob"),
            bench.feedback(shown["ann"], 1.0),
            bench.feedback(shown["ann"], 0.0),
        ]
    )
    assert receipts[0] == Receipt(duplicate=False)
    assert isinstance(receipts[1], InvalidArgument)
    assert receipts[2] == Receipt(duplicate=True)
    assert isinstance(receipts[3], RewardConflict)
    assert not isinstance(receipts[0], DiscreetError)


async def test_it_adds_to_no_sums_and_costs_nothing_whatever_it_is(bench: Bench) -> None:
    await bench.round("monday")
    pending = bench.feedback(await bench.ask(), 1.0).pending
    for reward in (0.0, 1.0):
        assert bench.recommender.learn(pending, 0, reward) == Lesson({}, NO_CHARGE)


async def test_no_other_clients_answer_depends_on_it() -> None:
    # Two worlds that differ in what Ann likes: Bob, with the same noise, sees the same.
    seen = []
    for liked in (0.0, 1.0):
        bench = Bench(seed=3)
        shown = []
        for number in range(6):
            await bench.round(f"r{number}")
            await bench.votes(f"r{number}", {f"v{at}": "ab"[at % 2] for at in range(400)})
            await bench.give_feedback(await bench.ask("ann"), liked, "ann")
            # Ann's draws use up noise, so that Bob asks another worker.
            bob = Bench(bench.store, bench.stored, seed=number)
            answer = await bob.ask("bob")
            await bob.give_feedback(answer, 1.0, "bob")
            shown.append((answer.decision.items, answer.outcome, bob.spent(answer)))
        seen.append(shown)
    assert seen[0] == seen[1]


@pytest.mark.parametrize(("size", "length"), [(1, 16), (2, 17), (200, 17)])
def test_a_place_survives_its_token(size: int, length: int) -> None:
    # The place of one object is as it was before there were lists: workers of both kinds read it.
    place = AnswerPlace(b"12345678", 70_000, 2**31, size)
    assert AnswerPlace.decode(place.encode()) == place
    assert len(place.encode()) == length
