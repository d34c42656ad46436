"""A decision without feedback counts as the default, once."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

import pytest

from discreet.decisions.services import DecisionServices
from discreet.errors import (
    DiscreetError,
    InvalidArgument,
    NotAllowed,
    RewardConflict,
    StoreUnavailable,
    TokenExpired,
    TokenForged,
)
from discreet.families.observer import FamilyCounter, FamilyGauge, NullObserver
from discreet.families.questions import Activation, Ask, Feedback, Receipt, Recommendation
from discreet.families.registration import FAMILIES, read_document
from discreet.state.memory import MemoryStore
from discreet.state.ready import Ready
from discreet.state.stores import ClaimOutcome, Debit, FeedbackRecord, Learned
from tests.contracts.samples import SAMPLES
from tests.decisions.conftest import Clock, ask, document, opened, privacy

pytestmark = pytest.mark.anyio

WAIT = 60
UNIT = 2**20


class WatchedStore(MemoryStore):
    """Notes what was counted: rewards in their steps."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock=clock)
        self.counted: list[int] = []
        self.unpaid: list[int] = []
        self.failing = 0
        self.spends: list[int] = []

    def spend(self, debits: Sequence[Debit]) -> Awaitable[Sequence[Any]]:
        self.spends.append(len(debits))
        return super().spend(debits)

    def learn(
        self, records: Sequence[FeedbackRecord]
    ) -> Awaitable[Sequence[Learned | DiscreetError]]:
        found = []
        for one in records:
            if self.failing:
                self.failing -= 1
                found.append(StoreUnavailable())
                continue
            outcome = self._learn(one)
            found.append(outcome)
            if isinstance(outcome, Learned) and outcome.claim is ClaimOutcome.COUNTED:
                (self.counted if outcome.added else self.unpaid).append(one.reward)
        return Ready(found)


class Noting(NullObserver):
    def __init__(self) -> None:
        self.not_awaited = 0
        self.open: list[float] = []

    def count(self, *, what: FamilyCounter, amount: int = 1, **_: Any) -> None:
        self.not_awaited += amount * (what is FamilyCounter.NOT_AWAITED)

    def gauge(self, *, what: FamilyGauge, value: float, **_: Any) -> None:
        if what is FamilyGauge.OPEN_DECISIONS:
            self.open.append(value)


@pytest.fixture
def store(clock: Clock) -> WatchedStore:
    return WatchedStore(clock)


@pytest.fixture
def noting() -> Noting:
    return Noting()


@pytest.fixture
async def waiting(
    anyio_backend: str, store: WatchedStore, clock: Clock, noting: Noting
) -> DecisionServices:
    services = await opened(store, clock, observer=noting)
    await put(services)
    return services


async def put(services: DecisionServices, **changes: Any) -> None:
    reward = {"wait": f"{WAIT}s", **changes.pop("reward", {})}
    await services.registry.put("films", document(reward=reward, **changes))


async def pass_time(services: DecisionServices, clock: Clock, seconds: float = WAIT + 3) -> None:
    clock.now += seconds
    recommender = await services.registry.find("films")
    while await services.rewards.settle_due(recommender):
        pass


async def tell(services: DecisionServices, answer: Recommendation, reward: float) -> Receipt:
    return await services.feedback.record(Feedback(reward, answer.recommendation_id))


async def test_silence_counts_as_the_default_once(
    waiting: DecisionServices, store: WatchedStore, clock: Clock
) -> None:
    answer = await ask(waiting)
    assert answer.awaiting is True
    assert answer.expires_at == clock.now + WAIT
    await pass_time(waiting, clock, WAIT - 1)
    assert store.counted == []
    for _ in range(3):
        await pass_time(waiting, clock)
    assert store.counted == [0]


async def test_feedback_in_time_replaces_the_default(
    waiting: DecisionServices, store: WatchedStore, clock: Clock
) -> None:
    answer = await ask(waiting)
    clock.now += WAIT - 1
    assert await tell(waiting, answer, 1.0) == Receipt(duplicate=False, learned=None)
    assert await tell(waiting, answer, 1.0) == Receipt(duplicate=True, learned=None)
    with pytest.raises(RewardConflict):
        await tell(waiting, answer, 0.5)
    assert store.counted == [], "clicks do not count before silence does"
    await pass_time(waiting, clock)
    assert store.counted == [UNIT]


async def test_feedback_counts_after_nobody_looked_for_long(
    waiting: DecisionServices, store: WatchedStore, clock: Clock
) -> None:
    told, silent = await ask(waiting), await ask(waiting)
    assert told != silent
    await tell(waiting, told, 1.0)
    await pass_time(waiting, clock, 5 * 86_400)
    assert sorted(store.counted) == [0, UNIT]


async def test_late_feedback_is_refused_and_says_so(
    waiting: DecisionServices, store: WatchedStore, clock: Clock
) -> None:
    answer = await ask(waiting)
    clock.now += WAIT
    with pytest.raises(TokenExpired, match=r"too late.*60s.*reward\.wait"):
        await tell(waiting, answer, 1.0)
    await pass_time(waiting, clock)
    with pytest.raises(TokenExpired):
        await tell(waiting, answer, 0.0)
    assert store.counted == [0]


async def test_every_item_of_a_list_counts(
    waiting: DecisionServices, store: WatchedStore, clock: Clock
) -> None:
    answer = await ask(waiting, limit=3)
    await waiting.feedback.record(Feedback(1.0, answer.recommendation_id, item=answer.items[1]))
    await pass_time(waiting, clock)
    assert sorted(store.counted) == [0, 0, UNIT]


async def test_a_reward_is_in_the_declared_range(
    waiting: DecisionServices, store: WatchedStore, clock: Clock
) -> None:
    await waiting.registry.remove("films")
    await put(waiting, reward={"range": [-1, 3], "default": 1})
    best, worst, silent = [await ask(waiting, client=who) for who in "abc"]
    assert silent.awaiting
    for wrong in (-1.01, 3.01):
        with pytest.raises(InvalidArgument, match=r"must lie in \[-1, 3\]"):
            await tell(waiting, best, wrong)
    await tell(waiting, best, 3.0)
    await tell(waiting, worst, -1.0)
    await pass_time(waiting, clock)
    assert sorted(store.counted) == [0, UNIT // 2, UNIT]


async def test_a_range_needs_no_wait(services: DecisionServices) -> None:
    await services.registry.put("prices", document(reward={"range": [0, 100]}))
    answer = await ask(services, recommender="prices")
    assert answer.awaiting is None
    assert await tell(services, answer, 99.5) == Receipt(duplicate=False)


async def test_the_default_is_paid_for_like_feedback_and_refused_without_budget(
    waiting: DecisionServices, store: WatchedStore, clock: Clock
) -> None:
    feedback = {"epsilon": 1.0, "budget": {"epsilon": 2.0, "delta": 1e-6}}
    await waiting.registry.remove("films")
    await put(waiting, privacy=privacy(budget=1_000, feedback=feedback))
    for _ in range(20):
        await ask(waiting)
    await pass_time(waiting, clock)
    report = await waiting.clients.budget(recommender="films", client="someone")
    assert report.feedback.spent is not None
    assert 0.5 < report.feedback.spent.epsilon <= 2.0
    assert store.counted
    assert len(store.counted) + len(store.unpaid) == 20


async def test_degraded_answers_are_awaited_too(
    waiting: DecisionServices, store: WatchedStore, clock: Clock
) -> None:
    answers = [await ask(waiting) for _ in range(8)]
    assert [answer.personalised for answer in answers] == [True] * 5 + [False] * 3
    assert all(answer.awaiting for answer in answers)
    await pass_time(waiting, clock)
    assert len(store.counted) + len(store.unpaid) == 8


async def test_feedback_that_comes_while_silence_is_counted_is_not_lost(
    waiting: DecisionServices, store: WatchedStore, clock: Clock
) -> None:
    answer = await ask(waiting)
    feedback = Feedback(1.0, answer.recommendation_id)
    recommender, pending = waiting.feedback._open(feedback, answer.recommendation_id)
    clock.now += WAIT + 3
    learn = store.learn

    def late(records: Sequence[FeedbackRecord]) -> Awaitable[Any]:
        store.learn = learn  # type: ignore[method-assign]
        store.learn(recommender._records([pending]))
        return store.learn(records)

    store.learn = late  # type: ignore[method-assign]
    assert not await waiting.rewards.settle_due(recommender), "looked at again later"
    assert store.counted == []
    await pass_time(waiting, clock, 0)
    assert store.counted == [UNIT]


async def test_one_step_pays_and_opens(waiting: DecisionServices, store: WatchedStore) -> None:
    store.spends.clear()
    await ask(waiting)
    assert store.spends == [1]


async def test_a_store_that_does_not_answer_leaves_decisions_open(
    waiting: DecisionServices, store: WatchedStore, clock: Clock
) -> None:
    for _ in range(3):
        await ask(waiting)
    store.failing = 2
    await pass_time(waiting, clock)
    assert len(store.counted) == 3


async def test_a_death_between_counting_and_closing_counts_nothing_twice(
    waiting: DecisionServices, store: WatchedStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ask(waiting, limit=2)

    def dies(**_: Any) -> Any:
        raise StoreUnavailable

    with monkeypatch.context() as patched:
        patched.setattr(store, "close_decisions", dies)
        with pytest.raises(StoreUnavailable):
            await pass_time(waiting, clock)
    assert store.counted == [0, 0]
    await pass_time(waiting, clock, 5 * 86_400)
    assert store.counted == [0, 0]


async def test_one_worker_at_a_time_looks(
    waiting: DecisionServices, store: WatchedStore, clock: Clock
) -> None:
    other = await opened(store, clock)
    await ask(waiting)
    clock.now += WAIT + 3
    recommender = await waiting.registry.find("films")
    assert await waiting.rewards.settle_due(recommender)
    assert not await other.rewards.settle_due(await other.registry.find("films"))
    await ask(waiting)
    clock.now += 2 * WAIT
    assert await other.rewards.settle_due(await other.registry.find("films")), "its lease ended"


# Retries


async def test_a_retry_after_an_unknown_fate_is_awaited_once(
    waiting: DecisionServices, store: WatchedStore, clock: Clock
) -> None:
    """The first debit was made, and its answer lost; the retry draws anew under the same mark."""
    spend = store.spend

    def loses(debits: Sequence[Debit]) -> Awaitable[Sequence[Any]]:
        spend(debits)
        return Ready([StoreUnavailable()] * len(debits))

    store.spend = loses  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable) as lost:
        await ask(waiting)
    store.spend = spend  # type: ignore[method-assign]
    assert lost.value.event_id is not None
    clock.now += 30
    answer = await ask(waiting, event_id=lost.value.event_id)
    clock.now += WAIT - 1
    await tell(waiting, answer, 1.0)
    await pass_time(waiting, clock)
    assert store.counted == [UNIT]


async def test_repeated_and_parallel_questions_under_one_event_are_one_decision(
    waiting: DecisionServices, store: WatchedStore, clock: Clock
) -> None:
    answers = await asyncio.gather(*(ask(waiting, event_id="click") for _ in range(10)))
    assert len({answer.recommendation_id for answer in answers}) == 1
    assert answers[0].awaiting is True
    assert await ask(waiting, event_id="click") == answers[0]
    await pass_time(waiting, clock)
    assert store.counted == [0]


# Activation


async def test_a_deferred_decision_is_awaited_once_it_is_activated(
    waiting: DecisionServices, store: WatchedStore, clock: Clock
) -> None:
    answer = await ask(waiting, activate=False, event_id="maybe")
    never = await ask(waiting, activate=False)
    assert (answer.awaiting, never.awaiting) == (False, False)
    await pass_time(waiting, clock, 3_600)
    assert store.counted == []
    assert await waiting.rewards.activate(Activation(event_id="maybe"))
    await pass_time(waiting, clock, WAIT - 1)
    assert await waiting.rewards.activate(Activation(answer.recommendation_id)), "the first counts"
    assert store.counted == []
    await pass_time(waiting, clock, 4)
    assert store.counted == [0]
    assert await waiting.rewards.activate(Activation(event_id="maybe"))
    await pass_time(waiting, clock)
    assert store.counted == [0]
    with pytest.raises(RewardConflict, match="default"):
        await tell(waiting, answer, 1.0)


async def test_feedback_on_a_deferred_decision_counts_at_once(
    waiting: DecisionServices, store: WatchedStore, clock: Clock
) -> None:
    answer = await ask(waiting, activate=False)
    await tell(waiting, answer, 1.0)
    await waiting.rewards.activate(Activation(answer.recommendation_id))
    await pass_time(waiting, clock)
    assert store.counted == [UNIT]


async def test_doubt_about_a_deferred_decision_counts_nothing(
    waiting: DecisionServices, store: WatchedStore, clock: Clock
) -> None:
    """Its feedback came before it was opened, and the claim lapsed while nobody looked."""
    answer = await ask(waiting, activate=False)
    await tell(waiting, answer, 1.0)
    await waiting.rewards.activate(Activation(answer.recommendation_id))
    await pass_time(waiting, clock, 3 * 86_400)
    assert store.counted == [UNIT]


async def test_activating_what_awaits_already_changes_nothing(
    waiting: DecisionServices, store: WatchedStore, clock: Clock
) -> None:
    answer = await ask(waiting)
    clock.now += WAIT - 1
    assert await waiting.rewards.activate(Activation(answer.recommendation_id))
    await pass_time(waiting, clock, 4)
    assert store.counted == [0]


async def test_activation_is_refused_like_feedback(waiting: DecisionServices, clock: Clock) -> None:
    answer = await ask(waiting, activate=False)
    for wrong, error in (
        (Activation("forged"), TokenForged),
        (Activation(), InvalidArgument),
        (Activation(answer.recommendation_id, recommenders=frozenset({"books"})), NotAllowed),
    ):
        with pytest.raises(error):
            await waiting.rewards.activate(wrong)
    clock.now = answer.expires_at
    with pytest.raises(TokenExpired):
        await waiting.rewards.activate(Activation(answer.recommendation_id))


async def test_only_what_is_awaited_can_be_deferred(services: DecisionServices) -> None:
    with pytest.raises(InvalidArgument, match=r"reward\.wait"):
        await ask(services, activate=False)


# The bound


async def test_beyond_the_bound_answers_stand_and_are_not_awaited(
    waiting: DecisionServices,
    store: WatchedStore,
    clock: Clock,
    noting: Noting,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await put(waiting, reward={"most_open": 64})
    first, second = [await ask(waiting) for _ in range(2)]
    assert (first.awaiting, second.awaiting) == (True, False)
    assert second.items
    assert noting.not_awaited == 1
    assert (await ask(waiting)).awaiting is False
    assert noting.not_awaited == 2
    assert caplog.text.count("reward.most_open allows no more") == 1, "said once a minute"
    assert await tell(waiting, second, 1.0) == Receipt(duplicate=False), "feedback still counts"
    await pass_time(waiting, clock)
    assert sorted(store.counted) == [0, UNIT]
    assert (await ask(waiting)).awaiting is True, "there is room again"


async def test_how_many_are_open_does_not_tell_whether_feedback_came(
    waiting: DecisionServices, clock: Clock, noting: Noting
) -> None:
    answers = [await ask(waiting, client=f"c{n}") for n in range(6)]
    await pass_time(waiting, clock, 1)
    for answer in answers:
        await tell(waiting, answer, 1.0)
    await pass_time(waiting, clock, 1)
    assert noting.open == [6, 6]
    await pass_time(waiting, clock)
    await pass_time(waiting, clock)
    assert noting.open[-1] == 0


# Erasure


async def test_an_erased_client_counts_no_more(
    waiting: DecisionServices, store: WatchedStore, clock: Clock
) -> None:
    await ask(waiting)
    await ask(waiting, client="another")
    erased = await waiting.clients.erase("someone")
    assert erased.certificate.content()["erased"]["open_decisions"] == 1
    await pass_time(waiting, clock)
    assert store.counted == [0]


async def test_what_was_on_its_way_during_an_erasure_is_not_counted(
    waiting: DecisionServices, store: WatchedStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The erasure finds nothing, because the decision is opened after it has looked."""
    await ask(waiting)
    with monkeypatch.context() as patched:
        patched.setattr(store, "forget_open", lambda **_: Ready(0))
        await waiting.clients.erase("someone")
    clock.now += 2
    await ask(waiting)
    await pass_time(waiting, clock)
    assert store.counted == [0], "only what was decided after the erasure counts"


async def test_a_removed_recommender_drops_its_queue(
    waiting: DecisionServices, store: WatchedStore, clock: Clock
) -> None:
    await ask(waiting)
    generation = (await waiting.registry.find("films")).generation
    await waiting.registry.remove("films")
    assert (await store.due(generation=generation, most=1)).open == 0


async def test_a_decision_that_cannot_be_opened_is_dropped_and_said(
    waiting: DecisionServices, store: WatchedStore, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    await ask(waiting)
    other = await opened(store, clock, token_keys=[bytes(32)])
    clock.now += WAIT + 3
    recommender = await other.registry.find("films")
    assert await other.rewards.settle_due(recommender)
    assert "sealed with a key that is gone" in caplog.text
    assert store.counted == []
    assert (await store.due(generation=recommender.generation, most=1)).open == 0


# Every family


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - {"p-rec"}))
async def test_every_family_counts_silence_once(
    family: str, store: WatchedStore, clock: Clock
) -> None:
    services = await opened(store, clock)
    sample = SAMPLES[family]
    written = {"algorithm": family, **sample.document, "reward": {"wait": "60s", "default": 1}}
    await services.registry.put("films", read_document(written))
    recommender = await services.registry.find("films")
    await sample.prepare(recommender)
    asks = [Ask("films", f"client {n}", **sample.asks[n % 2]) for n in range(6)]
    answers = [await services.recommend.recommend(one) for one in asks]
    assert all(answer.awaiting for answer in answers)
    for answer in answers[:2]:
        await tell(services, answer, 0.0)
    await pass_time(services, clock)
    await pass_time(services, clock, 86_400)
    assert sorted(store.counted) == [0] * 2 + [UNIT] * 4
