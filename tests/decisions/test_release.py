"""A release: the old model or the new one, never half of one, and never noise for it twice."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from discreet.decisions.release import Releaser
from discreet.decisions.services import DecisionServices
from discreet.errors import RecommenderUnreadable, StoreUnavailable
from discreet.families.observer import FamilyGauge, NullObserver
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.families.questions import Feedback
from discreet.families.stored import UnreadableRecord
from discreet.privacy.noise import SystemNoise
from discreet.state.memory import MemoryStore
from discreet.state.ready import Failed
from tests.decisions.conftest import Clock, ask, document, opened, privacy

pytestmark = pytest.mark.anyio


async def films(services: DecisionServices) -> PartitionRecommender:
    found = await services.registry.find("films")
    assert isinstance(found, PartitionRecommender)
    return found


async def click(services: DecisionServices, client: str = "someone", reward: float = 1.0) -> None:
    answer = await ask(services, client=client)
    given = Feedback(reward, recommendation_id=answer.recommendation_id)
    assert (await services.feedback.record(given)).learned


def total(recommender: PartitionRecommender) -> float:
    return float(recommender.current.model.own.statistics.arrivals().sum())


async def test_a_model_holds_what_was_gathered(services: DecisionServices) -> None:
    await services.registry.put("exact", document(privacy=privacy(feedback="exact")))
    for place in range(7):
        answer = await ask(services, recommender="exact", client=f"c{place}")
        await services.feedback.record(Feedback(1.0, recommendation_id=answer.recommendation_id))
    recommender = await services.registry.find("exact")
    assert isinstance(recommender, PartitionRecommender)
    assert total(recommender) == 0.0
    assert await services.releaser.release(recommender)
    assert (recommender.current.number, total(recommender)) == (1, 7.0)
    assert await services.releaser.release(recommender)
    assert (recommender.current.number, total(recommender)) == (2, 7.0)


async def test_noise_is_added_to_every_item_of_every_cell(services: DecisionServices) -> None:
    recommender = await films(services)
    await services.releaser.release(recommender)
    statistics = recommender.current.model.own.statistics
    assert (statistics.liked != 0).all()
    assert (statistics.disliked != 0).all()
    assert np.allclose(np.sqrt(statistics.variance), 6.41, atol=0.01)


async def test_another_worker_answers_from_the_model_within_a_look(
    store: MemoryStore, clock: Clock
) -> None:
    first, second = await opened(store, clock), await opened(store, clock)
    await first.registry.put("films", document())
    await second.registry.refresh()
    await first.releaser.release(await films(first))
    theirs = await films(second)
    assert theirs.current.number == 0
    await second.releaser.load_newer(second.registry.loaded())
    assert theirs.current.number == 1
    mine = (await films(first)).current.model.own.statistics
    assert np.array_equal(theirs.current.model.own.statistics.liked, mine.liked)


Step = Callable[..., Awaitable[Any]]


@pytest.mark.parametrize("step", ["freeze", "frozen", "save", "discard"])
async def test_a_crash_anywhere_leaves_the_old_model_or_the_new_one(
    store: MemoryStore, clock: Clock, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = await opened(store, clock)
    await services.registry.put("films", document(privacy=privacy(feedback="exact", budget=1e3)))
    for place in range(3):
        await click(services, f"c{place}")
    recommender = await films(services)

    def crash(*given: Any, **named: Any) -> Any:
        return Failed(StoreUnavailable())

    monkeypatch.setattr(store, step, crash)
    with pytest.raises(StoreUnavailable):
        await services.releaser.release(recommender)
    monkeypatch.undo()
    # Another worker goes on from what is in the store.
    other = await opened(store, clock)
    theirs = await films(other)
    assert total(theirs) in (0.0, 3.0)
    await click(other, "d")
    await other.releaser.release(theirs)
    await other.releaser.release(theirs)
    assert total(theirs) == 4.0, "nothing is lost, and nothing counted twice"


async def test_of_two_workers_that_release_at_once_one_model_stands(
    store: MemoryStore, clock: Clock
) -> None:
    first, second = await opened(store, clock), await opened(store, clock)
    await first.registry.put("films", document())
    await second.registry.refresh()
    workers = [(first.releaser, await films(first)), (second.releaser, await films(second))]
    done = await asyncio.gather(*(releaser.release(one) for releaser, one in workers))
    assert sorted(done) == [False, True]
    for releaser, one in workers:
        await releaser.load(one)
    models = [one.current.model.own.statistics.liked for _, one in workers]
    assert np.array_equal(*models)


async def test_a_release_happens_by_the_clock_and_only_if_somebody_asked(
    services: DecisionServices, clock: Clock
) -> None:
    recommender = await films(services)
    release = services.releaser.release_if_due
    clock.now += 10
    assert not await release(recommender), "nobody asked"
    await ask(services)
    assert await release(recommender)
    await ask(services)
    assert not await release(recommender), "too soon"
    clock.now += 100
    assert await release(recommender)
    clock.now += 1_000
    assert not await release(recommender), "nobody asked since"


async def moments(clicks: int) -> list[int]:
    """The seconds at which models are released, with so many of five answers clicked."""
    clock = Clock()
    services = await opened(MemoryStore(clock=clock), clock)
    await services.registry.put("films", document(privacy=privacy(budget=1e3)))
    recommender, found = await films(services), []
    for second in range(40):
        clock.now += 1
        answers = [await ask(services, client=f"{second}/{n}") for n in range(5)]
        for answer in answers[:clicks]:
            token = answer.recommendation_id
            await services.feedback.record(Feedback(1.0, recommendation_id=token))
        if await services.releaser.release_if_due(recommender):
            found.append(second)
    return found


async def test_the_moment_of_a_release_does_not_depend_on_feedback() -> None:
    silent = await moments(0)
    assert 5 < len(silent) < 40
    assert await moments(5) == silent


async def test_answers_depend_on_the_model_and_not_on_sums(
    store: MemoryStore, clock: Clock
) -> None:
    """Two stores with different sums and the same model answer by the same law."""
    services = await opened(store, clock)
    await services.registry.put("films", document(privacy=privacy(budget=1e6)))
    recommender = await films(services)
    await services.releaser.release(recommender)
    before = recommender.current.model.own
    law = before.odds(before.outlook(recommender.rule), recommender.visible, 0).law(0)
    for place in range(50):
        await click(services, f"c{place}")
    own = recommender.current.model.own
    assert own is before
    assert own.odds(own.outlook(recommender.rule), recommender.visible, 0).law(0) == law


async def test_a_model_that_cannot_be_read_leaves_the_one_before(
    services: DecisionServices, store: MemoryStore, clock: Clock
) -> None:
    recommender = await films(services)
    await services.releaser.release(recommender)
    model = recommender.current.model
    releaser = services.releaser
    for content in (b"12345678 not a model", b"short"):
        await store.save(key=recommender.key(b"model"), content=content)
        with pytest.raises(UnreadableRecord, match="released model"):
            await releaser.load(recommender)
        await releaser.load_newer([recommender])
        assert recommender.current.model is model
    # It releases nothing either: what it would add to is not what was released last.
    await ask(services)
    clock.now += 10**6
    assert not await releaser.release_if_due(recommender)
    # Somebody who begins now has no model to answer from.
    other = await opened(store, clock)
    with pytest.raises(RecommenderUnreadable, match="released model"):
        await ask(other)
    # Begun anew, it learns again, and nothing is left of what it had learned.
    assert await other.registry.put("films", document(), repair=True)
    await ask(other)
    assert (await store.load(keys=[recommender.key(b"model")])) == [None]
    await other.close()


class GaugeObserver(NullObserver):
    """Keeps the last value of every gauge."""

    def __init__(self) -> None:
        self.values: dict[FamilyGauge, float] = {}

    def gauge(self, *, recommender: str, what: FamilyGauge, value: float, label: str = "") -> None:
        self.values[what] = value


async def test_a_release_says_when_it_was_made_and_when_the_next_is_due(
    services: DecisionServices, store: MemoryStore, clock: Clock
) -> None:
    recommender, observer = await films(services), GaugeObserver()
    releaser = Releaser(store=store, noise=SystemNoise(), observer=observer, clock=clock)
    clock.now += 100
    assert await releaser.release(recommender)
    made, due = (
        observer.values[what] for what in (FamilyGauge.RELEASED_AT, FamilyGauge.RELEASE_DUE)
    )
    assert (observer.values[FamilyGauge.RELEASE], made) == (1, clock.now)
    assert not recommender.due(due - 0.001)
    assert recommender.due(due + 0.001)


class SlowStore(MemoryStore):
    """Takes a second for every block that was set aside."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock=clock)
        self._turned = clock

    async def frozen(self, *, generation: bytes, number: int) -> Any:
        blocks = await super().frozen(generation=generation, number=number)
        self._turned.now += len(blocks)
        return blocks


async def test_the_moment_of_a_release_does_not_tell_how_much_there_was_to_do() -> None:
    moments = []
    for clicks in (0, 5):
        clock = Clock()
        services = await opened(SlowStore(clock), clock)
        await services.registry.put("films", document())
        for place in range(clicks):
            await click(services, client=f"c{place}")
        recommender = await films(services)
        began = clock.now
        assert await services.releaser.release(recommender)
        assert (clock.now > began) == (clicks > 0)
        moments.append(recommender.current.released_at)
        await services.close()
    assert moments[0] == moments[1]
