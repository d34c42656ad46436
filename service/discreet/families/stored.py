"""A recommender as it stands in the store: the document and what must survive its changes.

Items own *slots*, positions in every vector of statistics. A slot belongs to its item for ever:
hiding keeps it, removing retires it, and a new item never inherits another's clicks.

Several versions of the service may share a store, so a record

- says which version must be understood to read it (`schema`): whatever an older reader would get
  wrong raises that number, and older readers refuse the record;
- holds no defaults: what nobody wrote is not there, so a field is stored only once it is used;
- keeps what this version does not know (`unknown`): fields that are new are carried along, in the
  place where they were found, whenever the record is written again.

A field below `privacy` is never skipped. A promise that is not understood cannot be kept.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter, ValidationError

from discreet.families.documents import RecommenderDocument
from discreet.families.items import ItemDocument, as_item

Slots = npt.NDArray[np.intp]

GENERATION_BYTES = 8
MOST_SLOTS = 2**31
RECORD_SCHEMA = 1
"""What this version writes, and the newest that it reads."""
_OURS = frozenset({"schema", "document", "generation", "created", "slots", "next_slot"})
_PROMISE = "privacy"
_SLICE = 500
"""Items that are read in one go."""
_ITEMS = TypeAdapter(list[ItemDocument])

Path = tuple[str | int, ...]


class UnreadableRecord(ValueError):
    """A stored record that this version cannot use; the message says why, in a sentence."""


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """`generation` names what was learned under this recommender; `created` is when it began.

    `unknown` holds fields that a newer version wrote: into the document by their path, in which
    an item stands under its id, and beside it by their name (`beside`).
    """

    document: RecommenderDocument
    generation: bytes
    created: float
    slots: Mapping[str, int]
    next_slot: int
    unknown: Mapping[Path, Any] = field(default_factory=dict)
    beside: Mapping[str, Any] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return the bytes that the store keeps; equal records give equal bytes."""
        fields = written(self.document)
        for path, value in self.unknown.items():
            _put_back(fields, path, value)
        return json.dumps(
            {
                **self.beside,
                "schema": RECORD_SCHEMA,
                "document": fields,
                "generation": self.generation.hex(),
                "created": self.created,
                "slots": dict(self.slots),
                "next_slot": self.next_slot,
            },
            sort_keys=True,
            separators=(",", ":"),
        ).encode()

    def with_document(self, document: RecommenderDocument) -> "StoredDocument":
        """Return this record under a changed document: kept items keep their slots."""
        slots: dict[str, int] = {}
        next_slot = self.next_slot
        for owner in document.owners():
            if owner in self.slots:
                slots[owner] = self.slots[owner]
            else:
                slots[owner] = next_slot
                next_slot += 1
        return replace(self, document=document, slots=slots, next_slot=next_slot)


def describe(document: RecommenderDocument, *, items: bool = True) -> dict[str, Any]:
    """Return the document as the API shows it, with every default."""
    left_out = None if items else {"items"}
    return document.model_dump(mode="json", exclude_none=True, exclude=left_out)


def decode(content: bytes, validate: Callable[[Any], RecommenderDocument]) -> StoredDocument:
    """Return the record that `StoredDocument.encode` wrote, here or in another version.

    Raises `UnreadableRecord`, whose message repeats nothing of the record but names of fields.
    """
    try:
        return _decode(content, validate)
    except UnreadableRecord:
        raise
    except Exception:
        # Readers fail in many ways: JSON may be nested too deeply, a number fit no machine word.
        raise UnreadableRecord("it is damaged") from None


def _decode(content: bytes, validate: Callable[[Any], RecommenderDocument]) -> StoredDocument:
    fields = json.loads(content)
    schema = fields.get("schema", RECORD_SCHEMA)
    if type(schema) is not int or schema > RECORD_SCHEMA:
        raise _newer(schema)
    generation, created = bytes.fromhex(fields["generation"]), float(fields["created"])
    slots, next_slot = fields["slots"], fields["next_slot"]
    raw = fields["document"]
    document, unknown = _read_items(raw, validate) or _tolerantly(raw, validate)
    taken = list(slots.values())
    if not (
        len(generation) == GENERATION_BYTES
        and math.isfinite(created)
        and slots.keys() >= set(document.owners())
        and all(type(each) is int and 0 <= each < MOST_SLOTS for each in (*taken, next_slot))
        and len(set(taken)) == len(taken)
        and all(each < next_slot for each in taken)
    ):
        raise UnreadableRecord("it is damaged")
    beside = {name: value for name, value in fields.items() if name not in _OURS}
    return StoredDocument(document, generation, created, slots, next_slot, unknown, beside)


def _read_items(
    raw: Any, validate: Callable[[Any], RecommenderDocument]
) -> tuple[RecommenderDocument, dict[Path, Any]] | None:
    """Return a document of many items, or None if anything about it needs a closer look.

    Items are read some at a time, so that in a worker that reads in a thread requests have their
    turn in between.
    """
    held = raw.get("items") if isinstance(raw, dict) else None
    if not isinstance(held, list) or len(held) <= _SLICE:
        return None
    items: list[ItemDocument] = []
    try:
        document = validate({**raw, "items": []})
        for start in range(0, len(held), _SLICE):
            items += _ITEMS.validate_python([as_item(one) for one in held[start : start + _SLICE]])
        document.require_items(items)
    except ValueError:  # pydantic's is one too
        return None
    return document.model_copy(update={"items": items}), {}


def _newer(schema: object) -> UnreadableRecord:
    number = f" as schema {schema}" if type(schema) is int else ""
    return UnreadableRecord(
        f"it was written{number} by a newer version, and this one reads up to {RECORD_SCHEMA}"
    )


def written(document: RecommenderDocument, *, items: bool = True) -> dict[str, Any]:
    """Return what somebody wrote of a document: no defaults."""
    fields = document.model_dump(
        mode="json", exclude_none=True, exclude_unset=True, exclude={"items"}
    )
    fields["algorithm"] = document.algorithm
    if items and "items" in document.model_fields_set:
        fields["items"] = [
            one.model_dump(mode="json", exclude_none=True, exclude_unset=True)
            for one in document.items
        ]
    return fields


def _tolerantly(
    raw: Any, validate: Callable[[Any], RecommenderDocument]
) -> tuple[RecommenderDocument, dict[Path, Any]]:
    """Validate without the fields that this version does not know; return those beside it."""
    try:
        return validate(raw), {}
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False, include_context=False)
    unknown: dict[Path, Any] = {}
    for problem in problems:
        path = _path_in(raw, problem["loc"])
        if problem["type"] != "extra_forbidden" or not path:
            continue
        if path[0] == _PROMISE:
            raise UnreadableRecord(
                f"its {'.'.join(map(str, path))} is not known to this version, which cannot keep "
                "a promise that it does not understand"
            )
        holder = raw
        for step in path[:-1]:
            holder = holder[step]
        named = _by_id(raw, path)
        if path[-1] in holder:
            unknown[named] = holder.pop(path[-1])
    try:
        return validate(raw), unknown
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        if first["type"] == "union_tag_invalid":
            raise UnreadableRecord("its algorithm is not known to this version") from None
        where = ".".join(map(str, _path_in(raw, first["loc"]))) or "document"
        raise UnreadableRecord(
            f"its {where} is nothing that this version can serve ({first['type']})"
        ) from None


def _path_in(raw: Any, location: tuple[int | str, ...]) -> Path:
    """Return where in the document an error is: pydantic also names the variants of unions."""
    path: list[str | int] = []
    node = raw
    for step in location:
        in_dict = isinstance(node, dict) and step in node
        in_list = isinstance(node, list) and isinstance(step, int) and step < len(node)
        if in_dict or in_list:
            node = node[step]
            path.append(step)
    return tuple(path)


def _by_id(raw: Any, path: Path) -> Path:
    """Return a path in which an element of a list stands under its id, if it has one."""
    named: list[str | int] = []
    node = raw
    for step in path:
        node = node[step]
        is_place = isinstance(step, int) and isinstance(node, dict) and "id" in node
        named.append(str(node["id"]) if is_place else step)
    return tuple(named)


def _put_back(fields: dict[str, Any], path: Path, value: Any) -> None:
    """Put a field where it was found, unless what held it is gone."""
    node: Any = fields
    for step in path[:-1]:
        if isinstance(node, dict):
            node = node.setdefault(str(step), {})
        elif isinstance(step, int):
            node = node[step] if step < len(node) else None
        else:
            found = (one for one in node if isinstance(one, dict) and one.get("id") == step)
            node = next(found, None)
        if not isinstance(node, dict | list):
            return
    if isinstance(node, dict):
        node[str(path[-1])] = value
