"""What survives changes of a document: the generation, and every item's slot."""

from discreet.families.registration import read_stored
from discreet.families.stored import StoredDocument, describe
from tests.families.p_dap.places import document


def stored(*items: str) -> StoredDocument:
    described = document(items=list(items))
    return StoredDocument(described, b"generate", 12.5, {}, 0).with_document(described)


def test_what_is_written_is_read() -> None:
    one = stored("a", "b")
    assert read_stored(one.encode()) == one
    assert one.encode() == stored("a", "b").encode()


def test_items_keep_their_slots_and_retired_ones_are_not_given_again() -> None:
    before = stored("a", "b", "c")
    after = before.with_document(document(items=["c", "a", "new"]))
    assert dict(after.slots) == {"c": 2, "a": 0, "new": 3}
    again = after.with_document(document(items=["b"]))
    assert dict(again.slots) == {"b": 4}
    assert again.next_slot == 5


def test_a_document_is_shown_without_what_was_not_given() -> None:
    shown = describe(document(items=["a"]))
    assert shown["items"] == [{"id": "a", "hidden": False}]
