"""Changes are seen by everybody once they are acknowledged, and lose nothing that was learned."""

import asyncio
import math

import pytest

from discreet.families.documents import ItemDocument
from discreet.decisions.feedback import Feedback, give_feedback
from discreet.families.p_dap.answering import Ask
from discreet.decisions.recommend import recommend
from discreet.decisions.runtime import Runtime
from discreet.errors import InvalidArgument, UnknownItem, UnknownRecommender
from discreet.privacy.noise import SystemNoise
from discreet.state.memory import MemoryStore
from tests.decisions.conftest import document

pytestmark = pytest.mark.anyio


async def worker(store: MemoryStore) -> Runtime:
    return await Runtime.open(
        store=store, noise=SystemNoise(), lease_seconds=0.05, survey_seconds=math.inf
    )


async def test_another_worker_sees_a_change_once_it_is_acknowledged(store: MemoryStore) -> None:
    first, second = await worker(store), await worker(store)
    ask = Ask(recommender="films", client="c", context=[0.1, 0.1])
    for round_ in range(5):
        items = [f"item {round_}"]
        await first.registry.put("films", document(items=items))
        assert (await recommend(second, ask)).items == tuple(items)
    await first.registry.remove("films")
    with pytest.raises(UnknownRecommender):
        await recommend(second, ask)
    await first.close()
    await second.close()


async def test_without_its_lease_a_worker_asks_again(store: MemoryStore) -> None:
    runtime = await worker(store)
    await runtime.registry.stop()
    await asyncio.sleep(0.06)
    assert runtime.registry.trusted() is None
    await runtime.registry.current()
    assert runtime.registry.trusted() is not None
    await runtime.close()


async def test_parallel_changes_are_all_kept(store: MemoryStore) -> None:
    first, second = await worker(store), await worker(store)
    await first.registry.put("films", document(items=[]))
    await asyncio.gather(
        *(
            runtime.registry.add_items("films", [ItemDocument(id=f"{index}")])
            for index, runtime in enumerate([first, second] * 10)
        )
    )
    assert {item["id"] for item in await first.registry.items("films")} == set(map(str, range(20)))
    await first.close()
    await second.close()


async def test_changing_epsilon_or_exploration_keeps_what_was_learned(runtime: Runtime) -> None:
    ask = Ask(recommender="films", client="c", context=[0.1, 0.1])
    answer = await recommend(runtime, ask)
    await give_feedback(runtime, Feedback(1.0, recommendation_id=answer.recommendation_id))
    before = await runtime.registry.find("films")
    created = await runtime.registry.put(
        "films", document(privacy={"epsilon": 0.5}, exploration={"rate": 0.2})
    )
    after = await runtime.registry.find("films")
    assert not created
    assert after.generation == before.generation
    assert await runtime.store.count_cells(index=after.generation) == 1
    assert (await recommend(runtime, ask._replace(client="d"))).privacy.epsilon == 0.5


async def test_an_item_keeps_its_slot_and_nobody_inherits_it(runtime: Runtime) -> None:
    slots = (await runtime.registry.find("films")).slot_of
    await runtime.registry.remove_item("films", "b")
    await runtime.registry.add_items("films", [ItemDocument(id="new"), ItemDocument(id="b")])
    after = (await runtime.registry.find("films")).slot_of
    assert {after[item] for item in "acd"} == {slots[item] for item in "acd"}
    assert after["new"] not in slots.values()
    assert after["b"] not in slots.values()


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("context.dimensions", {"context": {"dimensions": 3}}),
        ("partition.segments", {"partition": {"segments": 3}}),
    ],
)
async def test_a_change_that_would_lose_what_was_learned_is_refused(
    runtime: Runtime, field: str, change: dict[str, dict[str, int]]
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        await runtime.registry.put("films", document(**change))
    assert caught.value.argument == field


async def test_unknown_names_are_said(runtime: Runtime) -> None:
    with pytest.raises(UnknownItem):
        await runtime.registry.hide_item("films", "unheard of", True)
    with pytest.raises(UnknownRecommender):
        await runtime.registry.add_items("nobody", [ItemDocument(id="x")])
    with pytest.raises(UnknownRecommender):
        await runtime.registry.remove("nobody")


async def test_removing_a_recommender_erases_what_it_learned(runtime: Runtime) -> None:
    answer = await recommend(runtime, Ask(recommender="films", client="c", context=[0.1, 0.1]))
    await give_feedback(runtime, Feedback(1.0, recommendation_id=answer.recommendation_id))
    generation = (await runtime.registry.find("films")).generation
    cells = list(await runtime.store.cells(index=generation, most=10))
    await runtime.registry.remove("films")
    assert await runtime.store.count_cells(index=generation) == 0
    assert [len(vector) for vector in await runtime.store.read(addresses=cells)] == [0]
