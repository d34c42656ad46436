"""Changes to a recommender's document: each is a function from the record that stands to the next.

Nothing is lost without being named. A document that is put without `items` keeps them; a file that
names fewer items than there are leaves the others; whoever wants a catalogue emptied writes `[]`.
"""

import gc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple

from discreet.errors import DocumentChanged, InvalidArgument, UnknownItem, UnknownRecommender
from discreet.families.documents import ItemDocument, RecommenderDocument, UnusableItem
from discreet.families.registration import read_document
from discreet.families.stored import GENERATION_BYTES, StoredDocument, describe, written
from discreet.state.checks import MOST_DOCUMENT

UNKNOWN = "no recommender of that name; GET /recommenders lists them"
_TAG_BYTES = 16

Change = Callable[[StoredDocument | None], StoredDocument]
Fields = Mapping[str, Any]


class ChangedRecord(NamedTuple):
    """What became of a change; `before` is None if there was nothing, or nothing readable."""

    before: StoredDocument | None
    after: StoredDocument
    content: bytes
    """What the store holds of it."""

    @property
    def tag(self) -> str:
        """The ETag of what was stored."""
        return tag_of(self.content)

    @property
    def created(self) -> bool:
        """Whether the recommender is new, or begins anew."""
        return self.before is None


@dataclass(frozen=True, slots=True)
class Precondition:
    """What must be so for a change to be made: a caller changes what it has seen, or nothing.

    `tags` are those of `If-Match`, `"*"` for whatever there is; None asks for nothing. `absent` is
    `If-None-Match: *`.
    """

    tags: frozenset[str] | None = None
    absent: bool = False

    def require(self, content: bytes | None) -> None:
        """Raise `DocumentChanged` if what stands there is not what the caller expects."""
        if self.absent and content is not None:
            raise DocumentChanged("there is a recommender of that name already")
        if self.tags is None:
            return
        if content is None:
            raise DocumentChanged("there is no recommender of that name any more")
        if "*" not in self.tags and tag_of(content) not in self.tags:
            raise DocumentChanged(
                "the document has changed since; GET it again, and send what you want of it with "
                "the ETag that it has now"
            )


ALWAYS = Precondition()


def tag_of(content: bytes) -> str:
    """Return the ETag of a stored record, without its quotation marks."""
    return blake2b(content, digest_size=_TAG_BYTES, person=b"discreet etag").hexdigest()


def put(document: RecommenderDocument, *, now: float, keep_unnamed: bool = False) -> Change:
    """Return the change to this document; what was learned stays.

    Without `items` those that are there stay. With `keep_unnamed` so do those that the document
    does not name, and of the others whatever it does not say about them.
    """

    def change(stored: StoredDocument | None) -> StoredDocument:
        if stored is None:
            stored = StoredDocument(document, os.urandom(GENERATION_BYTES), now, {}, 0)
            return stored.with_document(document)
        _refuse_reshaping(stored.document, document)
        items = list(stored.document.items)
        if keep_unnamed:
            items = _merged(items, document.items)
        elif "items" in document.model_fields_set:
            items = document.items
        # Whoever puts a document says all of it.
        return replace(stored, unknown={}).with_document(_with_items(document, items))

    return change


def patch(fields: Fields) -> Change:
    """Return the change that a JSON merge patch (RFC 7396) makes; the result is validated whole.

    Raises pydantic's `ValidationError` when it is made.
    """
    if fields.get("items", ()) is None:
        raise InvalidArgument("items", "send [] to remove all items, or leave it out")

    def change(stored: StoredDocument | None) -> StoredDocument:
        held = _present(stored)
        standing = held.document
        merged = merge_patch(
            written(standing, items=False), describe(standing, items=False), fields
        )
        if merged.get("algorithm") != standing.algorithm:
            raise _losing("algorithm")
        document = read_document(merged)
        _refuse_reshaping(standing, document)
        items = document.items if "items" in fields else standing.items
        return held.with_document(_with_items(document, items))

    return change


def merge_patch(fields: Fields, shown: Fields, change: Fields) -> dict[str, Any]:
    """Return fields after a merge patch.

    A caller patches what is shown, with every default: a part that nobody wrote begins as that.
    """
    result = dict(fields)
    for name, value in change.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            default = shown.get(name)
            within = default if isinstance(default, Mapping) else {}
            held = result.get(name, within)
            result[name] = merge_patch(held if isinstance(held, Mapping) else {}, within, value)
        else:
            result[name] = value
    return result


def add_items(
    items: Sequence[ItemDocument], refused: dict[int, UnusableItem] | None = None
) -> Change:
    """Return the change that adds items, or replaces those of the same id.

    Those that cannot be used are listed in `refused`, by place; without it none is added.
    """

    def change(stored: StoredDocument | None) -> StoredDocument:
        held = _present(stored)
        merged = {item.id: item for item in held.document.items}
        for place, item in enumerate(items):
            try:
                held.document.require_usable(item)
            except UnusableItem as error:
                if refused is None:
                    raise InvalidArgument(error.field_at(place), str(error)) from None
                refused[place] = error
                continue
            merged[item.id] = item
        if len(merged) == len(held.document.items) and all(
            merged[one.id] == one for one in held.document.items
        ):
            return held
        return held.with_document(_with_items(held.document, list(merged.values())))

    return change


def change_item(item: str, fields: Fields) -> Change:
    """Return the change that a merge patch makes to one item."""

    def change(stored: StoredDocument | None) -> StoredDocument:
        held = _present(stored)
        standing = _item(held, item)
        merged = merge_patch(standing.model_dump(exclude_unset=True), {}, fields)
        try:
            changed = ItemDocument.model_validate({**merged, "id": item})
            held.document.require_usable(changed)
        except UnusableItem as error:
            raise InvalidArgument(error.field or "body", str(error)) from None
        items = [changed if one is standing else one for one in held.document.items]
        return held.with_document(_with_items(held.document, items))

    return change


def remove_item(item: str) -> Change:
    """Return the change that removes an item; its slot is retired, and given to no other."""

    def change(stored: StoredDocument | None) -> StoredDocument:
        held = _present(stored)
        standing = _item(held, item)
        items = [one for one in held.document.items if one is not standing]
        return held.with_document(_with_items(held.document, items))

    return change


class ItemCounts(NamedTuple):
    """How many items a change added, changed, left as they were, and removed."""

    added: int
    changed: int
    unchanged: int
    removed: int

    @classmethod
    def of(cls, record: ChangedRecord) -> "ItemCounts":
        """Return what a change did to the catalogue."""
        standing = [] if record.before is None else record.before.document.items
        before = {item.id: item for item in standing}
        after = record.after.document.items
        kept = [item for item in after if item.id in before]
        unchanged = sum(before[item.id] == item for item in kept)
        removed = len(before) - len(kept)
        return cls(len(after) - len(kept), len(kept) - unchanged, unchanged, removed)


def _present(stored: StoredDocument | None) -> StoredDocument:
    if stored is None:
        raise UnknownRecommender(UNKNOWN)
    return stored


def _item(stored: StoredDocument, item: str) -> ItemDocument:
    for one in stored.document.items:
        if one.id == item:
            return one
    raise UnknownItem("no such item in this recommender")


def _merged(items: Sequence[ItemDocument], named: Sequence[ItemDocument]) -> list[ItemDocument]:
    """Return the items with what the others say about them."""
    merged = {item.id: item for item in items}
    for item in named:
        standing = merged.get(item.id)
        said = {name: getattr(item, name) for name in item.model_fields_set}
        merged[item.id] = item if standing is None else standing.model_copy(update=said)
    return list(merged.values())


def _with_items(
    document: RecommenderDocument, items: Sequence[ItemDocument]
) -> RecommenderDocument:
    """Return a copy, which is not validated: items that come from callers were looked at before."""
    if items == document.items:
        return document
    try:
        document.require_room(len(items))
    except ValueError as error:
        raise InvalidArgument("items", str(error).removeprefix("items: ")) from None
    return document.model_copy(update={"items": list(items)})


def _refuse_reshaping(old: RecommenderDocument, new: RecommenderDocument) -> None:
    """What was learned cannot always be carried over: losing it must be said aloud."""
    before, after = old.fixed(), new.fixed()
    for field in before:
        if before[field] != after.get(field):
            if field == "ledger":
                raise InvalidArgument(field, "cannot change: it would give everybody a new budget")
            raise _losing(field)


def _losing(field: str) -> InvalidArgument:
    return InvalidArgument(
        field, "cannot change without losing what was learned; DELETE the recommender first"
    )


def made(change: Change, standing: StoredDocument | None, expected: bytes | None) -> ChangedRecord:
    """Return what a change makes of a record, `expected` being what the store holds of it now."""
    with collection_paused():
        after = change(standing)
        content = expected if after is standing and expected is not None else after.encode()
    if len(content) > MOST_DOCUMENT:
        raise InvalidArgument(
            "items",
            f"the document would have {len(content):,} bytes, and at most {MOST_DOCUMENT:,} can be "
            "stored: shorten ids, titles, attributes or features, or hold fewer items",
        )
    return ChangedRecord(standing, after, content)


@contextmanager
def collection_paused() -> Iterator[None]:
    """Make many objects, none of them garbage: looking for some takes longer than making them."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
