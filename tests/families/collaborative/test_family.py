"""What clients are answered, and how feedback, training and documents change it."""

import asyncio
import importlib.util
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from discreet.families.questions import Candidate
from discreet.decisions.clients import erase_client
from discreet.families.collaborative import trainer
from discreet.families.collaborative.trainer import head_key, look, snapshot_key
from discreet.families.documents import ItemDocument
from discreet.decisions.feedback import Feedback, give_feedback
from discreet.families.observer import Count, Figure, NullObserver
from discreet.decisions.runtime import Runtime
from discreet.errors import InvalidArgument, RewardConflict
from discreet.privacy.noise import SystemNoise
from discreet.state.memory import MemoryStore
from tests.families.collaborative.library import (
    CRIME,
    SPACE,
    ask,
    document,
    found,
    read_by_others,
    send,
    train,
)
from tests.decisions.conftest import Clock

pytestmark = pytest.mark.anyio


@pytest.fixture
async def taught(library: Runtime, here: None) -> Runtime:
    await read_by_others(library)
    assert await train(library)
    return library


async def test_unknown_clients_get_popular_items(taught: Runtime) -> None:
    answer = await ask(taught, "stranger")
    assert answer.items == ("knife", "alibi", "motive", *SPACE, "clue")
    assert not answer.personalised
    assert (answer.privacy.epsilon, answer.privacy.spent, answer.privacy.remaining) == (None,) * 3


async def test_a_profile_counts_at_once_and_its_items_are_left_out(taught: Runtime) -> None:
    await send(taught, "reader", "comet", "rocket")
    answer = await ask(taught, "reader")
    assert answer.items == ("orbit", "crater", "knife", "alibi", "motive", "clue")
    assert answer.personalised
    assert answer.privacy.spent is None
    await send(taught, "reader", "alibi")
    assert (await ask(taught, "reader")).items[:3] == ("knife", "motive", "clue")


async def test_before_the_first_training_there_is_an_answer(library: Runtime) -> None:
    assert (await ask(library, "stranger")).items == (*CRIME, *SPACE)
    await send(library, "reader", "alibi")
    answer = await ask(library, "reader", limit=2)
    assert answer.items == ("knife", "motive")
    assert answer.personalised, "it depends on the profile: what that holds is left out"


async def test_only_items_of_a_category(taught: Runtime) -> None:
    await send(taught, "reader", "comet")
    assert set((await ask(taught, "reader", category="space")).items) == {*SPACE, "clue"} - {
        "comet"
    }
    assert set((await ask(taught, "stranger", category="crime", limit=2)).items) == {
        "knife",
        "alibi",
    }
    with pytest.raises(InvalidArgument) as refused:
        await ask(taught, "reader", category="poetry")
    assert refused.value.argument == "category"


async def test_exclusions_and_candidates(taught: Runtime) -> None:
    await send(taught, "reader", "comet")
    answer = await ask(taught, "reader", candidates=["comet", "orbit", "knife"], exclude=["knife"])
    assert answer.items == ("orbit",)
    assert (await ask(taught, "reader", candidates=["comet"])).items == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("context", [0.5]),
        ("features", (1.0,)),
        ("round", "one"),
        ("candidates", [Candidate("knife", (1.0,))]),
        ("candidates", ["no such book"]),
    ],
)
async def test_what_means_nothing_here_is_refused(taught: Runtime, field: str, value: Any) -> None:
    with pytest.raises(InvalidArgument) as refused:
        await ask(taught, "reader", **{field: value})
    assert refused.value.argument == field
    with pytest.raises(InvalidArgument):
        await ask(taught, "reader", event_id="e", **{field: value})
    assert (await ask(taught, "reader", event_id="e")).items, "the event id is still free"


async def test_hidden_removed_and_new_items(taught: Runtime) -> None:
    await send(taught, "reader", "comet")
    await taught.registry.hide_item("books", "rocket", True)
    await taught.registry.remove_item("books", "orbit")
    await taught.registry.add_items("books", [ItemDocument(id="late", categories=["space"])])
    answer = await ask(taught, "reader")
    assert answer.items == ("crater", "knife", "alibi", "motive", "clue", "late")
    assert set((await ask(taught, "reader", category="space")).items) == {"crater", "clue", "late"}


async def test_a_retry_gets_the_same_answer(taught: Runtime) -> None:
    first = await ask(taught, "reader", event_id="once")
    await send(taught, "reader", *CRIME)
    assert await ask(taught, "reader", event_id="once") == first
    assert (await ask(taught, "reader")).items != first.items


async def test_feedback_makes_an_item_popular_for_everybody(taught: Runtime) -> None:
    before = (await ask(taught, "stranger")).items
    assert before[-1] == "clue"
    for reader in range(4):
        answer = await ask(taught, f"another {reader}")
        told = Feedback(reward=0.9, item="clue", recommendation_id=answer.recommendation_id)
        assert not (await give_feedback(taught, told)).duplicate
        assert (await give_feedback(taught, told)).duplicate
    with pytest.raises(RewardConflict):
        await give_feedback(
            taught,
            Feedback(reward=0.1, item="clue", recommendation_id=answer.recommendation_id),
        )
    family = taught.families["collaborative"]
    await family.refresh(taught, await found(taught))
    # 2 profiles and 4 * 0.9: between the 4 profiles of three books and the 3 of the others'.
    assert (await ask(taught, "stranger")).items[0] == "clue"
    await send(taught, "reader", "comet")
    assert (await ask(taught, "reader")).items[:3] == ("rocket", "orbit", "crater")


async def test_feedback_must_name_one_of_several_items(taught: Runtime) -> None:
    token = (await ask(taught, "reader", limit=2)).recommendation_id
    for item in (None, "crater"):
        with pytest.raises(InvalidArgument, match="item"):
            await give_feedback(taught, Feedback(reward=1, item=item, recommendation_id=token))


async def test_removing_erases_the_rewards(taught: Runtime, store: MemoryStore) -> None:
    token = (await ask(taught, "reader", limit=1)).recommendation_id
    await give_feedback(taught, Feedback(reward=1, recommendation_id=token))
    address = (await found(taught)).rewards
    assert (await store.read(addresses=[address]))[0][0] == 1
    await taught.registry.remove("books")
    assert len((await store.read(addresses=[address]))[0]) == 0


async def test_training_waits_for_changes_and_for_its_time(taught: Runtime, clock: Clock) -> None:
    clock.now += 1_000
    assert not await train(taught), "nothing changed"
    await send(taught, "reader", "comet", "clue")
    assert await train(taught)
    await send(taught, "reader", "comet", "knife")
    clock.now += 59
    assert not await train(taught), "too soon"
    clock.now += 1
    assert await train(taught)
    await taught.registry.put("books", document(training={"neighbours": 2}))
    clock.now += 60
    assert await train(taught), "another number of neighbours makes another model"
    assert not await train(taught)


async def test_an_erased_profile_leaves_the_model(
    library: Runtime, clock: Clock, here: None
) -> None:
    await send(library, "odd", "knife", "comet")
    await send(library, "usual", "rocket", "orbit")
    assert await train(library)
    await send(library, "reader", "knife")
    assert (await ask(library, "reader")).items[0] == "comet"
    await erase_client(library, client="odd")
    clock.now += 60
    assert await train(library)
    assert (await ask(library, "stranger")).items[0] == "knife"
    assert (await ask(library, "reader", limit=1, candidates=["comet", "rocket"])).items == (
        "rocket",
    )


async def test_only_one_worker_trains(library: Runtime) -> None:
    await read_by_others(library)
    assert sorted(await asyncio.gather(*(train(library) for _ in range(3)))) == [False, False, True]


async def test_an_overtaken_training_is_thrown_away(
    library: Runtime, here: None, monkeypatch: pytest.MonkeyPatch, store: MemoryStore
) -> None:
    await read_by_others(library)
    books = await found(library)
    slow = trainer._run

    async def overtaken(content: bytes, neighbours: int) -> bytes | None:
        trained = await slow(content, neighbours)
        assert await store.save(key=snapshot_key(books), content=b"of somebody faster") == 1
        return trained

    monkeypatch.setattr(trainer, "_run", overtaken)
    assert not await train(library)
    (held,) = await store.load(keys=[snapshot_key(books)])
    assert held is not None
    assert held.content == b"of somebody faster"


async def test_a_worker_that_lost_its_lease_gives_up(
    library: Runtime, monkeypatch: pytest.MonkeyPatch, store: MemoryStore, clock: Clock
) -> None:
    await read_by_others(library)
    books = await found(library)
    ended = asyncio.Event()

    async def endless(content: bytes, neighbours: int) -> bytes | None:
        clock.now += trainer.LEASE_SECONDS + 1
        assert await store.hold(lease=books.key(b"training"), holder=b"another", seconds=60)
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()
        return None

    monkeypatch.setattr(trainer, "_run", endless)
    monkeypatch.setattr(trainer, "LEASE_SECONDS", 0.03)
    assert not await train(library)
    assert ended.is_set()
    assert (await look(store, books))[0] is None


class Tally(NullObserver):
    """Remembers what was counted and measured."""

    def __init__(self) -> None:
        self.counts: dict[tuple[Count, str], int] = {}
        self.figures: dict[Figure, float] = {}

    def count(self, *, recommender: str, what: Count, label: str = "", amount: int = 1) -> None:
        self.counts[what, label] = self.counts.get((what, label), 0) + amount

    def figure(self, *, recommender: str, what: Figure, value: float, label: str = "") -> None:
        self.figures[what] = value


@asynccontextmanager
async def worker(store: MemoryStore, **options: Any) -> AsyncIterator[Runtime]:
    runtime = await Runtime.open(
        store=store,
        noise=SystemNoise(),
        **{"lease_seconds": 0.05, "survey_seconds": math.inf, **options},
    )
    try:
        yield runtime
    finally:
        await runtime.close()


async def test_a_training_process_that_fails_is_counted_and_the_old_model_stays(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store, tally = MemoryStore(), Tally()
    async with worker(store, observer=tally) as runtime:
        await runtime.registry.put("books", document(training={"seconds": 1}))
        await read_by_others(runtime)
        assert await train(runtime)
        assert tally.counts == {(Count.TRAININGS, "done"): 1}
        assert tally.figures[Figure.PROFILES] == 7
        assert tally.figures[Figure.TRAINING_SECONDS] > 0
        await asyncio.sleep(1)
        await send(runtime, "reader", "comet")
        monkeypatch.setattr(trainer, "_PROGRAM", "discreet.no_such_program")
        assert not await train(runtime)
        assert tally.counts[Count.TRAININGS, "failed"] == 1
        assert "no_such_program" in caplog.text
        assert (await ask(runtime, "reader")).items[0] == "rocket"


async def test_workers_train_and_take_over_by_themselves() -> None:
    store = MemoryStore()
    async with (
        worker(store, survey_seconds=0.1) as first,
        worker(store, survey_seconds=0.1) as second,
    ):
        await first.registry.put("books", document(training={"seconds": 1}))
        await read_by_others(first)
        for runtime in (first, second):
            await send(runtime, "reader", "comet")
            for _ in range(600):
                if (await ask(runtime, "reader")).items[:3] == ("rocket", "orbit", "crater"):
                    break
                await asyncio.sleep(0.05)
            else:
                pytest.fail("this worker never took over what was trained")
        (blob,) = await store.load(keys=[snapshot_key(await found(first))])
        assert blob is not None
        assert blob.version <= 2, "they did not train over and over"
    async with worker(store) as restarted:
        # It does nothing in the background: the snapshot was there before the first question.
        assert (await ask(restarted, "reader")).items[:3] == ("rocket", "orbit", "crater")


async def test_stopping_gives_up_a_training(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def endless(content: bytes, neighbours: int) -> bytes | None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()
        return None

    monkeypatch.setattr(trainer, "_run", endless)
    store = MemoryStore()
    async with worker(store, survey_seconds=0.1) as runtime:
        await runtime.registry.put("books", document())
        await read_by_others(runtime)
        async with asyncio.timeout(30):
            await begun.wait()
        books = await found(runtime)
        assert (await ask(runtime, "stranger")).items, "answering goes on meanwhile"
    assert ended.is_set()
    assert await store.hold(lease=books.key(b"training"), holder=b"next", seconds=1)


async def test_a_recommender_removed_while_it_is_trained_leaves_nothing(
    library: Runtime, here: None, monkeypatch: pytest.MonkeyPatch, store: MemoryStore
) -> None:
    await read_by_others(library)
    books = await found(library)
    run = trainer._run

    async def removed_meanwhile(content: bytes, neighbours: int) -> bytes | None:
        await library.registry.remove("books")
        return await run(content, neighbours)

    monkeypatch.setattr(trainer, "_run", removed_meanwhile)
    await trainer.train(library, books)
    assert await store.load(keys=[head_key(books), snapshot_key(books)]) == [None, None]


async def test_a_snapshot_that_cannot_be_read_is_left_alone(
    taught: Runtime, store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    await send(taught, "reader", "comet")
    books = await found(taught)
    version = await store.save(key=snapshot_key(books), content=b"broken")
    assert version == 2
    head = trainer.Head(version=2, changes=9, neighbours=100, profiles=7, began=0.0)
    await store.save(key=head_key(books), content=head.encode())
    await taught.families["collaborative"].refresh(taught, books)
    assert "cannot be read" in caplog.text
    assert (await ask(taught, "reader")).items[0] == "rocket"


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"version": 2}'])
async def test_a_head_that_cannot_be_read_is_none(
    taught: Runtime, store: MemoryStore, content: bytes
) -> None:
    books = await found(taught)
    await store.save(key=head_key(books), content=content)
    await taught.families["collaborative"].refresh(taught, books)
    assert await train(taught), "and the next training writes another"
    assert (await look(store, books))[0] is not None


async def test_the_training_process_gets_none_of_our_secrets() -> None:
    given = trainer._without_ours({"DISCREET_API_KEY": "k", "PATH": "p", "DISCREET_STORE": "s"})
    assert given == {"PATH": "p"}


async def test_without_the_library_it_says_what_to_install(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "implicit" else find(name, *rest),
    )
    with pytest.raises(InvalidArgument, match=r"discreet\[collaborative\]") as refused:
        await runtime.registry.put("books", document())
    assert refused.value.argument == "algorithm"


def test_a_document_says_aloud_that_nobody_is_protected() -> None:
    assert document().model_dump()["privacy"] == {"mode": "none"}
    with pytest.raises(ValueError, match="none"):
        document(privacy={"mode": "uniform"})
    with pytest.raises(ValueError, match="features"):
        document(items=[{"id": "a", "features": [1.0]}])
