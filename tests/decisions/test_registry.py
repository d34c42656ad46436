"""Changes are seen by everybody once they are acknowledged, and lose nothing that was learned."""

import asyncio
import gc
import json
from typing import Any

import pytest

from discreet.decisions import changes
from discreet.decisions.registry import RECOMMENDER
from discreet.decisions.services import DecisionServices, open_services
from discreet.errors import (
    InvalidArgument,
    RecommenderUnreadable,
    StoreUnavailable,
    UnknownDecision,
    UnknownItem,
    UnknownRecommender,
)
from discreet.families.documents import ItemDocument
from discreet.families.questions import Ask, Feedback
from discreet.families.stored import RECORD_SCHEMA, describe
from discreet.privacy.noise import SystemNoise
from discreet.state.memory import MemoryStore
from tests.decisions.conftest import ask, document, gathered, opened, privacy

pytestmark = pytest.mark.anyio


async def worker(store: MemoryStore) -> DecisionServices:
    return await open_services(store=store, noise=SystemNoise(), lease_seconds=0.05)


async def test_another_worker_sees_a_change_once_it_is_acknowledged(store: MemoryStore) -> None:
    first, second = await worker(store), await worker(store)
    ask = Ask(recommender="films", client="c", context=[0.1, 0.1])
    for round_ in range(5):
        items = [f"item {round_}"]
        await first.registry.put("films", document(items=items))
        assert (await second.recommend.recommend(ask)).items == tuple(items)
    await first.registry.remove("films")
    with pytest.raises(UnknownRecommender):
        await second.recommend.recommend(ask)
    await first.close()
    await second.close()


async def test_without_its_lease_a_worker_asks_again(store: MemoryStore) -> None:
    services = await worker(store)
    await services.registry.stop()
    while services.registry.trusted() is not None:  # noqa: ASYNC110  time tells nobody
        await asyncio.sleep(0.01)
    asked = services.registry._snapshot
    # Another worker's change is seen, though nothing looks for it in the background.
    other = await opened(store)
    await other.registry.put("songs", document())
    assert await services.registry.names() == ["songs"]
    assert services.registry._snapshot is not asked
    await other.close()
    await services.close()


async def test_parallel_changes_are_all_kept(store: MemoryStore) -> None:
    first, second = await worker(store), await worker(store)
    await first.registry.put("films", document(items=[]))
    await asyncio.gather(
        *(
            each.registry.change("films", changes.add_items([ItemDocument(id=f"{index}")]))
            for index, each in enumerate([first, second] * 10)
        )
    )
    assert set((await first.registry.find("films")).slot_of) == set(map(str, range(20)))
    await first.close()
    await second.close()


async def test_changing_epsilon_or_exploration_keeps_what_was_learned(
    services: DecisionServices,
) -> None:
    ask = Ask(recommender="films", client="c", context=[0.1, 0.1])
    answer = await services.recommend.recommend(ask)
    await services.feedback.record(Feedback(1.0, recommendation_id=answer.recommendation_id))
    before = await services.registry.find("films")
    created = await services.registry.put(
        "films", document(privacy=privacy(epsilon=0.5), exploration={"rate": 0.2})
    )
    after = await services.registry.find("films")
    assert not created.created
    assert after.generation == before.generation
    assert await gathered(services) == 1
    assert (await services.recommend.recommend(ask._replace(client="d"))).privacy.epsilon == 0.5


async def test_an_item_keeps_its_slot_and_nobody_inherits_it(services: DecisionServices) -> None:
    slots = (await services.registry.find("films")).slot_of
    await services.registry.change("films", changes.remove_item("b"))
    await services.registry.change(
        "films", changes.add_items([ItemDocument(id="new"), ItemDocument(id="b")])
    )
    after = (await services.registry.find("films")).slot_of
    assert {after[item] for item in "acd"} == {slots[item] for item in "acd"}
    assert after["new"] not in slots.values()
    assert after["b"] not in slots.values()


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("context.dimensions", {"context": {"dimensions": 3}}),
        ("partition.segments", {"partition": {"segments": 3}}),
        ("privacy.feedback", {"privacy": privacy(feedback="exact")}),
        ("privacy.feedback", {"privacy": privacy(feedback={"epsilon": 2.0})}),
    ],
)
async def test_a_change_that_would_lose_what_was_learned_is_refused(
    services: DecisionServices, field: str, change: dict[str, object]
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        await services.registry.put("films", document(**change))
    assert caught.value.argument == field


async def test_unknown_names_are_said(services: DecisionServices) -> None:
    with pytest.raises(UnknownItem):
        await services.registry.change("films", changes.change_item("unheard of", {"hidden": True}))
    with pytest.raises(UnknownRecommender):
        await services.registry.change("nobody", changes.add_items([ItemDocument(id="x")]))
    with pytest.raises(UnknownRecommender):
        await services.registry.remove("nobody")


async def test_removing_a_recommender_erases_what_it_learned(services: DecisionServices) -> None:
    answer = await ask(services)
    await services.feedback.record(Feedback(1.0, recommendation_id=answer.recommendation_id))
    recommender = await services.registry.find("films")
    await services.releaser.release(recommender)
    answer = await ask(services)
    await services.feedback.record(Feedback(1.0, recommendation_id=answer.recommendation_id))
    await services.registry.remove("films")
    generation = recommender.generation
    await services.store.freeze(generation=generation, number=1)
    assert await services.store.frozen(generation=generation, number=1) == {}
    assert await services.store.load(keys=[recommender.key(b"model")]) == [None]


async def test_every_worker_drops_what_was_replaced(store: MemoryStore) -> None:
    first, second = await worker(store), await worker(store)
    await first.registry.put("films", document())
    before = await second.registry.find("films")
    closed: list[bool] = []

    async def note() -> None:
        closed.append(True)

    before.close = note  # type: ignore[method-assign]
    await first.registry.put("films", document(exploration={"rate": 0.5}))
    assert await second.registry.find("films") is not before
    assert closed == [True]
    await first.close()
    await second.close()


async def rewritten(services: DecisionServices, name: str, **newer: Any) -> None:
    """Change a stored record as another version would: `document=…` adds fields to the document."""
    full = RECOMMENDER + name
    content = (await services.store.registry()).documents[full]
    fields = json.loads(content)
    fields["document"].update(newer.pop("document", {}))
    fields.update(newer)
    changed = json.dumps(fields).encode()
    assert await services.store.put_document(name=full, document=changed, expected=content)
    await services.registry.settle()


async def test_a_change_that_was_seen_before_it_was_acknowledged_is_in_memory_once(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = await open_services(store=store, noise=SystemNoise(), lease_seconds=0.02)
    registry, put = services.registry, store.put_document

    async def put_and_look(**named: Any) -> bool:
        done = await put(**named)
        await registry.refresh()  # as it does by itself, a moment later
        return done

    monkeypatch.setattr(store, "put_document", put_and_look)
    for seconds in (3_600, 7_200):
        await registry.put("films", document(decision_ttl_seconds=seconds))
    assert not registry._built
    await services.close()


async def test_a_newer_field_is_tolerated_and_kept(services: DecisionServices) -> None:
    await rewritten(services, "films", document={"novelty": 2}, lineage="x")
    assert await services.registry.unreadable() == {}
    await services.registry.change("films", changes.change_item("a", {"hidden": True}))
    fields = json.loads((await services.store.registry()).documents[RECOMMENDER + "films"])
    assert (fields["document"]["novelty"], fields["lineage"]) == (2, "x")
    assert "novelty" not in describe((await services.registry.find("films")).stored.document)
    await services.registry.put("films", document())
    fields = json.loads((await services.store.registry()).documents[RECOMMENDER + "films"])
    assert "novelty" not in fields["document"]
    assert fields["lineage"] == "x"


async def test_an_unreadable_recommender_harms_no_other_and_can_be_repaired(
    services: DecisionServices,
) -> None:
    await services.registry.put("songs", document())
    spent = await ask(services)
    await rewritten(services, "films", schema=RECORD_SCHEMA + 1)
    assert await services.registry.names() == ["songs"]
    assert "newer version" in (await services.registry.unreadable())["films"]
    await ask(services, recommender="songs")
    with pytest.raises(RecommenderUnreadable, match="newer version"):
        await ask(services)
    # Not "unknown", in a batch either: whoever is told so throws it away.
    unread, unknown = await services.recommend.recommend_many(
        [Ask("films", "ada", (0.2, 0.8)), Ask("poems", "ada", (0.2, 0.8))]
    )
    assert isinstance(unread, RecommenderUnreadable)
    assert isinstance(unknown, UnknownRecommender)
    feedback = Feedback(1.0, recommendation_id=spent.recommendation_id)
    with pytest.raises(RecommenderUnreadable, match="newer version"):
        await services.feedback.record(feedback)
    (refused,) = await services.feedback.record_many([feedback])
    assert isinstance(refused, RecommenderUnreadable)
    # A file's recommender must not replace what a newer version may be serving.
    with pytest.raises(RecommenderUnreadable, match="PUT it anew"):
        await services.registry.put("films", document())
    with pytest.raises(RecommenderUnreadable):
        await services.registry.change("films", changes.change_item("a", {"hidden": True}))
    assert (await services.registry.put("films", document(), repair=True)).created
    assert await services.registry.unreadable() == {}
    with pytest.raises(UnknownDecision):
        await services.feedback.record(feedback)
    again = await ask(services)
    # What was spent under the name stays spent.
    assert spent.privacy.remaining is not None
    assert again.privacy.remaining is not None
    assert again.privacy.remaining.epsilon < spent.privacy.remaining.epsilon


async def test_an_unreadable_recommender_can_be_removed(services: DecisionServices) -> None:
    await rewritten(services, "films", document={"algorithm": "later"})
    await services.registry.remove("films")
    assert await services.registry.unreadable() == {}
    with pytest.raises(UnknownRecommender):
        await services.registry.remove("films")


class SlowStore(MemoryStore):
    """Lets a question about the epoch wait, and answers it with an error once it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.slow = False
        self.asked = asyncio.Event()
        self.answer = asyncio.Event()
        self.closed = False

    async def epoch(self) -> int:
        if self.slow:
            self.asked.set()
            await self.answer.wait()
            if self.closed:
                raise StoreUnavailable("the store is closed")
        return await super().epoch()

    async def close(self) -> None:
        self.closed = True
        self.answer.set()
        await super().close()


def complaints() -> list[dict[str, Any]]:
    """What the loop says of itself from now on: of errors that nobody looked at, for instance."""
    said: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    return said


async def test_a_refresh_under_way_has_ended_before_the_store_is_closed() -> None:
    said, store = complaints(), SlowStore()
    services = await worker(store)
    store.slow = True
    await store.asked.wait()
    closing = asyncio.create_task(services.close())
    for _ in range(20):
        await asyncio.sleep(0)
    assert not store.closed, "the refresh still asks it"
    store.answer.set()
    await closing
    assert store.closed
    del services, closing
    gc.collect()
    assert said == []


async def test_nobody_is_told_of_a_refresh_that_failed_after_everybody_had_gone() -> None:
    said, store = complaints(), SlowStore()
    services = await worker(store)
    await services.registry.stop()
    store.slow = True
    request = asyncio.create_task(services.registry.refresh())
    await store.asked.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    await store.close()
    for _ in range(20):
        await asyncio.sleep(0)
    store.closed = False
    await services.registry.refresh()  # another, so that the first is kept no more
    del request
    gc.collect()
    assert said == []
    await services.close()
