"""What survives changes of a document, and other versions: generation, slots, unknown fields."""

import json
from typing import Any

import pytest

from discreet.families.documents import ItemDocument
from discreet.families.registration import read_stored
from discreet.families.stored import RECORD_SCHEMA, StoredDocument, UnreadableRecord, describe
from tests.families.p_dap.places import document


def stored(*items: str) -> StoredDocument:
    described = document(items=list(items))
    return StoredDocument(described, b"generate", 12.5, {}, 0).with_document(described)


def written(one: StoredDocument) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(one.encode())
    return fields


def read(fields: dict[str, Any]) -> StoredDocument:
    return read_stored(json.dumps(fields).encode())


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


def test_no_default_is_written_and_the_version_is() -> None:
    fields = written(stored("a"))
    assert fields["schema"] == RECORD_SCHEMA
    assert fields["document"]["items"] == [{"id": "a"}]
    assert set(fields["document"]) <= {"algorithm", "items", "context", "privacy"}
    explicit = StoredDocument(document(items=[], decision_ttl_seconds=86_400), b"g", 0, {}, 0)
    assert written(explicit)["document"]["decision_ttl_seconds"] == 86_400


def test_a_record_of_before_there_were_versions_is_read() -> None:
    one = stored("a")
    old = {**written(one), "document": describe(one.document)}
    del old["schema"]
    assert describe(read(old).document) == describe(one.document)
    assert read(old).generation == one.generation


def test_newer_fields_are_kept_where_they_were() -> None:
    fields = written(stored("a", "b"))
    fields["lineage"] = {"from": "x"}
    fields["document"]["novelty"] = {"decay": 2}
    fields["document"]["context"]["colour"] = "red"
    fields["document"]["items"][1]["weight"] = 3
    tolerated = read(fields)
    assert describe(tolerated.document) == describe(stored("a", "b").document)
    assert written(tolerated) == fields
    # Items may move and go; what a newer version said of an item goes with it.
    items = [ItemDocument(id="new"), *tolerated.document.items]
    moved = tolerated.with_document(tolerated.document.model_copy(update={"items": items}))
    again = written(moved)
    assert [one.get("weight") for one in again["document"]["items"]] == [None, None, 3]
    assert (again["document"]["novelty"], again["lineage"]) == ({"decay": 2}, {"from": "x"})
    less = tolerated.document.model_copy(update={"items": items[:2]})
    assert "weight" not in json.dumps(written(tolerated.with_document(less)))


def change(path: str, value: Any) -> dict[str, Any]:
    fields = written(stored("a"))
    node = fields
    *steps, last = path.split(".")
    for step in steps:
        node = node.setdefault(step, {})
    node[last] = value
    return fields


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (change("schema", RECORD_SCHEMA + 1), "newer version"),
        (change("schema", "one"), "newer version"),
        (change("generation", "no hex"), "damaged"),
        (change("generation", "00"), "damaged"),
        (change("created", float("nan")), "damaged"),
        (change("slots", 5), "damaged"),
        (change("slots", {}), "damaged"),
        (change("next_slot", 0), "damaged"),
        (change("next_slot", 2**70), "damaged"),
        (change("document.algorithm", "later"), "algorithm"),
        (change("document.decision_ttl_seconds", "long"), "decision_ttl_seconds"),
        (change("document.privacy.windows", 30), "privacy.windows is not known"),
        (change("document", None), "document"),
    ],
)
def test_what_cannot_be_read_says_why_in_a_sentence(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnreadableRecord, match=reason) as refused:
        read(fields)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"nothing", b"[]", b"{}", b"\xff", b"[" * 100_000])
def test_damage_is_unreadable(content: bytes) -> None:
    with pytest.raises(UnreadableRecord, match="damaged"):
        read_stored(content)
