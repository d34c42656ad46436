"""A recommender as the workers hold it: its document, compiled once per change.

Items own *slots*, positions in every vector of statistics. A slot belongs to its item for ever:
hiding keeps it, removing retires it, and a new item never inherits another's clicks.

Each algorithm derives its own kind of `Recommender`, in its package.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.families.documents import RecommenderDocument
from discreet.decisions.every_document import read_document_json
from discreet.families.budgets import Terms
from discreet.errors import InvalidArgument

Slots = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Stored:
    """A recommender as it stands in the store: the document and what must survive its changes."""

    document: RecommenderDocument
    generation: bytes
    slots: Mapping[str, int]
    next_slot: int

    def encode(self) -> bytes:
        """Return the bytes that the store keeps; equal records give equal bytes."""
        return json.dumps(
            {
                "document": describe(self),
                "generation": self.generation.hex(),
                "slots": dict(self.slots),
                "next_slot": self.next_slot,
            },
            sort_keys=True,
            separators=(",", ":"),
        ).encode()

    @classmethod
    def decode(cls, content: bytes) -> "Stored":
        """Return the record that `encode` wrote."""
        fields: dict[str, Any] = json.loads(content)
        return cls(
            document=read_document_json(json.dumps(fields["document"])),
            generation=bytes.fromhex(fields["generation"]),
            slots=fields["slots"],
            next_slot=fields["next_slot"],
        )

    def with_document(self, document: RecommenderDocument) -> "Stored":
        """Return this record under a changed document: kept items keep their slots."""
        slots: dict[str, int] = {}
        next_slot = self.next_slot
        for owner in document.owners():
            if owner in self.slots:
                slots[owner] = self.slots[owner]
            else:
                slots[owner] = next_slot
                next_slot += 1
        return Stored(document, self.generation, slots, next_slot)


def describe(stored: Stored) -> dict[str, Any]:
    """Return the document as the API shows it."""
    return stored.document.model_dump(mode="json", exclude_none=True)


class Recommender:
    """One recommender, ready to answer. Immutable but for caches that may be lost at any time."""

    def __init__(self, *, name: str, stored: Stored, terms: Terms | None) -> None:
        document = stored.document
        self.name = name
        self.algorithm = document.algorithm
        self.stored = stored
        self.generation = stored.generation
        self.terms = terms
        """None only where the document says aloud that nobody is protected here."""
        self.protected = terms is not None
        self.ttl = document.decision_ttl_seconds
        self.slot_of = {item.id: stored.slots[item.id] for item in document.items}
        self.id_of = {slot: item for item, slot in self.slot_of.items()}
        self.visible: Slots = np.array(
            sorted(stored.slots[item.id] for item in document.items if not item.hidden),
            dtype=np.intp,
        )
        self._visible_set = frozenset(self.visible.tolist())
        self.touched = True
        """Whether anything happened here since the last refresh: an idle one is left alone."""

    @property
    def indexes(self) -> tuple[bytes, ...]:
        """Every index of addresses that this recommender has written to."""
        return (self.generation,)

    def address_of(self, peer: str) -> str | None:
        """Return the URL of another instance that this recommender speaks to, if it does."""
        return None

    def available(self, *, exclude: Sequence[str], candidates: Sequence[str] | None) -> Slots:
        """Return the slots of the items that may be recommended, in ascending order."""
        if candidates is None and not exclude:
            return self.visible
        slot_of = self.slot_of
        if candidates is None:
            allowed = set(self._visible_set)
        else:
            # A candidate that was hidden or removed a moment ago is left out, as it would be from
            # the catalogue; asking only for things that are not there is a mistake to be told.
            allowed = set(
                self._visible_set.intersection(
                    slot_of[item] for item in candidates if item in slot_of
                )
            )
            if not allowed:
                raise InvalidArgument(
                    "candidates", "none of them is an item of this recommender that may be shown"
                )
        allowed.difference_update(slot_of[item] for item in exclude if item in slot_of)
        return np.array(sorted(allowed), dtype=np.intp)
