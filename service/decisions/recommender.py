"""A recommender as the workers hold it: its document, compiled once per change.

Items own *slots*, positions in every vector of statistics. A slot belongs to its item for ever:
hiding keeps it, removing retires it, and a new item never inherits another's clicks. Vendors own
slots in the same way: for the learner a vendor is an arm.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from service.algorithms.contract import Learner, Request
from service.decisions.documents import RecommenderDocument
from service.decisions.families import LearnerFactory, learner_for
from service.decisions.guests import Guests
from service.errors import InvalidArgument
from service.privacy.accountants import Budget, accountant
from service.privacy.charges import Charge
from service.privacy.events import Composed, PrivacyEvent, RandomisedResponse

VENDOR = "\0vendor/"
"""Begins the name under which a vendor owns its slot. No item's id can: ids are printable."""
_MOST_OFFERS = 64
"""Sets of vendors whose arms are kept beside the catalogue's; vendors come and go rarely."""


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
                "document": self.document.model_dump(mode="json"),
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
            document=RecommenderDocument.model_validate_json(json.dumps(fields["document"])),
            generation=bytes.fromhex(fields["generation"]),
            slots=fields["slots"],
            next_slot=fields["next_slot"],
        )

    def with_document(self, document: RecommenderDocument) -> "Stored":
        """Return this record under a changed document: kept items keep their slots."""
        slots: dict[str, int] = {}
        next_slot = self.next_slot
        owners = [item.id for item in document.items]
        owners += [VENDOR + vendor.name for vendor in document.vendors]
        for owner in owners:
            if owner in self.slots:
                slots[owner] = self.slots[owner]
            else:
                slots[owner] = next_slot
                next_slot += 1
        return Stored(document, self.generation, slots, next_slot)


def describe(stored: Stored) -> dict[str, Any]:
    """Return the document as the API shows it."""
    return stored.document.model_dump(mode="json")


class Recommender:
    """One recommender, ready to answer. Immutable but for its learner's advisory cache."""

    def __init__(
        self, *, name: str, stored: Stored, learner_for: LearnerFactory = learner_for
    ) -> None:
        document = stored.document
        privacy = document.privacy
        self.name = name
        self.algorithm = document.algorithm
        self.stored = stored
        self.document = document
        self.generation = stored.generation
        self.protected = privacy.mode != "none"
        self.refuses = privacy.on_exhausted == "refuse"
        self.ttl = document.decision_ttl_seconds
        self.learner = learner_for(
            document=document, generation=stored.generation, arms=stored.next_slot
        )
        self.accountant = accountant(privacy.accounting)
        self.budget = Budget(epsilon=privacy.budget.epsilon, delta=privacy.budget.delta)
        self.limit = self.accountant.limit(self.budget)
        self.slot_of = {item.id: stored.slots[item.id] for item in document.items}
        self.id_of = {slot: item for item, slot in self.slot_of.items()}
        self.url_of = {vendor.name: vendor.url for vendor in document.vendors}
        self.vendors = {name: stored.slots[VENDOR + name] for name in self.url_of}
        self.vendor_of = {slot: name for name, slot in self.vendors.items()}
        # What an observer sees of a vendor's item depends on two draws, ours and the vendor's:
        # epsilon is divided between them, and both parts are charged.
        self.vendor_epsilon = privacy.vendor_share * privacy.epsilon
        self.vendor_event = RandomisedResponse(self.vendor_epsilon)
        self.joint_learner = self.learner
        if self.vendors:
            rest = privacy.model_copy(update={"epsilon": privacy.epsilon - self.vendor_epsilon})
            self.joint_learner = learner_for(
                document=document.model_copy(update={"privacy": rest}),
                generation=stored.generation,
                arms=stored.next_slot,
            )
        self.guests = Guests(
            document=document,
            generation=stored.generation,
            arms=stored.next_slot,
            learner_for=learner_for,
        )
        self._visible = np.array(
            sorted(stored.slots[item.id] for item in document.items if not item.hidden),
            dtype=np.intp,
        )
        self._visible_set = frozenset(self._visible.tolist())
        self._offers: dict[tuple[int, ...], np.ndarray[Any, np.dtype[np.intp]]] = {}
        self._charges: dict[tuple[PrivacyEvent, ...], Charge] = {}
        self.touched = True
        """Whether anything happened here since the last survey: an idle one is not surveyed."""

    @property
    def learners(self) -> tuple[Learner, ...]:
        """The learners over our own users' cells: with the whole epsilon, and with a part."""
        return (self.learner, self.joint_learner) if self.vendors else (self.learner,)

    @property
    def indexes(self) -> tuple[bytes, ...]:
        """Every index of addresses that this recommender has written to."""
        guests = self.guests
        return (self.generation, guests.generation, guests.streams, guests.books)

    def joined(self, request: Request, vendors: tuple[int, ...]) -> Request:
        """Return the request with these vendors' arms beside the items'."""
        whole = request.available is self._visible
        available = self._offers.get(vendors) if whole else None
        if available is None:
            arms = np.array(vendors, dtype=np.intp)
            available = np.sort(np.concatenate([request.available, arms]))
            if whole and len(self._offers) < _MOST_OFFERS:
                self._offers[vendors] = available
        return replace(request, available=available)

    def charge(self, events: tuple[PrivacyEvent, ...]) -> Charge:
        """Return what these releases cost together; plans repeat, so their prices are kept."""
        known = self._charges.get(events)
        if known is None:
            known = self.accountant.charge(Composed(events)) if events else Charge()
            if len(self._charges) < 1_024:
                self._charges[events] = known
        return known

    def request(
        self,
        *,
        context: Sequence[float],
        limit: int,
        exclude: Sequence[str],
        candidates: Sequence[str] | None,
    ) -> Request:
        """Return the learner's view of a question, or say which field cannot be used."""
        dimensions = self.document.context.dimensions
        if len(context) != dimensions:
            raise InvalidArgument(
                "context", f"must have {dimensions} values for this recommender, not {len(context)}"
            )
        return Request(
            context=np.array(context, dtype=np.float64),
            available=self._available(exclude=exclude, candidates=candidates),
            limit=limit,
        )

    def _available(
        self, *, exclude: Sequence[str], candidates: Sequence[str] | None
    ) -> "np.ndarray[Any, np.dtype[np.intp]]":
        if candidates is None and not exclude:
            return self._visible
        slot_of = self.slot_of
        if candidates is None:
            allowed = set(self._visible_set)
        else:
            # A candidate that was hidden or removed a moment ago is left out, as it would be from
            # the catalogue; asking only for things that are not there is a mistake to be told.
            allowed = self._visible_set.intersection(
                slot_of[item] for item in candidates if item in slot_of
            )  # type: ignore[assignment]
            if not allowed:
                raise InvalidArgument(
                    "candidates", "none of them is an item of this recommender that may be shown"
                )
            allowed = set(allowed)
        allowed.difference_update(slot_of[item] for item in exclude if item in slot_of)
        return np.array(sorted(allowed), dtype=np.intp)
