"""What anybody is shown: the released model's popular items, for everybody alike."""

import pytest

from discreet.families.collaborative.popularity import PopularItems
from discreet.families.documents import ItemDocument
from tests.families.collaborative.library import SPACE, Library

pytestmark = pytest.mark.anyio


async def test_rows_are_what_a_stranger_is_answered(library: Library, here: None) -> None:
    await library.read_by_others()
    await library.release()
    overall, *by_category = library.books.part(PopularItems).rows(100)
    assert overall == (None, (await library.ask("stranger")).items)
    assert {row.category for row in by_category} == set(library.books._slots_in)
    for row in by_category:
        assert set(row.items) <= set(overall.items)
        assert row.items == tuple(item for item in overall.items if item in row.items)


async def test_the_limit_holds_for_each_row(library: Library) -> None:
    rows = library.books.part(PopularItems).rows(2)
    assert {len(row.items) for row in rows} == {2}


async def test_a_profile_changes_nothing_before_a_release(library: Library) -> None:
    before = library.books.part(PopularItems).rows(100)
    await library.send("reader", *SPACE)
    assert library.books.part(PopularItems).rows(100) == before


async def test_hidden_items_are_not_popular(library: Library) -> None:
    items = [
        ItemDocument(id="seen", categories=["one"]),
        ItemDocument(id="hidden", categories=["one", "two"], hidden=True),
    ]
    shown = Library(items=items).books.part(PopularItems).rows(10)
    assert shown == [(None, ("seen",)), ("one", ("seen",)), ("two", ())]
