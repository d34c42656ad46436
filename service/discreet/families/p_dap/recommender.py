"""A recommender by adaptive partition as the workers hold it: learners, vendors, guests, budget."""

from dataclasses import replace
from typing import Any

import numpy as np

from discreet.families.p_dap.adaptive_partition import AdaptivePartition
from discreet.families.p_dap.contract import Address, Learner, Request
from discreet.families.questions import Ask, plain_ids, refuse_unused
from discreet.families.p_dap.document import VENDOR, AdaptivePartitionDocument
from discreet.families.p_dap.guests import Guests
from discreet.families.p_dap.learners import LearnerFactory, learner_for
from discreet.decisions.recommender import Recommender, Stored
from discreet.families.budgets import Terms
from discreet.errors import InvalidArgument
from discreet.privacy.accountants import Budget
from discreet.privacy.events import RandomisedResponse

_USES = ("context",)
_MOST_OFFERS = 64
"""Sets of vendors whose arms are kept beside the catalogue's; vendors come and go rarely."""


class PartitionRecommender(Recommender):
    """Learners over the same cells: for our own users, beside vendors, and for guests."""

    def __init__(
        self, *, name: str, stored: Stored, learner_for: LearnerFactory = learner_for
    ) -> None:
        document = stored.document
        assert isinstance(document, AdaptivePartitionDocument)
        privacy = document.privacy
        terms = None
        if privacy.mode != "none":
            budget = Budget(epsilon=privacy.budget.epsilon, delta=privacy.budget.delta)
            terms = Terms(accounting=privacy.accounting, budget=budget)
        super().__init__(name=name, stored=stored, terms=terms)
        self.document = document
        self.refuses = privacy.on_exhausted == "refuse"
        self.learner = learner_for(
            document=document, generation=stored.generation, arms=stored.next_slot
        )
        self.dimensions = document.context.dimensions
        self.joinable = (
            isinstance(self.learner, AdaptivePartition)
            and terms is not None
            and not document.vendors
            and len(self.visible) > 1
        )
        """Whether questions can be answered many at once: see `answering_many`."""
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
        self._offers: dict[tuple[int, ...], np.ndarray[Any, np.dtype[np.intp]]] = {}

    @property
    def learners(self) -> tuple[Learner, ...]:
        """The learners over our own users' cells: with the whole epsilon, and with a part."""
        return (self.learner, self.joint_learner) if self.vendors else (self.learner,)

    def note_arrivals(self, address: Address, seen: int) -> None:
        """Let the learners know what feedback has told about a cell of our own users."""
        for learner in self.learners:
            if isinstance(learner, AdaptivePartition):
                learner.note_arrivals(address, seen)

    @property
    def indexes(self) -> tuple[bytes, ...]:
        """Every index of addresses that this recommender has written to."""
        guests = self.guests
        return (self.generation, guests.generation, guests.streams, guests.books)

    def address_of(self, peer: str) -> str | None:
        """Return a vendor's URL."""
        return self.url_of.get(peer)

    def joined(self, request: Request, vendors: tuple[int, ...]) -> Request:
        """Return the request with these vendors' arms beside the items'."""
        whole = request.available is self.visible
        available = self._offers.get(vendors) if whole else None
        if available is None:
            arms = np.array(vendors, dtype=np.intp)
            available = np.sort(np.concatenate([request.available, arms]))
            if whole and len(self._offers) < _MOST_OFFERS:
                self._offers[vendors] = available
        return replace(request, available=available)

    def request(self, ask: Ask) -> Request:
        """Return the learner's view of a question, or say which field cannot be used."""
        refuse_unused(ask, uses=_USES)
        dimensions = self.dimensions
        if len(ask.context) != dimensions:
            raise InvalidArgument(
                "context",
                f"must have {dimensions} values for this recommender, not {len(ask.context)}",
            )
        return Request(
            context=np.array(ask.context, dtype=np.float64),
            available=self.available(exclude=ask.exclude, candidates=plain_ids(ask)),
            limit=ask.limit,
        )
