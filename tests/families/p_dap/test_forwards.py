"""Answering other vendors' users: what they get, what they may learn, and what it costs."""

import math
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from discreet.families.p_dap.adaptive_partition import AdaptivePartition
from discreet.families.p_dap.forwarding import Forward, Forwarded, RunningSum
from discreet.decisions.feedback import Feedback, give_feedback
from discreet.families.p_dap import streams
from discreet.families.p_dap.forwards import answer_forward, hear_feedback, open_handle
from discreet.families.p_dap.guests import MOST_LEARNERS
from discreet.decisions.recommend import Ask, recommend
from discreet.decisions.runtime import Runtime
from discreet.errors import (
    InvalidArgument,
    NothingToRecommend,
    RewardConflict,
    TokenExpired,
    TokenForged,
    UnknownDecision,
    UnknownItem,
    UnknownRecommender,
)
from discreet.privacy.continual.shared import SharedSum
from discreet.research.noise import SeededNoise
from discreet.state.memory import MemoryStore
from tests.decisions.conftest import Clock, document
from tests.families.p_dap.neighbours import open_runtime

pytestmark = pytest.mark.anyio

FORWARD = Forward("films", level=1, centre=(0.25, 0.75), epsilon=0.5, training=False)


@pytest.fixture
async def b(anyio_backend: str, clock: Clock) -> AsyncIterator[Runtime]:
    runtime = await open_runtime(clock)
    await runtime.registry.put("films", document(items=["b1", "b2", "b3"]))
    yield runtime
    await runtime.close()


async def forwarded(b: Runtime, requester: str = "a", forward: Forward = FORWARD) -> Forwarded:
    return await answer_forward(b, requester=requester, forward=forward)


async def earn(b: Runtime, reward: float, forward: Forward = FORWARD) -> None:
    handle = (await forwarded(b, forward=forward)).handle
    await hear_feedback(b, requester="a", recommender="films", handle=handle, reward=reward)


async def sums_of(b: Runtime, requester: str = "a", forward: Forward = FORWARD) -> RunningSum:
    sums = (await forwarded(b, requester, forward)).sums
    assert sums is not None
    return sums


async def account_of(b: Runtime, requester: str = "a") -> float:
    principal = b.principals.client("films", "\x01vendor " + requester)
    return (await b.store.balance(principal=principal)).nano_epsilon / 1e9


# Asking


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"level": -1}, "level"),
        ({"level": 65}, "level"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": 51.0}, "epsilon"),
        ({"stream": "s" * 65}, "stream"),
        ({"centre": (0.5,)}, "context"),
        ({"centre": (0.5, 1.5)}, "centre"),
        ({"centre": (0.5, math.nan)}, "centre"),
        ({"centre": ()}, "centre"),
    ],
)
async def test_questions_that_make_no_sense_are_refused(
    b: Runtime, changes: dict[str, object], argument: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        await forwarded(b, forward=replace(FORWARD, **changes))  # type: ignore[arg-type]
    assert caught.value.argument == argument


async def test_an_unknown_recommender_and_an_empty_one_say_so(b: Runtime) -> None:
    with pytest.raises(UnknownRecommender):
        await forwarded(b, forward=replace(FORWARD, recommender="books"))
    await b.registry.put("films", document(items=[{"id": "b1", "hidden": True}]))
    with pytest.raises(NothingToRecommend):
        await forwarded(b)


@pytest.mark.parametrize("mode", ["uniform", "geometric", "none"])
async def test_guests_are_protected_by_their_own_epsilon_whatever_our_users_have(
    b: Runtime, mode: str
) -> None:
    await b.registry.put(
        "films",
        document(items=["b1", "b2"], privacy={"mode": mode, "epsilon": 9.0}),
    )
    await forwarded(b)
    (learner,) = (await b.registry.find("films")).guests.learners
    assert isinstance(learner, AdaptivePartition)
    assert (learner.epsilon, learner.mode) == (0.5, "uniform")


async def test_few_epsilons_are_remembered(b: Runtime) -> None:
    for number in range(2 * MOST_LEARNERS):
        await forwarded(b, forward=replace(FORWARD, epsilon=0.1 + number))
    learners = (await b.registry.find("films")).guests.learners
    kept = [learner.epsilon for learner in learners if isinstance(learner, AdaptivePartition)]
    assert kept == [0.1 + number for number in range(MOST_LEARNERS, 2 * MOST_LEARNERS)]


async def test_our_own_users_statistics_are_not_touched_by_guests(b: Runtime) -> None:
    for _ in range(5):
        await earn(b, 1.0)
    found = await b.registry.find("films")
    assert await b.store.count_cells(index=found.generation) == 0
    assert await b.store.count_cells(index=found.guests.generation) == 1


# Handles


async def test_a_handle_is_opened_until_it_expires(b: Runtime, clock: Clock) -> None:
    handle = (await forwarded(b)).handle
    opened = await open_handle(b, handle=handle)
    assert opened.recommender == "films"
    assert opened.item in {"b1", "b2", "b3"}
    assert opened.expires_at == int(clock()) + 86_400
    clock.now += 86_400
    with pytest.raises(TokenExpired):
        await open_handle(b, handle=handle)


async def test_a_handle_to_something_that_is_gone_says_so(b: Runtime) -> None:
    handle = (await forwarded(b)).handle
    item = (await open_handle(b, handle=handle)).item
    await b.registry.remove_item("films", item)
    with pytest.raises(UnknownItem):
        await open_handle(b, handle=handle)
    await b.registry.remove("films")
    with pytest.raises(UnknownDecision):
        await open_handle(b, handle=handle)


async def test_our_own_recommendations_are_no_handles(b: Runtime) -> None:
    answer = await recommend(b, Ask("films", "x", [0.5, 0.5]))
    with pytest.raises(TokenForged):
        await open_handle(b, handle=answer.recommendation_id)
    with pytest.raises(TokenForged):
        await hear_feedback(
            b,
            requester="a",
            recommender="films",
            handle=answer.recommendation_id,
            reward=1.0,
        )


async def test_only_who_asked_may_pass_feedback_on(b: Runtime) -> None:
    await b.registry.put("books", document(items=["b1"]))
    handle = (await forwarded(b)).handle
    for requester, name in (("c", "films"), ("a", "books")):
        with pytest.raises(TokenForged):
            await hear_feedback(b, requester=requester, recommender=name, handle=handle, reward=1.0)


async def test_feedback_counts_once_in_the_stream(b: Runtime) -> None:
    handle = (await forwarded(b)).handle
    for duplicate in (False, True):
        receipt = await hear_feedback(
            b, requester="a", recommender="films", handle=handle, reward=1.0
        )
        assert receipt.duplicate is duplicate
    with pytest.raises(RewardConflict):
        await give_feedback(b, Feedback(0.0, recommendation_id=handle))
    assert (await sums_of(b)).count == 1


# Running sums


async def test_every_release_of_a_step_is_the_same_on_every_worker(
    b: Runtime, clock: Clock
) -> None:
    other = await open_runtime(clock, store=b.store)  # type: ignore[arg-type]
    seen = set()
    for _ in range(20):
        await earn(b, 1.0)
        here, there, again = await sums_of(b), await sums_of(other), await sums_of(b)
        assert here == there == again
        seen.add(here.total - here.count)
    assert len(seen) == 20


async def test_streams_are_told_apart_by_requester_and_cell(b: Runtime) -> None:
    await earn(b, 1.0)
    assert (await forwarded(b, "c")).sums is None
    assert (await forwarded(b, forward=replace(FORWARD, level=2))).sums is None
    assert (await forwarded(b, forward=replace(FORWARD, centre=(0.75, 0.75)))).sums is None
    assert (await forwarded(b, forward=replace(FORWARD, stream="s"))).sums is None
    assert (await sums_of(b)).count == 1


async def test_cells_that_name_one_stream_share_it(b: Runtime) -> None:
    for level in range(3):
        await earn(b, 1.0, replace(FORWARD, level=level, stream="s"))
    assert (await sums_of(b, forward=replace(FORWARD, level=9, stream="s"))).count == 3
    assert (await forwarded(b, "c", replace(FORWARD, stream="s"))).sums is None


async def test_training_does_not_enter_the_sums(b: Runtime) -> None:
    await earn(b, 1.0, replace(FORWARD, training=True))
    assert (await forwarded(b)).sums is None


async def test_the_sums_are_as_noisy_as_they_say(clock: Clock) -> None:
    """600 streams of 3 rewards each. The noise (two nodes of scales 1 and 2, at epsilon 1) has
    standard deviation 3.16 and kurtosis below 6, so the estimate of its variance is off by a
    tenth of it (relative sd sqrt(5/600) = 0.09): noise of 0.7 times the scale (variance 0.49)
    is five and a half of those away. Seeded."""
    store = MemoryStore(clock=clock)
    b = await Runtime.open_for_simulation(store=store, noise=SeededNoise(7), clock=clock)
    await b.registry.put("films", document(items=["b1"]))
    found = await b.registry.find("films")
    errors = []
    for number in range(600):
        stream = streams.stream_of(
            found, requester="a", forward=replace(FORWARD, stream=str(number))
        )
        for step, reward in enumerate((1.0, 0.0, 0.5)):
            await streams.add_reward(
                b,
                found,
                stream=stream,
                claim=bytes([step]),
                steps=round(reward * 2**20),
                ttl=60,
            )
        sums = await streams.release(b, found, stream)
        assert sums is not None
        assert sums.deviation == pytest.approx(math.sqrt(10.0), rel=1e-4)
        errors.append(sums.total - 1.5)
    variance = sum(error * error for error in errors) / len(errors)
    assert variance == pytest.approx(10.0, rel=0.3)
    assert sum(errors) / len(errors) == pytest.approx(0.0, abs=0.6)


async def test_noise_that_was_written_twice_releases_nothing(b: Runtime) -> None:
    await earn(b, 1.0)
    await sums_of(b)
    found = await b.registry.find("films")
    stream = streams.stream_of(found, requester="a", forward=FORWARD)
    address, place = streams._place(stream, found.guests.sums.epsilon, 1)
    await b.store.learn(
        address=address, increments=((place, 3),), claim=b"late", reward=0, claim_ttl=60
    )
    assert (await forwarded(b)).sums is None


@pytest.mark.parametrize("node", [1, 2, 3, 7, 100, 255, 256, 511, 512, 1_000, 65_535, 2**24 + 77])
def test_places_of_noise_are_small(node: int) -> None:
    address, place = streams._place(b"s" * 16, 1.0, node)
    assert len(address) == 16
    assert 0 <= place < 256


def test_no_two_nodes_share_a_place() -> None:
    places = [streams._place(b"s" * 16, 1.0, node) for node in range(1, 5_000)]
    assert len(set(places)) == len(places)
    for step in (10, 1_000, 4_999):  # a release reads few vectors, however long the stream is
        nodes = SharedSum(epsilon=1.0).nodes(step)
        assert len({streams._place(b"s" * 16, 1.0, node)[0] for node in nodes}) <= 3


# Paying for them


async def test_an_account_is_debited_once_and_before_the_first_release(b: Runtime) -> None:
    await forwarded(b)
    assert await account_of(b) == 1.0
    for _ in range(10):
        await earn(b, 1.0)
        await sums_of(b)
    assert await account_of(b) == 1.0
    assert await account_of(b, "c") == 0.0


async def test_another_epsilon_is_another_debit_until_the_budget_is_gone(
    b: Runtime, clock: Clock
) -> None:
    await earn(b, 1.0)
    first = await sums_of(b)
    for epsilon, budget, spent, told in (
        (2.0, 3.0, 3.0, True),
        (3.0, 3.0, 3.0, False),
        (3.0, 5.9, 3.0, False),
        (3.0, 6.0, 6.0, True),
        (1.0, 6.0, 6.0, True),
    ):
        await b.registry.put(
            "films",
            document(
                items=["b1", "b2", "b3"], vendor_privacy={"epsilon": epsilon, "budget": budget}
            ),
        )
        answer = await forwarded(b)
        assert answer.handle
        assert (answer.sums is not None) is told
        assert await account_of(b) == spent
        # A worker that knows nothing of what was paid finds it in the store.
        other = await open_runtime(clock, store=b.store)  # type: ignore[arg-type]
        assert ((await forwarded(other)).sums is not None) is told
        assert await account_of(b) == spent
    # Back at the first epsilon the noise is the first noise: it was never drawn again.
    assert await sums_of(b) == first


async def test_removing_a_recommender_erases_its_streams_but_not_the_account(b: Runtime) -> None:
    await earn(b, 1.0)
    await sums_of(b)
    found = await b.registry.find("films")
    stream = streams.stream_of(found, requester="a", forward=FORWARD)
    noise, _ = streams._place(stream, 1.0, 1)
    await b.registry.remove("films")
    assert [len(vector) for vector in await b.store.read(addresses=[stream, noise])] == [0, 0]
    await b.registry.put("films", document(items=["b1"]))
    await forwarded(b)
    assert await account_of(b) == 2.0
