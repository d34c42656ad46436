"""A recommender as it stands in the store: the document and what must survive its changes.

Items own *slots*, positions in every vector of statistics. A slot belongs to its item for ever:
hiding keeps it, removing retires it, and a new item never inherits another's clicks.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.families.documents import RecommenderDocument

Slots = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """`generation` names what was learned under this recommender; `created` is when it began."""

    document: RecommenderDocument
    generation: bytes
    created: float
    slots: Mapping[str, int]
    next_slot: int

    def encode(self) -> bytes:
        """Return the bytes that the store keeps; equal records give equal bytes."""
        return json.dumps(
            {
                "document": describe(self.document),
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


def describe(document: RecommenderDocument) -> dict[str, Any]:
    """Return the document as the API shows it."""
    return document.model_dump(mode="json", exclude_none=True)
