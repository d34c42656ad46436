"""Changes to a document: nothing goes that was not named."""

import pytest

from discreet.decisions import changes
from discreet.decisions.changes import ChangedRecord, ItemCounts, Precondition, merge_patch, tag_of
from discreet.errors import DocumentChanged, InvalidArgument
from discreet.families.documents import ItemDocument
from discreet.families.stored import StoredDocument
from tests.decisions.conftest import document


def stored(**fields: object) -> StoredDocument:
    return changes.put(document(**fields), now=0.0)(None)


def ids(record: StoredDocument) -> list[str]:
    return [item.id for item in record.document.items]


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        # The examples of RFC 7396 that are about objects.
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_a_merge_patch(before: dict, change: dict, after: dict) -> None:  # type: ignore[type-arg]
    assert merge_patch(before, before, change) == after


def test_a_part_that_nobody_wrote_begins_as_it_is_shown() -> None:
    shown = {"budget": {"epsilon": 8, "per": "30d"}}
    assert merge_patch({}, shown, {"budget": {"epsilon": 9}}) == {
        "budget": {"epsilon": 9, "per": "30d"}
    }
    written = {"budget": {"epsilon": 7}}
    assert merge_patch(written, shown, {"budget": {"epsilon": 9}}) == {"budget": {"epsilon": 9}}


def test_a_file_adds_and_changes_and_removes_nothing() -> None:
    before = changes.add_items([ItemDocument(id="x", hidden=True, title="X")])(stored())
    file = document(items=["a", {"id": "b", "title": "B"}, "x", "new"])
    after = changes.put(file, now=1.0, keep_unnamed=True)(before)
    assert ids(after) == ["a", "b", "c", "d", "x", "new"]
    # What the file does not say about an item stays: somebody hid it over HTTP.
    by_id = {item.id: item for item in after.document.items}
    assert (by_id["x"].hidden, by_id["x"].title, by_id["b"].title) == (True, "X", "B")
    assert all(after.slots[item] == before.slots[item] for item in before.slots)
    counts = ItemCounts.of(ChangedRecord(before, after, b""))
    assert counts == ItemCounts(added=1, changed=1, unchanged=4, removed=0)
    complete = changes.put(file, now=1.0)(before)
    assert ids(complete) == ["a", "b", "x", "new"]
    assert ItemCounts.of(ChangedRecord(before, complete, b"")).removed == 2


def test_a_record_without_items_gets_none() -> None:
    without = document()
    without = type(without).model_validate({**without.model_dump(exclude={"items"})})
    first = changes.put(without, now=0.0)(None)
    assert changes.put(without, now=1.0)(first).encode() == first.encode()


def test_unusable_items_are_listed_where_somebody_wants_the_rest() -> None:
    items = [ItemDocument(id="x"), ItemDocument(id="y", features=[1.0])]
    with pytest.raises(InvalidArgument, match=r"items\[1\]\.features"):
        changes.add_items(items)(stored())
    refused: dict[int, changes.UnusableItem] = {}
    assert "x" in ids(changes.add_items(items, refused)(stored()))
    assert (list(refused), refused[1].field) == ([1], "features")


def test_preconditions() -> None:
    seen = Precondition(tags=frozenset({tag_of(b"one")}))
    seen.require(b"one")
    for found in (b"two", None):
        with pytest.raises(DocumentChanged):
            seen.require(found)
    Precondition(tags=frozenset({"*"})).require(b"two")
    Precondition().require(None)
    Precondition(absent=True).require(None)
    with pytest.raises(DocumentChanged):
        Precondition(absent=True).require(b"one")
