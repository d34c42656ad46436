"""Vendors: instances with catalogues of their own that recommend each other's items.

For the asking side a vendor is one more item of its own model: its utility in a cell is learned
from what its items earned there with our users, whose feedback pays for that like any other. If a
vendor is drawn, it is told the middle of the cell, never the context, and draws one of its items
for it; feedback is passed on to it.

Why the answer is private. Our own draw is between our items and the vendors that can be reached, at
epsilon1; the vendor's draw is at epsilon2, which it is told. Who sees the item learns at most
epsilon1 + epsilon2 about the context:

    P(vendor v, item k | C) = P(v | C) * P_v(k | C)
                           <= e^epsilon1 * P(v | C') * e^epsilon2 * P_v(k | C'),

for any two cells C, C', because the vendor's draw is epsilon2-DP between any two cells, whatever
our draw was. An item of our own has only the first factor. A list is drawn item by item, and each
vendor at most once: it has a first factor for every draw, and a second one for every vendor in it.
All of these are charged whenever a vendor might be drawn: whether one was depends on the context,
so a price that depended on it would tell. A vendor that does not answer is replaced by an item of
ours that is drawn without looking at the context: P(k | C) + sum over failing v of P(v | C) * q(k)
is post-processing of our own draw.

What that does not cover: the vendor that is asked learns the cell; that it draws at no more than
epsilon2 is its promise (`Guests` keeps ours); that an honest one fails regardless of the cell is an
assumption.

For the vendor's side the asking side's users are guests. They have cells and released statistics of
their own, apart from those of our users. Their answers come from the released model, so asking
changes nothing that is stored. A guest's reward is in one release, whose noise covers it.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import ClassVar
from urllib.parse import quote

import numpy as np

from discreet.errors import DiscreetError, InvalidArgument, NothingToRecommend, PeerUnavailable
from discreet.families.budgets import BudgetPolicy
from discreet.families.contract import Recommender
from discreet.families.observer import FamilyCounter
from discreet.families.p_dap.document import (
    VENDOR,
    AdaptivePartitionDocument,
    GuestPrivacyDocument,
)
from discreet.families.p_dap.learning import GUESTS
from discreet.families.p_dap.model import ChoiceRule, PartitionModel, PartitionQuestion
from discreet.families.questions import Choice, Decision, PendingDecision, PendingFeedback, Question
from discreet.families.stored import StoredDocument
from discreet.privacy.events import RandomisedResponse
from discreet.state.stores import NO_LIMIT, Debit

CELL_BYTES = 5
PEER_BYTES = 8
_MOST_AT_ONCE = 256
"""Messages sent at the same time; more wait for the next round."""
_LONGEST_HANDLE = 600
"""A list may hold the handles of 16 vendors, and its recommendation id 16,384 letters."""
_HANDLE_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")
_LAST_MOMENT = 2**32
_HANDLES = b"\0"
"""Stands before the handles in a note."""
_SETTLED = frozenset({200, 400, 404, 409, 410, 422})
"""Statuses after which sending the same feedback again would change nothing."""


@dataclass(frozen=True, slots=True)
class VendorItem:
    """A vendor's item behind a handle that the vendor can open, accepted until `expires_at`."""

    handle: str
    expires_at: int


def read_item(body: bytes) -> VendorItem | None:
    """Return a vendor's answer, or None for one that cannot be used: it is shown and stored."""
    try:
        fields = json.loads(body)
        handle, expires_at = fields["handle"], fields["expires_at"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return None
    if not (isinstance(handle, str) and 1 <= len(handle) <= _LONGEST_HANDLE):
        return None
    if type(expires_at) is not int or not 0 <= expires_at < _LAST_MOMENT:
        return None
    return VendorItem(handle, expires_at) if _HANDLE_LETTERS.issuperset(handle) else None


def write_handles(handles: Mapping[int, str]) -> bytes:
    """Return the handles that an answer shows, by place, for its recommendation id."""
    if not handles:
        return b""
    return _HANDLES + b"".join(
        bytes([place]) + len(handle).to_bytes(2, "little") + handle.encode("ascii")
        for place, handle in handles.items()
    )


def read_handles(note: bytes) -> dict[int, str]:
    """Return what `write_handles` wrote behind the cell."""
    if note[:1] == GUESTS or note[CELL_BYTES : CELL_BYTES + 1] != _HANDLES:
        return {}
    handles, at = {}, CELL_BYTES + 1
    while at < len(note):
        end = at + 3 + int.from_bytes(note[at + 1 : at + 3], "little")
        handles[note[at]] = note[at + 3 : end].decode("ascii")
        at = end
    return handles


class Vendors:
    """The vendors that a recommender may ask, and the feedback that is passed on to them."""

    def __init__(
        self,
        recommender: Recommender[PartitionModel],
        document: AdaptivePartitionDocument,
        stored: StoredDocument,
        *,
        epsilon: float,
    ) -> None:
        self._recommender = recommender
        self._epsilon = epsilon
        self._dimensions = document.context.size
        self.url_of = {vendor.name: vendor.url for vendor in document.vendors}
        self._slot_of = {name: stored.slots[VENDOR + name] for name in self.url_of}
        self._name_of = {slot: name for name, slot in self._slot_of.items()}
        self._queue = recommender.key(b"to vendors")
        self._sending: dict[bytes, asyncio.Task[None]] = {}

    def reachable(self, exclude: Sequence[str] = ()) -> tuple[int, ...]:
        """Return the slots of the vendors that can be asked now, but for those excluded by name.

        The context has no part in it.
        """
        reachable = self._recommender.peers.reachable
        return tuple(
            slot
            for name, slot in self._slot_of.items()
            if name not in exclude and reachable(name, urgent=True)
        )

    async def fetch_items(
        self, questions: Sequence[Question], decisions: Sequence[Decision]
    ) -> list[Decision]:
        """Return the decisions with an item for every vendor that was drawn."""
        return list(
            await asyncio.gather(
                *(
                    self._with_items(question, decision)
                    for question, decision in zip(questions, decisions, strict=True)
                )
            )
        )

    async def _with_items(self, question: Question, decision: Decision) -> Decision:
        """Return a decision with vendors' items, and ours in place of those that did not come."""
        drawn = {
            place: self._name_of[choice.slot]
            for place, choice in enumerate(decision.choices)
            if choice.slot in self._name_of
        }
        if not drawn:
            return decision
        assert isinstance(question, PartitionQuestion)
        cell = int.from_bytes(decision.note[1:CELL_BYTES], "little")
        fetched = await asyncio.gather(*(self._fetch(vendor, cell) for vendor in drawn.values()))
        came = {place: item for place, item in zip(drawn, fetched, strict=True) if item is not None}
        ours = iter(self._replacements(question, decision, len(drawn) - len(came)))
        rows: list[tuple[Choice, str, VendorItem | None, str | None]] = []
        for place, (choice, shown) in enumerate(zip(decision.choices, decision.items, strict=True)):
            if place not in drawn:
                rows.append((choice, shown, None, None))
            elif place in came:
                rows.append((choice, came[place].handle, came[place], drawn[place]))
            elif (other := next(ours, None)) is not None:
                rows.append((other, self._recommender.id_of[other.slot], None, None))
        return decision._replace(
            items=tuple(shown for _, shown, _, _ in rows),
            choices=tuple(choice for choice, _, _, _ in rows),
            vendors=tuple(vendor for _, _, _, vendor in rows) if came else (),
            expires_at=min((item.expires_at for item in came.values()), default=None),
            note=decision.note
            + write_handles(
                {place: item.handle for place, (_, _, item, _) in enumerate(rows) if item}
            ),
        )

    async def _fetch(self, vendor: str, cell: int) -> VendorItem | None:
        outcome, item = "answered", None
        try:
            item = await self._ask(vendor, cell)
        except PeerUnavailable as failure:
            outcome = failure.reason
        self._recommender.observer.count(
            recommender=self._recommender.name,
            what=FamilyCounter.FORWARDS,
            peer=vendor,
            label=outcome,
        )
        return item

    def _replacements(
        self, question: PartitionQuestion, decision: Decision, count: int
    ) -> Sequence[Choice]:
        """Return items of ours, not yet in the list, for vendors' items that did not come.

        They were paid for, and that a vendor had been drawn may show: not free, and not independent
        of the context, though the items are.
        """
        if not count:
            return ()
        taken = [choice.slot for choice in decision.choices]
        left = np.setdiff1d(question.available, taken, assume_unique=True)
        own = self._recommender.current.model.own
        asked = replace(question, limit=count, available=left, whole=False)
        return own.decide_for_anybody(asked, ChoiceRule(self._epsilon), self._recommender.noise)

    async def _ask(self, vendor: str, cell: int) -> VendorItem:
        recommender = self._recommender
        tree = recommender.current.model.own.statistics.tree
        content = {"centre": tree.centre(cell, self._dimensions), "epsilon": self._epsilon}
        status, body = await self._post(vendor, "forwards", content, urgent=True)
        if status != 200:
            recommender.peers.distrust(peer=vendor, urgent=True)
            raise PeerUnavailable(f"refused with status {status}", reason="refused")
        item = read_item(body)
        if item is None or item.expires_at <= recommender.clock():
            recommender.peers.distrust(peer=vendor, urgent=True)
            raise PeerUnavailable("an answer that cannot be used", reason="malformed")
        return item

    async def _post(
        self, vendor: str, what: str, content: object, *, urgent: bool = False
    ) -> tuple[int, bytes]:
        name = quote(self._recommender.name, safe="")
        return await self._recommender.peers.post(
            peer=vendor,
            url=f"{self.url_of[vendor]}/peers/recommenders/{name}/{what}",
            content=json.dumps(content).encode(),
            urgent=urgent,
        )

    # Feedback.

    def handle_of(self, pending: PendingDecision, position: int) -> str | None:
        """Return the handle that an answer showed in a place, if that item is a vendor's."""
        return read_handles(pending.note).get(position)

    async def pass_on(self, feedback: PendingFeedback, position: int) -> None:
        """Keep feedback on a vendor's item, durably, until the vendor has it, and send it."""
        handle = self.handle_of(feedback.pending, position)
        vendor = self._name_of.get(feedback.pending.choices[position].slot)
        if handle is None or vendor is None:
            return  # ours, or of a vendor that is no longer to be told
        message = {
            "vendor": vendor,
            "handle": handle,
            "reward": feedback.feedback.reward,
            "expires_at": self._recommender.made_at(feedback.pending)[1] + self._recommender.ttl,
        }
        name = feedback.pending.decision_id + bytes([position])
        content = json.dumps(message).encode()
        await self._recommender.store.put_message(queue=self._queue, name=name, content=content)
        self._send_soon(name, content)

    async def send_waiting(self) -> None:
        """Try again what could not be delivered."""
        if not self.url_of:
            return
        store = self._recommender.store
        found = await store.messages(queue=self._queue, most=_MOST_AT_ONCE)
        for name, content in found.items():
            self._send_soon(name, content)

    def _send_soon(self, name: bytes, content: bytes) -> None:
        if name not in self._sending and len(self._sending) < _MOST_AT_ONCE:
            task = asyncio.create_task(self._send(name, content), name="feedback to a vendor")
            self._sending[name] = task
            task.add_done_callback(lambda _: self._sending.pop(name, None))

    async def _send(self, name: bytes, stored: bytes) -> None:
        """Deliver a message and forget it. Delivering one twice is harmless."""
        message = json.loads(stored)
        vendor, recommender = message["vendor"], self._recommender
        try:
            if message["expires_at"] > recommender.clock() and vendor in self.url_of:
                if not recommender.peers.reachable(vendor):
                    return
                content = {"handle": message["handle"], "reward": message["reward"]}
                status, _ = await self._post(vendor, "feedback", content)
                if status not in _SETTLED:
                    return
            await recommender.store.remove_message(queue=self._queue, name=name)
        except DiscreetError:
            return  # the vendor or the store is away: the next round finds the message again

    async def settle(self) -> None:
        """Return once everything that is being sent was sent, or was given up for now."""
        while self._sending:
            await asyncio.gather(*self._sending.values(), return_exceptions=True)

    async def close(self) -> None:
        """Stop sending; what was not delivered stays in the store."""
        tasks = list(self._sending.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Guests:
    """Items for other vendors' users, who are known here by the middle of a cell."""

    PURPOSE: ClassVar[str] = "items for other vendors' users"

    def __init__(
        self,
        recommender: Recommender[PartitionModel],
        *,
        dimensions: int,
        document: GuestPrivacyDocument,
    ) -> None:
        self._recommender = recommender
        self._dimensions = dimensions
        self._most_epsilon = document.most_epsilon
        budget = document.budget
        self._policy = BudgetPolicy(
            epsilon=1e9 if budget is None else budget.epsilon,
            delta=1e-6 if budget is None else budget.delta,
        )
        self._limit = NO_LIMIT if budget is None else self._policy.limit

    def account(self, requester: str) -> bytes:
        """Return the principal that stands for an asking vendor: the account of the pair."""
        recommender = self._recommender
        return recommender.principals.client(recommender.name, f"\x01vendor {requester}")

    def debit(self, *, requester: str, centre: tuple[float, ...], epsilon: float) -> Debit:
        """Return what one draw costs the pair's account. Raises `InvalidArgument`."""
        if not 0 < epsilon <= 50:
            raise InvalidArgument("epsilon", "must be greater than 0 and at most 50")
        if len(centre) != self._dimensions:
            raise InvalidArgument("centre", f"must have {self._dimensions} values")
        if not len(self._recommender.visible):
            raise NothingToRecommend("this recommender has no item to offer")
        charge = self._policy.charge((RandomisedResponse(min(epsilon, self._most_epsilon)),))
        return Debit(self.account(requester), charge, self._limit)

    def decide(
        self, *, requester: str, centre: tuple[float, ...], epsilon: float, paid: bool
    ) -> tuple[bytes, tuple[Choice, ...], bytes]:
        """Return the pair's principal, the choice and the note for one of a vendor's users.

        The draw comes from the released model. It reveals at most `epsilon` about the cell, and no
        more than the document allows; nothing if it was not paid for.
        """
        recommender = self._recommender
        principal = self.account(requester)
        question = PartitionQuestion(principal, 1, centre, recommender.visible, whole=True)
        guests = recommender.current.model.guests
        rule = ChoiceRule(min(epsilon, self._most_epsilon))
        ((choices, cell),) = guests.decide([question], rule, recommender.noise)
        if not paid:
            choices = guests.decide_for_anybody(question, rule, recommender.noise)
        recommender.asked = True
        recommender.observer.count(
            recommender=recommender.name,
            what=FamilyCounter.FORWARDS_RECEIVED,
            peer=requester,
            label="answered",
        )
        return principal, choices, GUESTS + cell.to_bytes(4, "little") + peer_digest(requester)

    @staticmethod
    def is_handle(pending: PendingDecision) -> bool:
        """Tell whether an answer was for another vendor's user."""
        return pending.note[:1] == GUESTS

    def was_asked_by(self, pending: PendingDecision, requester: str) -> bool:
        """Tell whether a handle was given to this vendor."""
        return self.is_handle(pending) and pending.note[CELL_BYTES:] == peer_digest(requester)


def peer_digest(requester: str) -> bytes:
    """Return the name of an asking vendor, of a length that does not tell which."""
    return blake2b(requester.encode(), digest_size=PEER_BYTES, person=b"requester").digest()
