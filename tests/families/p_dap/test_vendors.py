"""Vendors as arms: what is told, what is charged, what is believed, and what happens without."""

import math
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.families.p_dap.adaptive_partition import AdaptivePartition
from discreet.families.p_dap.cell import REWARD_STEPS, count_field, sum_field
from discreet.families.p_dap.contract import Request
from discreet.families.p_dap.forwarding import Forwarded, RunningSum, centre_of
from discreet.decisions.clients import budget_of
from discreet.decisions.feedback import Feedback, feedback_batch, give_feedback
from discreet.families.p_dap.document import VENDOR
from discreet.families.p_dap.forwards import open_handle
from discreet.families.p_dap.vendors import (
    ENOUGH,
    MERGED,
    TRAINED,
    TRAINING,
    WEIGHT,
    books_of,
    worth,
)
from discreet.decisions.recommend import Ask, recommend_batch
from discreet.decisions.runtime import Runtime
from discreet.decisions.tokens import open_decision
from discreet.errors import InvalidArgument, RewardConflict
from discreet.research.noise import SeededNoise
from discreet.state.memory import MemoryStore
from tests.decisions.conftest import Clock, document
from tests.families.p_dap.neighbours import (
    MANY,
    Wire,
    ask,
    ask_for_vendor,
    asking,
    open_runtime,
)

pytestmark = pytest.mark.anyio


@dataclass
class Pair:
    a: Runtime
    b: Runtime
    wire: Wire
    clock: Clock


@pytest.fixture
async def pair(anyio_backend: str, clock: Clock) -> AsyncIterator[Pair]:
    wire = Wire("a")
    b = await open_runtime(clock)
    a = await open_runtime(clock, wire)
    wire.others["b"] = b
    await b.registry.put("films", document(items=["b1", "b2", "b3"]))
    await a.registry.put("films", asking())
    yield Pair(a, b, wire, clock)
    await a.close()
    await b.close()


async def spent(runtime: Runtime, client: str = "x") -> float:
    standing = await budget_of(runtime, recommender="films", client=client)
    assert standing.spent is not None
    return standing.spent.epsilon


async def cell_of(runtime: Runtime, token: str) -> list[int]:
    address = open_decision(runtime.sealer, token).decision.address
    (vector,) = await runtime.store.read(addresses=[address.key])
    return [int(value) for value in vector]


# What is told


async def test_a_vendor_is_told_the_centre_of_the_cell_and_never_the_context(pair: Pair) -> None:
    for context in ([0.3, 0.6], [0.9999, 0.0], [1.0, 1.0]):
        await ask_for_vendor(pair.a, context=context)
    assert {forward.centre for forward in pair.wire.forwards} == {(0.5, 0.5)}
    assert {forward.level for forward in pair.wire.forwards} == {0}
    assert {forward.epsilon for forward in pair.wire.forwards} == {0.5}


@pytest.mark.parametrize(
    ("context", "level", "centre"),
    [
        ([0.0, 0.49], 1, (0.25, 0.25)),
        ([0.5, 1.0], 1, (0.75, 0.75)),
        ([0.3, 0.6], 2, (0.375, 0.625)),
        ([1.0, 0.25], 16, (1 - 2**-17, 0.25 + 2**-17)),
    ],
)
def test_centres(context: list[float], level: int, centre: tuple[float, ...]) -> None:
    assert centre_of(context=context, level=level, segments=2) == centre


def test_a_centre_lies_in_the_cell_that_the_learner_means() -> None:
    learner = AdaptivePartition(generation=b"g", dimensions=3, arms=1, segments=3)
    rng = np.random.default_rng(5)
    for context in rng.random((200, 3)):
        for level in (0, 1, 5, 16):
            centre = np.array(centre_of(context=context, level=level, segments=3))
            here = learner.partition.route(context).key(level)
            assert learner.partition.route(centre).key(level) == here


async def test_a_handle_is_fresh_sealed_and_opened_by_the_vendor_only(pair: Pair) -> None:
    handles = [(await ask_for_vendor(pair.a)).items[0] for _ in range(20)]
    assert len(set(handles)) == 20
    assert len({len(handle) for handle in handles}) == 1
    opened = [await open_handle(pair.b, handle=handle) for handle in handles]
    assert {one.item for one in opened} <= {"b1", "b2", "b3"}
    assert len({one.item for one in opened}) > 1
    with pytest.raises(Exception, match="not issued"):
        await open_handle(pair.a, handle=handles[0])


# Who may be asked


async def test_vendors_are_asked_only_for_single_answers_from_the_whole_catalogue(
    pair: Pair,
) -> None:
    await pair.a.registry.put("films", asking(items=["own", "more"]))
    for _ in range(50):
        assert (await ask(pair.a, limit=2)).vendor is None
        assert (await ask(pair.a, candidates=["own", "more"])).vendor is None
    assert pair.wire.forwards == []
    assert (await ask_for_vendor(pair.a, exclude=["more"])).vendor == "b"


async def test_a_vendor_that_cannot_be_reached_is_no_arm(pair: Pair) -> None:
    pair.wire.hidden = True
    answers = [await ask(pair.a) for _ in range(50)]
    assert all(answer.items == ("own",) for answer in answers)
    # One arm is left, so nothing is released and nothing is paid.
    assert await spent(pair.a) == 0.0


async def test_no_item_can_take_a_vendors_slot(pair: Pair) -> None:
    with pytest.raises(ValueError, match="control characters"):
        document(items=[VENDOR + "b"])
    with pytest.raises(InvalidArgument):
        await ask(pair.a, candidates=[VENDOR + "b"])
    assert (await pair.a.registry.find("films")).vendors == {"b": 1}


async def test_a_vendors_slot_outlives_changes_and_is_never_given_away(pair: Pair) -> None:
    await pair.a.registry.put("films", asking(vendors=[]))
    await pair.a.registry.put("films", asking(items=["own", "new"], vendors=[]))
    await pair.a.registry.put("films", asking(items=["own", "new"]))
    found = await pair.a.registry.find("films")
    assert found.slot_of == {"own": 0, "new": 2}
    assert found.vendors == {"b": 3}


# What is charged


async def test_both_draws_are_charged_whether_or_not_the_vendor_was_drawn(pair: Pair) -> None:
    seen = set()
    for number in range(MANY):
        answer = await ask(pair.a, client=str(number))
        assert await spent(pair.a, str(number)) == 1.0
        assert answer.privacy.epsilon == 1.0
        seen.add(answer.vendor)
        if len(seen) == 2:
            return
    raise AssertionError(f"only {seen} were drawn")


async def test_without_vendors_the_whole_epsilon_is_ours(pair: Pair) -> None:
    await pair.a.registry.put(
        "films",
        asking(
            items=["own", "more"],
            privacy={"epsilon": 1.0, "vendor_share": 0.25, "budget": {"epsilon": 1_000.0}},
        ),
    )
    found = await pair.a.registry.find("films")
    assert isinstance(found.learner, AdaptivePartition)
    assert isinstance(found.joint_learner, AdaptivePartition)
    assert (found.learner.epsilon, found.joint_learner.epsilon) == (1.0, 0.75)
    assert found.vendor_epsilon == 0.25
    pair.wire.hidden = True
    await ask(pair.a, client="alone")
    assert await spent(pair.a, "alone") == 1.0


def law(learner: AdaptivePartition, vector: list[int], arms: int) -> dict[int, Fraction]:
    """The exact law of an answer in a cell with these statistics."""
    request = Request(context=np.array([0.5]), available=np.arange(arms, dtype=np.intp))
    plan = learner.plan(request=request)
    state = {address: np.zeros(0, dtype=np.int64) for address in plan.reads}
    state[plan.reads[0]] = np.array(vector, dtype=np.int64)
    found = learner.find(state=state, plan=plan, request=request)
    return found.mixture.law()  # type: ignore[union-attr]


def statistics(best: int, arms: int) -> list[int]:
    """A cell in which one arm is clearly the best."""
    vector = [40]
    for arm in range(arms):
        vector += [10, 10 * REWARD_STEPS if arm == best else 0]
    return vector


@pytest.mark.parametrize("share", [0.5, 0.25])
def test_the_two_draws_together_keep_exactly_what_is_charged(share: float) -> None:
    """Every pair of cells, every (arm, vendor's item), in rationals: at most e^epsilon, and more
    than either part alone, so that neither charge could be left out."""
    epsilon = 2.0
    ours = AdaptivePartition(
        generation=b"a", dimensions=1, arms=3, epsilon=(1 - share) * epsilon, exploration_rate=0.0
    )
    theirs = AdaptivePartition(
        generation=b"b", dimensions=1, arms=4, epsilon=share * epsilon, exploration_rate=0.0
    )
    vendor = 2
    cells = [
        (law(ours, statistics(mine, 3), 3), law(theirs, statistics(yours, 4), 4))
        for mine in range(3)
        for yours in range(4)
    ]

    def joint(cell: tuple[dict[int, Fraction], dict[int, Fraction]]) -> dict[object, Fraction]:
        first, second = cell
        own = {arm: p for arm, p in first.items() if arm != vendor}
        return {**own, **{(vendor, k): first[vendor] * p for k, p in second.items()}}

    laws = [joint(cell) for cell in cells]
    assert all(sum(one.values()) == 1 for one in laws)
    worst = max(here[out] / there[out] for here in laws for there in laws for out in here)
    assert worst <= Fraction(math.exp(epsilon)) * Fraction(1_000_000_001, 1_000_000_000)
    assert worst > Fraction(math.exp(max(share, 1 - share) * epsilon)) * Fraction(11, 10)


async def test_a_spent_budget_never_asks_a_vendor(pair: Pair) -> None:
    """A vendor's answer depends on the cell, so it cannot be free."""
    await pair.a.registry.put("films", asking(privacy={"epsilon": 1.0, "budget": {"epsilon": 1.0}}))
    await ask(pair.a)
    asked = len(pair.wire.forwards)
    for _ in range(100):
        answer = await ask(pair.a)
        assert (answer.items, answer.personalised, answer.vendor) == (("own",), False, None)
    assert len(pair.wire.forwards) == asked


# When a vendor fails


async def test_a_vendor_that_fails_is_replaced_by_an_item_of_ours(pair: Pair) -> None:
    await pair.a.registry.put("films", asking(items=["own", "more"]))
    pair.wire.cut = True
    answers = [await ask(pair.a, client="c") for _ in range(60)]
    assert len(pair.wire.forwards) > 5
    assert {answer.vendor for answer in answers} == {None}
    assert {answer.items[0] for answer in answers} == {"own", "more"}
    # Paid as if it had answered: what was drawn first may show in how long it took.
    assert await spent(pair.a, "c") == 60.0
    assert all(answer.personalised for answer in answers)


LIES = {
    "a sum above its count": RunningSum(5, 5, 5.0 + 41.0, 1.0),
    "a sum below nothing": RunningSum(5, 5, -41.0, 1.0),
    "no rewards but a sum": RunningSum(0, 0, 0.0, 1.0),
    "more rewards than can be": RunningSum(2**41, 2**41, 1.0, 1.0),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
async def test_sums_that_cannot_be_true_are_not_believed(pair: Pair, lie: RunningSum) -> None:
    pair.wire.lie = Forwarded("handle", int(pair.clock()) + 60, lie)
    answers = [await ask(pair.a) for _ in range(40)]
    assert {answer.items for answer in answers} == {("own",)}
    assert pair.wire.distrusted == len(pair.wire.forwards) > 0


async def test_counts_that_shrink_are_not_believed(pair: Pair) -> None:
    ends = int(pair.clock()) + 60
    pair.wire.lie = Forwarded("handle", ends, RunningSum(50, 50, 25.0, 0.1))
    await ask_for_vendor(pair.a)
    pair.wire.lie = Forwarded("handle", ends, RunningSum(49, 49, 25.0, 0.1))
    answers = [await ask(pair.a) for _ in range(60)]
    assert {answer.vendor for answer in answers} == {None}
    assert pair.wire.distrusted > 0


async def test_a_handle_that_has_expired_is_no_answer(pair: Pair) -> None:
    pair.wire.lie = Forwarded("handle", int(pair.clock()), None)
    assert {(await ask(pair.a)).items for _ in range(40)} == {("own",)}


async def test_an_answer_lives_no_longer_than_its_handle(pair: Pair) -> None:
    pair.wire.lie = Forwarded("handle", int(pair.clock()) + 60, None)
    assert (await ask_for_vendor(pair.a)).expires_at == int(pair.clock()) + 60
    pair.wire.lie = Forwarded("handle", int(pair.clock()) + 10**8, None)
    assert (await ask_for_vendor(pair.a)).expires_at == int(pair.clock()) + 86_400


# Feedback on its way back


async def guest_sums(pair: Pair) -> tuple[int, float]:
    """How many rewards the vendor has learned from guests, and their sum."""
    found = await pair.b.registry.find("films")
    cells = await pair.b.store.cells(index=found.guests.generation, most=10)
    vectors = await pair.b.store.read(addresses=list(cells))
    counted = sum(int(vector[0]) for vector in vectors)
    return counted, sum(int(vector[2::2].sum()) for vector in vectors) / REWARD_STEPS


async def test_feedback_reaches_the_vendor_once_and_is_not_ours_to_learn(pair: Pair) -> None:
    answer = await ask_for_vendor(pair.a)
    feedback = Feedback(reward=0.75, recommendation_id=answer.recommendation_id)
    assert not (await give_feedback(pair.a, feedback)).duplicate
    await pair.a.relay.settle()
    assert await guest_sums(pair) == (1, 0.75)
    assert (await give_feedback(pair.a, feedback)).duplicate
    with pytest.raises(RewardConflict):
        await give_feedback(pair.a, replace(feedback, reward=0.5))
    await pair.a.relay.settle()
    assert await guest_sums(pair) == (1, 0.75)
    # Ours: one arrival, and nothing about the vendor.
    assert await cell_of(pair.a, answer.recommendation_id) == [1]
    assert await pair.a.store.count_letters(queue=b"feedback to vendors") == 0


async def test_feedback_may_also_be_given_to_the_vendor(pair: Pair) -> None:
    answer = await ask_for_vendor(pair.a)
    (handle,) = answer.items
    assert not (await give_feedback(pair.b, Feedback(1.0, recommendation_id=handle))).duplicate
    await give_feedback(pair.a, Feedback(1.0, recommendation_id=answer.recommendation_id))
    await pair.a.relay.settle()
    assert await guest_sums(pair) == (1, 1.0)


async def test_feedback_names_the_item_by_its_handle(pair: Pair) -> None:
    answer = await ask_for_vendor(pair.a)
    token, (handle,) = answer.recommendation_id, answer.items
    with pytest.raises(InvalidArgument):
        await give_feedback(pair.a, Feedback(1.0, recommendation_id=token, item="own"))
    await give_feedback(pair.a, Feedback(1.0, recommendation_id=token, item=handle))
    await pair.a.relay.settle()
    opened = await open_handle(pair.b, handle=handle)
    receipt = await give_feedback(pair.b, Feedback(1.0, recommendation_id=handle, item=opened.item))
    assert receipt.duplicate


async def test_feedback_waits_for_a_vendor_that_is_down(pair: Pair) -> None:
    answer = await ask_for_vendor(pair.a)
    pair.wire.cut = True
    receipt = await give_feedback(pair.a, Feedback(1.0, recommendation_id=answer.recommendation_id))
    assert not receipt.duplicate
    await pair.a.relay.settle()
    assert await guest_sums(pair) == (0, 0.0)
    assert await pair.a.relay.sweep() == 1
    # A vendor that is known to be down is left alone; one that is back gets its letters.
    pair.wire.hidden = True
    assert await pair.a.relay.sweep() == 1
    pair.wire.hidden = pair.wire.cut = False
    assert await pair.a.relay.sweep() == 1
    assert await pair.a.relay.sweep() == 0
    assert await guest_sums(pair) == (1, 1.0)


async def test_letters_outlive_a_restart_and_end_with_their_handle(pair: Pair) -> None:
    tokens = []
    for _ in range(2):
        tokens.append((await ask_for_vendor(pair.a)).recommendation_id)
        pair.clock.now += 3_600
    pair.wire.cut = True
    await feedback_batch(pair.a, [Feedback(1.0, recommendation_id=token) for token in tokens])
    await pair.a.relay.settle()
    pair.clock.now += 86_400 - 2 * 3_600
    pair.wire.cut = False
    again = await open_runtime(pair.clock, pair.wire, store=pair.a.store)  # type: ignore[arg-type]
    assert await again.relay.sweep() == 2
    assert await again.relay.sweep() == 0
    assert await guest_sums(pair) == (1, 1.0)


async def test_a_batch_asks_vendors_side_by_side(pair: Pair) -> None:
    asks = [Ask(recommender="films", client=str(n), context=[0.3, 0.6]) for n in range(60)]
    answers = await recommend_batch(pair.a, asks)
    vendors = [answer.vendor for answer in answers]  # type: ignore[union-attr]
    assert set(vendors) == {None, "b"}


async def test_a_retry_gets_the_same_handle(pair: Pair) -> None:
    for number in range(MANY):
        first = await ask(pair.a, event_id=str(number))
        if first.vendor is not None:
            break
    asked = len(pair.wire.forwards)
    again = await ask(pair.a, event_id=str(number))
    assert (again.items, again.vendor) == (first.items, "b")
    assert len(pair.wire.forwards) == asked


# How a vendor is judged


async def earn(pair: Pair, reward: float) -> bool:
    """Have the vendor asked once, and the item rewarded; return whether it was for training."""
    answer = await ask_for_vendor(pair.a)
    await give_feedback(pair.a, Feedback(reward, recommendation_id=answer.recommendation_id))
    await pair.a.relay.settle()
    return pair.wire.forwards[-1].training


async def books(pair: Pair, level: int, centre: tuple[float, ...]) -> list[int]:
    address = books_of(await pair.a.registry.find("films"), 1, level, centre)
    (vector,) = await pair.a.store.read(addresses=[address])
    return [int(value) for value in vector]


async def test_the_first_forwards_of_a_cell_train_and_do_not_count(pair: Pair) -> None:
    assert [await earn(pair, 1.0) for _ in range(TRAINING)] == [True] * TRAINING
    assert not await earn(pair, 1.0)
    assert all(answer.sums is None for answer in pair.wire.answers)
    await ask_for_vendor(pair.a)
    sums = pair.wire.answers[-1].sums
    assert sums is not None
    assert (sums.releases, sums.count) == (1, 1)
    assert await guest_sums(pair) == (TRAINING + 1, TRAINING + 1)


async def test_what_is_believed_is_the_noisy_sum_and_never_the_reward(pair: Pair) -> None:
    await pair.b.registry.put(
        "films",
        document(items=["b1"], vendor_privacy={"epsilon": 50.0, "budget": 50.0}),
    )
    for number in range(TRAINING + 30):
        await earn(pair, float(number % 2))
    answer = await ask_for_vendor(pair.a)
    sums = pair.wire.answers[-1].sums
    assert sums is not None
    assert sums.count == 30
    assert sums.total not in (15.0, 15)
    weight, total = worth(sums)
    assert 20 <= weight <= 30
    cell = await cell_of(pair.a, answer.recommendation_id)
    assert (cell[count_field(1)], cell[sum_field(1)]) == (weight, total)
    # The mean's standard deviation is below 0.05 at this epsilon; six of them is one in a billion.
    assert total / weight / REWARD_STEPS == pytest.approx(0.5, abs=0.3)
    known = await books(pair, 0, (0.5, 0.5))
    assert (known[TRAINED], known[MERGED], known[WEIGHT]) == (TRAINING, 30, weight)


async def test_two_workers_that_hear_the_same_sum_add_it_once(pair: Pair) -> None:
    other = await open_runtime(pair.clock, pair.wire, store=pair.a.store)  # type: ignore[arg-type]
    pair.wire.lie = Forwarded("h", int(pair.clock()) + 60, RunningSum(100, 100, 50.0, 0.0))
    for runtime in (pair.a, other, pair.a):
        answer = await ask_for_vendor(runtime)
    cell = await cell_of(pair.a, answer.recommendation_id)
    assert (cell[count_field(1)], cell[sum_field(1)]) == (100, 50 * REWARD_STEPS)


def test_noise_makes_a_sum_worth_less() -> None:
    assert worth(RunningSum(100, 100, 50.0, 0.0)) == (100, 50 * REWARD_STEPS)
    assert worth(RunningSum(100, 100, 50.0, 5.0)) == (50, 25 * REWARD_STEPS)
    assert worth(RunningSum(100, 100, -30.0, 5.0)) == (50, 0)
    assert worth(RunningSum(100, 100, 130.0, 5.0)) == (50, 50 * REWARD_STEPS)


async def test_removing_a_recommender_erases_its_books_on_vendors(pair: Pair) -> None:
    await earn(pair, 1.0)
    address = books_of(await pair.a.registry.find("films"), 1, 0, (0.5, 0.5))
    (vector,) = await pair.a.store.read(addresses=[address])
    assert len(vector) == 1
    await pair.a.registry.remove("films")
    (vector,) = await pair.a.store.read(addresses=[address])
    assert len(vector) == 0


async def test_cells_share_a_stream_until_it_is_worth_enough(pair: Pair) -> None:
    """The cell splits at once, so that there are cells below; the lie makes the stream heavy."""
    await pair.a.registry.put("films", asking(partition={"base": 1}))
    ends = int(pair.clock()) + 60

    async def stream_at(level: int) -> str:
        for _ in range(MANY):
            await ask_for_vendor(pair.a)
            if pair.wire.forwards[-1].level == level:
                return pair.wire.forwards[-1].stream
        raise AssertionError("no cell of that level was asked about")

    def name(level: int, centre: tuple[float, ...]) -> str:
        return books_of(recommender, 1, level, centre).hex()

    recommender = await pair.a.registry.find("films")
    assert await stream_at(0) == name(0, (0.5, 0.5))
    await earn(pair, 1.0)
    assert await stream_at(1) == name(0, (0.5, 0.5))
    pair.wire.lie = Forwarded("h", ends, RunningSum(ENOUGH - 1, ENOUGH - 1, 1.0, 0.0))
    assert await stream_at(1) == name(0, (0.5, 0.5))
    pair.wire.lie = Forwarded("h", ends, RunningSum(ENOUGH, ENOUGH, 1.0, 0.0))
    await ask_for_vendor(pair.a)
    pair.wire.lie = None
    assert await stream_at(1) == name(1, (0.25, 0.75))
    assert pair.wire.forwards[-1].training


async def test_a_lighter_sum_does_not_replace_a_heavier_one(pair: Pair) -> None:
    ends = int(pair.clock()) + 60
    for count, total, deviation in ((100, 50.0, 0.0), (110, 0.0, 50.0), (200, 50.0, 0.0)):
        pair.wire.lie = Forwarded("h", ends, RunningSum(count, count, total, deviation))
        answer = await ask_for_vendor(pair.a)
        cell = await cell_of(pair.a, answer.recommendation_id)
        heavier = 200 if count == 200 else 100
        assert (cell[count_field(1)], cell[sum_field(1)]) == (heavier, 50 * REWARD_STEPS)


@pytest.mark.parametrize(("ours", "theirs", "share"), [(0.2, 0.8, 0.9), (0.8, 0.2, 0.1)])
async def test_the_better_of_our_items_and_the_vendors_is_learned(
    clock: Clock, ours: float, theirs: float, share: float
) -> None:
    """1,200 visitors at epsilon 2, sums at epsilon 1; seeded. With five seeds, the share of answers
    from the vendor in the last quarter lay at 0.95 to 0.98, and at 0 to 0.02."""
    wire, rng = Wire("a"), random.Random(3)
    b = await Runtime.open_for_simulation(
        store=MemoryStore(clock=clock, rng=random.Random(1)), noise=SeededNoise(1), clock=clock
    )
    a = await Runtime.open_for_simulation(
        store=MemoryStore(clock=clock, rng=random.Random(2)),
        noise=SeededNoise(2),
        clock=clock,
        vendors=wire,
    )
    wire.others["b"] = b
    await b.registry.put("films", document(items=["b1", "b2"]))
    await a.registry.put(
        "films", asking(privacy={"epsilon": 2.0, "budget": {"epsilon": 1e6}}, items=["o1", "o2"])
    )
    asked = 0
    for number in range(1_200):
        if number % 100 == 0:
            for runtime in (a, b):
                await runtime.surveyor.prepare(await runtime.registry.find("films"))
        answer = await ask(a, context=[rng.random(), rng.random()])
        asked += answer.vendor is not None and number >= 900
        mean = ours if answer.vendor is None else theirs
        await give_feedback(
            a, Feedback(float(rng.random() < mean), recommendation_id=answer.recommendation_id)
        )
        await a.relay.settle()
    assert (asked / 300 > share) if theirs > ours else (asked / 300 < share)
