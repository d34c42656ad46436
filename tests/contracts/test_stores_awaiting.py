"""What every store promises about decisions that await a reward."""

import time
from typing import Any

import pytest

from discreet.errors import InvalidArgument
from discreet.privacy.charges import Charge, Limit
from discreet.state.awaiting import ABANDONED_SECONDS, Counted, DueDecision, OpenDecision
from discreet.state.keys import StoreKeys
from discreet.state.stores import (
    SHARDS,
    ClaimOutcome,
    Debit,
    FeedbackRecord,
    Learned,
    Ledger,
    Store,
    shard_of,
)
from tests.state.places import (
    ADA,
    BLOCK,
    BOB,
    GENERATION,
    ONE,
    Place,
    learn,
    released,
    shared,
    spend,
)

pytestmark = pytest.mark.anyio

NEVER = Limit(nano_epsilon=0, nano_rho=0)
ROOM = 100 * SHARDS
ONCE = Learned(ClaimOutcome.COUNTED, True, Charge(), Ledger())
HELD = Learned(ClaimOutcome.HELD, None, Charge(), Ledger())


def past(place: Place) -> float:
    """Return a moment that has passed, by the store's clock."""
    return 999.0 if place.url is None else time.time() - 60


def future(place: Place) -> float:
    return past(place) + 3_600


def opened(due: float, decision: bytes = b"first", **terms: Any) -> OpenDecision:
    usual = OpenDecision(GENERATION, decision, 1, b"sealed", due, ROOM)
    return usual._replace(**terms)


def default(
    decision: bytes = b"first", place: int = 0, principal: bytes = ADA, ttl: int = 60
) -> FeedbackRecord:
    claim = decision + place.to_bytes(2, "little")
    return FeedbackRecord(
        *(principal, GENERATION, claim, 0, ttl, {BLOCK: [(0, 1)]}), awaited=decision, settles=True
    )


def feedback(*args: Any, reward: int = 1, **kwargs: Any) -> FeedbackRecord:
    return default(*args, **kwargs)._replace(settles=False, reward=reward)


async def due(store: Store, most: int = 10) -> list[DueDecision]:
    return list((await store.due(generation=GENERATION, most=most)).due)


async def count_open(store: Store) -> int:
    return (await store.due(generation=GENERATION, most=1)).open


async def test_a_decision_is_opened_with_the_debit_that_pays_for_it(place: Place) -> None:
    store = place.store
    found = await spend(store, opened=opened(past(place)))
    assert found.granted
    assert found.awaiting
    assert await due(store) == [DueDecision(ADA, b"first", b"sealed", (None,))]
    assert not (await spend(store)).awaiting, "nothing was to be opened"


async def test_a_refused_debit_opens_nothing(place: Place) -> None:
    store = place.store
    found = await spend(store, limit=NEVER, opened=opened(past(place)))
    assert not found.granted
    assert not found.awaiting
    assert await count_open(store) == 0


async def test_a_free_answer_opens_its_decision(place: Place) -> None:
    found = await spend(place.store, charge=Charge(), opened=opened(past(place)))
    assert found == (True, Ledger(), True)
    assert len(await due(place.store)) == 1


async def test_a_retry_under_its_marker_replaces_the_decision(place: Place) -> None:
    store = place.store
    first = await spend(store, marker=b"m", opened=opened(past(place)))
    again = await spend(store, marker=b"m", opened=opened(past(place) + 1, content=b"redrawn"))
    assert again == first, "paid once"
    assert await due(store) == [DueDecision(ADA, b"first", b"redrawn", (None,))]


async def test_the_later_moment_stands_or_the_sooner(place: Place) -> None:
    store = place.store
    await spend(store, opened=opened(past(place)))
    await spend(store, opened=opened(future(place)))
    assert await due(store) == []
    await spend(store, opened=opened(past(place), sooner=True))
    await spend(store, opened=opened(future(place), sooner=True))
    assert len(await due(store)) == 1


async def test_what_is_due_comes_in_order_and_not_all_at_once(place: Place) -> None:
    store = place.store
    for number in (3, 1, 2):
        moment = past(place) - 10 + number
        await spend(store, opened=opened(moment, decision=b"%d" % number))
    await spend(store, opened=opened(future(place), decision=b"later"))
    await spend(store, BOB, opened=opened(past(place)))
    found = await due(store, most=2)
    assert [one.decision for one in found if one.principal == ADA] == [b"1", b"2"]
    assert [one.decision for one in found if one.principal == BOB] == [b"first"]
    assert await count_open(store) == 5


async def test_room_is_bounded_by_shard(place: Place) -> None:
    store = place.store
    bound = 2 * SHARDS
    fits = [
        (await spend(store, opened=opened(past(place), decision=b"%d" % each, most=bound))).awaiting
        for each in range(3)
    ]
    assert fits == [True, True, False]
    again = await spend(store, opened=opened(past(place), decision=b"1", most=bound))
    assert again.awaiting, "what is there needs no room"
    assert await count_open(store) == 2
    assert shard_of(BOB) != shard_of(ADA)
    assert (await spend(store, BOB, opened=opened(past(place), most=bound))).awaiting


async def test_the_default_counts_once(place: Place) -> None:
    store = place.store
    await spend(store, opened=opened(past(place)), charge=Charge())
    assert await learn(store, default()) == ONCE
    assert (await learn(store, default())).claim is ClaimOutcome.DUPLICATE
    assert await released(store, 1) == {BLOCK: [1]}


async def test_feedback_is_held_until_the_decision_is_due_and_counts_then(place: Place) -> None:
    store = place.store
    await spend(store, opened=opened(past(place)), charge=Charge())
    assert await learn(store, feedback(reward=7)) == HELD
    assert await released(store, 1) == {}
    assert await learn(store, feedback(reward=7)) == HELD._replace(claim=ClaimOutcome.DUPLICATE)
    assert await learn(store, feedback(reward=8)) == HELD._replace(claim=ClaimOutcome.CONFLICT)
    assert await count_open(store) == 1, "how many are open does not tell whether feedback came"
    assert (await due(store))[0].rewards == (7,)
    settling = default()._replace(reward=7, held=7)
    assert await learn(store, settling) == ONCE
    assert (await due(store))[0].rewards == (Counted.COUNTED,)
    assert (await learn(store, settling)).claim is ClaimOutcome.DUPLICATE
    assert (await learn(store, feedback(reward=7))).claim is ClaimOutcome.DUPLICATE
    assert (await learn(store, feedback(reward=8))).claim is ClaimOutcome.CONFLICT
    assert await released(store, 2) == {BLOCK: [1]}


async def test_what_settles_must_know_what_is_held(place: Place) -> None:
    """Feedback that comes while somebody counts the default is not lost."""
    store = place.store
    await spend(store, opened=opened(past(place)), charge=Charge())
    await learn(store, feedback(reward=7))
    for wrong in (None, 8):
        found = await learn(store, default()._replace(held=wrong))
        assert found == HELD._replace(claim=ClaimOutcome.CHANGED)
    assert await released(store, 1) == {}
    assert (await due(store))[0].rewards == (7,)


async def test_what_was_counted_is_known_after_its_claim_lapsed(place: Place) -> None:
    store = place.store
    await spend(store, charge=Charge(), opened=opened(past(place)))
    await learn(store, default(ttl=1))
    await place.elapse(1.2)
    assert (await learn(store, default())).claim is ClaimOutcome.DUPLICATE
    assert await released(store, 1) == {BLOCK: [1]}


async def test_feedback_from_before_a_decision_was_opened_is_not_counted_again(
    place: Place,
) -> None:
    store = place.store
    assert await learn(store, feedback(reward=7)) == ONCE
    await spend(store, charge=Charge(), opened=opened(past(place)))
    assert (await learn(store, feedback(reward=7))).claim is ClaimOutcome.DUPLICATE
    assert (await due(store))[0].rewards == (Counted.COUNTED,)
    assert (await learn(store, default())).claim is ClaimOutcome.DUPLICATE
    assert await released(store, 1) == {BLOCK: [1]}


async def test_the_default_does_not_count_for_what_is_not_open(place: Place) -> None:
    store = place.store
    assert (await learn(store, default())).claim is ClaimOutcome.DUPLICATE
    await spend(store, charge=Charge(), opened=opened(past(place)))
    await store.close_decisions(generation=GENERATION, decisions=[(ADA, b"first")])
    assert (await learn(store, default())).claim is ClaimOutcome.DUPLICATE
    assert await learn(store, feedback()) == ONCE, "feedback needs no open decision"
    assert await released(store, 1) == {BLOCK: [1]}


async def test_each_item_of_a_list_is_counted_by_itself(place: Place) -> None:
    store = place.store
    await spend(store, charge=Charge(), opened=opened(past(place), items=3))
    assert await learn(store, feedback(place=1, reward=7)) == HELD
    assert (await due(store))[0].rewards == (None, 7, None)
    for each, held in enumerate((None, 7, None)):
        assert await learn(store, default(place=each)._replace(held=held)) == ONCE
    assert (await due(store))[0].rewards == (Counted.COUNTED,) * 3
    for _ in range(2):
        closed = [(ADA, b"first")]
        await store.close_decisions(generation=GENERATION, decisions=closed)
        assert await count_open(store) == 0
    assert await released(store, 1) == {BLOCK: [3]}


async def test_a_default_is_paid_for_and_refused_without_budget(place: Place) -> None:
    store = place.store
    await spend(store, charge=Charge(), opened=opened(past(place)))
    await spend(store, charge=Charge(), opened=opened(past(place), decision=b"second"))
    paid = await learn(store, default()._replace(charge=ONE))
    assert paid == Learned(ClaimOutcome.COUNTED, True, ONE, Ledger(feedback=ONE))
    poor = await learn(store, default(b"second")._replace(charge=ONE, limit=NEVER))
    assert poor == Learned(ClaimOutcome.COUNTED, False, Charge(), Ledger(feedback=ONE))
    again = await learn(store, default(b"second")._replace(charge=ONE))
    assert again.claim is ClaimOutcome.DUPLICATE, "what was refused is not tried again"
    assert await released(store, 1) == {BLOCK: [1]}


async def test_a_principal_is_forgotten_alone(place: Place) -> None:
    store = place.store
    neighbour = ADA[:1] + b"neighbour"
    assert shard_of(neighbour) == shard_of(ADA)
    for who in (ADA, BOB, neighbour):
        await spend(store, who, charge=Charge(), opened=opened(past(place)))
    await spend(store, charge=Charge(), opened=opened(past(place), decision=b"second"))
    await learn(store, feedback())
    assert await store.forget_open(generation=GENERATION, principal=ADA) == 2
    assert await store.forget_open(generation=GENERATION, principal=ADA) == 0
    assert {one.principal for one in await due(store)} == {BOB, neighbour}


async def test_a_removed_recommender_has_no_open_decisions(place: Place) -> None:
    store = place.store
    for who in (ADA, BOB):
        await spend(store, who, charge=Charge(), opened=opened(past(place)))
    await store.erase_sums(generation=GENERATION)
    assert await count_open(store) == 0


async def test_recommenders_have_queues_of_their_own(place: Place) -> None:
    store = place.store
    await spend(store, charge=Charge(), opened=opened(past(place)))
    assert (await store.due(generation=b"other", most=9)) == ([], 0)


@shared
async def test_an_abandoned_queue_goes_by_itself(place: Place, server: Any) -> None:
    ends = future(place) + ABANDONED_SECONDS
    await place.store.spend([Debit(ADA, opened=opened(future(place)))])
    await place.store.spend([Debit(ADA, opened=opened(past(place), decision=b"earlier"))])
    keys = StoreKeys(place.namespace)
    for key in (keys.open(shard_of(ADA), GENERATION), keys.contents(shard_of(ADA), GENERATION)):
        assert server.pttl(key) / 1000 == pytest.approx(ends - time.time(), abs=30)


@pytest.mark.parametrize(
    "wrong",
    [{"decision": b""}, {"content": b""}, {"due": 0.0}, {"due": "now"}, {"most": 0}],
    ids=str,
)
async def test_nothing_unusable_is_opened(store: Store, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        store.spend([Debit(ADA, ONE, opened=opened(1.0)._replace(**wrong))])
    with pytest.raises(InvalidArgument):
        store.learn([default()._replace(awaited=b"another")])
