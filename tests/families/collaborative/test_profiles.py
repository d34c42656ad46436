"""Profiles in the store: kept once, replaced, added to, erased without a trace."""

import asyncio

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.collaborative.profiles import PARTS, Profiles
from discreet.state.memory import MemoryStore
from tests.families.collaborative.library import CRIME, SPACE, Library, document

pytestmark = pytest.mark.anyio


async def kept(library: Library, most: int = 10_000) -> list[set[str]]:
    """Return every profile that training would find."""
    books = library.books
    starts, slots = await books.part(Profiles).every(most)
    pieces = np.split(slots, starts[1:-1]) if len(starts) > 1 else []
    found = [{books.id_of[slot] for slot in piece.tolist()} for piece in pieces]
    return sorted(found, key=sorted)


async def changes(library: Library) -> int:
    (version,) = await library.store.versions(keys=[library.books.part(Profiles).changes_key])
    return version


def stored(library: Library) -> tuple[int, int]:
    """Return how many blobs and how many names of the index the store has."""
    store = library.store
    assert isinstance(store, MemoryStore)
    return len(store._blobs), sum(map(len, store._queues.values()))


async def test_a_profile_is_replaced(library: Library) -> None:
    assert await library.send("reader", "knife", "alibi", "knife") == 2
    assert await library.send("reader", "comet") == 1
    assert await kept(library) == [{"comet"}]


async def test_a_profile_is_added_to(library: Library) -> None:
    assert await library.send("reader", "knife", replace=False) == 1
    assert await library.send("reader", "alibi", "knife", replace=False) == 2
    assert await kept(library) == [{"knife", "alibi"}]
    # Nothing is added back that the catalogue has lost meanwhile.
    library.change(items=[item for item in document().items if item.id != "alibi"])
    assert await library.send("reader", "comet", replace=False) == 2
    assert await kept(library) == [{"knife", "comet"}]


async def test_the_same_again_changes_nothing(library: Library) -> None:
    await library.send("reader", "knife", "alibi")
    before = await changes(library)
    library.books.asked = False
    assert await library.send("reader", "alibi", "knife") == 2
    assert await library.send("reader", "alibi", replace=False) == 2
    assert await changes(library) == before
    assert not library.books.asked, "no release is called for"
    await library.send("reader", "alibi")
    assert await changes(library) > before
    assert library.books.asked


async def test_an_empty_profile_is_not_kept(library: Library) -> None:
    assert await library.send("reader") == 0
    assert await changes(library) == 0
    await library.send("reader", "knife")
    assert await library.send("reader", replace=False) == 1
    assert await library.send("reader") == 0
    assert await kept(library) == []
    assert stored(library) == (1, 0), "the number of changes is left"


async def test_unknown_items_are_refused_by_their_place(library: Library) -> None:
    with pytest.raises(InvalidArgument) as refused:
        await library.send("reader", "knife", "dagger", "sword")
    assert refused.value.argument == "items[1]"
    assert "dagger" not in str(refused.value)
    assert await kept(library) == []


async def test_hidden_items_may_have_been_seen(library: Library) -> None:
    items = [item.model_copy(update={"hidden": item.id == "knife"}) for item in document().items]
    library.change(items=items)
    assert await library.send("reader", "knife") == 1
    assert "knife" not in {item.id for item in library.books.part(Profiles).listed}


async def test_requests_of_one_client_in_parallel_lose_nothing(library: Library) -> None:
    await asyncio.gather(
        *(library.send("reader", item, replace=False) for item in (*CRIME, *SPACE))
    )
    assert await kept(library) == [{*CRIME, *SPACE}]


async def test_an_erased_client_leaves_no_trace(library: Library) -> None:
    await library.send("reader", "knife", "alibi")
    await library.send("another", "comet")
    before = await changes(library)
    assert await library.books.forget("reader") == 1
    assert await kept(library) == [{"comet"}]
    assert await changes(library) > before
    assert await library.books.forget("reader") == 0
    assert await library.books.forget("another") == 1
    assert stored(library) == (1, 0)


async def test_an_erasure_that_was_interrupted_is_finished_by_the_next(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    await library.send("reader", "knife", "alibi")

    def lost(**_: object) -> None:
        raise ConnectionError

    with monkeypatch.context() as broken:
        broken.setattr(library.store, "erase", lost)
        with pytest.raises(ConnectionError):
            await library.books.forget("reader")
    assert await library.books.forget("reader") == 1


async def test_training_forgets_names_without_a_profile(library: Library) -> None:
    await library.send("reader", "knife")
    who = library.books.principal("reader")
    await library.store.erase(keys=[library.books.key(b"profile", who)])
    assert await kept(library) == []
    assert stored(library) == (1, 0)


async def test_more_profiles_than_allowed_are_sampled(library: Library) -> None:
    for reader in range(5 * PARTS):
        await library.send(f"reader {reader}", CRIME[reader % 4])
    assert len(await kept(library)) == 5 * PARTS
    # At most one from each of the index's parts.
    assert 1 <= len(await kept(library, most=PARTS)) <= PARTS


async def test_profiles_are_read_in_the_order_of_the_questions(library: Library) -> None:
    await library.send("reader", "knife", "alibi")
    books = library.books
    reader, stranger = books.principal("reader"), books.principal("stranger")
    found = await books.part(Profiles).read([reader, stranger, reader])
    assert [slots.tolist() for slots in found] == [[0, 1], [], [0, 1]]


async def test_removing_a_recommender_erases_everything(library: Library, here: None) -> None:
    await library.read_by_others()
    await library.reward("reader", "knife")
    await library.release()
    await library.reward("reader", "clue")
    await library.books.erase()
    assert stored(library) == (0, 0)
    store = library.store
    assert isinstance(store, MemoryStore)
    assert not store._open
    assert not store._frozen


async def test_a_client_is_kept_as_a_digest(library: Library) -> None:
    await library.send("somebody-with-a-name", "knife")
    store = library.store
    assert isinstance(store, MemoryStore)
    assert "somebody" not in repr((store._blobs, store._queues, store._pages, store._rosters))


async def test_the_catalogue_shows_what_may_be_recommended(library: Library) -> None:
    profiles = library.books.part(Profiles)
    assert [item.id for item in profiles.listed] == [*CRIME, *SPACE]
    assert profiles.listed[0].title == "Knife"
    assert profiles.categories == ("crime", "space")
