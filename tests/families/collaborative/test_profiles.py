"""Profiles in the store: kept once, replaced, added to, erased without a trace."""

import asyncio

import numpy as np
import pytest

from discreet.decisions.clients import erase_client
from discreet.families.collaborative.profiles import (
    PARTS,
    every_profile,
    keep_profile,
    profile_key,
)
from discreet.families.collaborative.trainer import look
from discreet.families.documents import ItemDocument
from discreet.decisions.runtime import Runtime
from discreet.errors import InvalidArgument
from discreet.state.memory import MemoryStore
from tests.families.collaborative.library import CRIME, SPACE, found, read_by_others, send, train

pytestmark = pytest.mark.anyio


async def kept(runtime: Runtime, most: int = 10_000) -> list[set[str]]:
    """Return every profile that training would find."""
    books = await found(runtime)
    starts, slots = await every_profile(runtime.store, books, most=most)
    return sorted(
        ({books.id_of[slot] for slot in piece.tolist()} for piece in np.split(slots, starts[1:-1]))
        if len(starts) > 1
        else [],
        key=sorted,
    )


async def changes(runtime: Runtime) -> int:
    return (await look(runtime.store, await found(runtime)))[1]


async def test_a_profile_is_replaced(library: Runtime) -> None:
    assert await send(library, "reader", "knife", "alibi", "knife") == 2
    assert await send(library, "reader", "comet") == 1
    assert await kept(library) == [{"comet"}]


async def test_a_profile_is_added_to(library: Runtime) -> None:
    assert await send(library, "reader", "knife", replace=False) == 1
    assert await send(library, "reader", "alibi", "knife", replace=False) == 2
    assert await kept(library) == [{"knife", "alibi"}]
    # Nothing is added back that the catalogue has lost meanwhile.
    await library.registry.remove_item("books", "alibi")
    assert await send(library, "reader", "comet", replace=False) == 2
    assert await kept(library) == [{"knife", "comet"}]


async def test_the_same_again_changes_nothing(library: Runtime) -> None:
    await send(library, "reader", "knife", "alibi")
    before = await changes(library)
    assert await send(library, "reader", "alibi", "knife") == 2
    assert await send(library, "reader", "alibi", replace=False) == 2
    assert await changes(library) == before
    await send(library, "reader", "alibi")
    assert await changes(library) > before


async def test_an_empty_profile_is_not_kept(library: Runtime, store: MemoryStore) -> None:
    assert await send(library, "reader") == 0
    assert await changes(library) == 0
    await send(library, "reader", "knife")
    assert await send(library, "reader", replace=False) == 1
    assert await send(library, "reader") == 0
    assert await kept(library) == []
    assert traces(store) == {b"changes"}


async def test_unknown_items_are_refused_by_their_place(library: Runtime) -> None:
    with pytest.raises(InvalidArgument) as refused:
        await send(library, "reader", "knife", "dagger", "sword")
    assert refused.value.argument == "items.1"
    assert "dagger" not in str(refused.value)
    assert await kept(library) == []


async def test_hidden_items_may_have_been_seen(library: Runtime) -> None:
    await library.registry.hide_item("books", "knife", True)
    assert await send(library, "reader", "knife") == 1


async def test_requests_of_one_client_in_parallel_lose_nothing(library: Runtime) -> None:
    await asyncio.gather(
        *(send(library, "reader", item, replace=False) for item in (*CRIME, *SPACE))
    )
    assert await kept(library) == [{*CRIME, *SPACE}]


def traces(store: MemoryStore) -> set[bytes]:
    """Return what is left in the store of any collaborative recommender, by kind."""
    blobs = {key[9:].split(b"/")[0] for key in store._blobs}
    return blobs | {b"profiles" for letters in store._queues.values() if letters}


async def test_an_erased_client_leaves_no_trace(library: Runtime, store: MemoryStore) -> None:
    await send(library, "reader", "knife", "alibi")
    await send(library, "another", "comet")
    before = await changes(library)
    assert (await erase_client(library, client="reader")).records == 1
    assert await kept(library) == [{"comet"}]
    assert await changes(library) > before
    assert (await erase_client(library, client="reader")).records == 0
    assert (await erase_client(library, client="another")).records == 1
    assert traces(store) == {b"changes"}


async def test_an_erasure_that_was_interrupted_is_finished_by_the_next(
    library: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    await send(library, "reader", "knife", "alibi")

    def lost(**_: object) -> None:
        raise ConnectionError

    with monkeypatch.context() as broken:
        broken.setattr(library.store, "erase", lost)
        with pytest.raises(ConnectionError):
            await erase_client(library, client="reader")
    assert (await erase_client(library, client="reader")).records == 1


async def test_training_forgets_names_without_a_profile(
    library: Runtime, store: MemoryStore
) -> None:
    await send(library, "reader", "knife")
    books = await found(library)
    who = library.principals.client("books", "reader")
    await store.erase(keys=[profile_key(books, who)])
    assert await kept(library) == []
    assert not any(store._queues.values())


async def test_more_profiles_than_allowed_are_sampled(library: Runtime) -> None:
    books = await found(library)
    for reader in range(5 * PARTS):
        await keep_profile(
            library, books, client=f"reader {reader}", slots=books.slots_of([CRIME[reader % 4]])
        )
    assert len(await kept(library)) == 5 * PARTS
    # At most one from each of the index's parts.
    assert 1 <= len(await kept(library, most=PARTS)) <= PARTS


async def test_removing_a_recommender_erases_everything(
    library: Runtime, here: None, store: MemoryStore
) -> None:
    await read_by_others(library)
    assert await train(library)
    assert traces(store) == {b"changes", b"head", b"profile", b"profiles", b"snapshot"}
    await library.registry.remove("books")
    assert traces(store) == set()


async def test_a_client_is_kept_as_a_digest(library: Runtime, store: MemoryStore) -> None:
    await send(library, "somebody-with-a-name", "knife")
    held = repr((store._blobs, store._queues, store._pages, store._rosters))
    assert "somebody" not in held


async def test_items_that_come_later_can_be_sent_at_once(library: Runtime) -> None:
    await library.registry.add_items("books", [ItemDocument(id="late")])
    assert await send(library, "reader", "late", "knife") == 2
