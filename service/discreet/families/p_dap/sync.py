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
our draw was. An item of our own has only the first factor. Both parts are charged whenever a vendor
might be drawn: whether one was depends on the context, so a price that depended on it would tell. A
vendor that does not answer is replaced by an item of ours that is drawn without looking at the
context: P(k | C) + sum over failing v of P(v | C) * q(k) is post-processing of our own draw.

What that does not cover: the vendor that is asked learns the cell; that it draws at no more than
epsilon2 is its promise (`Guests` keeps ours); that an honest one fails regardless of the cell is an
assumption.

For the vendor's side the asking side's users are guests. They have cells and released statistics of
their own, apart from those of our users. Their answers come from the released model, so asking
changes nothing that is stored. A guest's reward is in one release, whose noise covers it.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import ClassVar
from urllib.parse import quote

from discreet.errors import DiscreetError, InvalidArgument, NothingToRecommend, PeerUnavailable
from discreet.families.contract import Recommender
from discreet.families.observer import FamilyCounter
from discreet.families.p_dap.document import VENDOR, AdaptivePartitionDocument
from discreet.families.p_dap.learning import GUESTS
from discreet.families.p_dap.model import ChoiceRule, PartitionModel, PartitionQuestion
from discreet.families.questions import Choice, Decision, PendingDecision, PendingFeedback, Question
from discreet.families.stored import StoredDocument

CELL_BYTES = 5
PEER_BYTES = 8
_MOST_AT_ONCE = 256
"""Messages sent at the same time; more wait for the next round."""
_LONGEST_HANDLE = 2_048
_HANDLE_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")
_LAST_MOMENT = 2**32
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

    def reachable(self) -> tuple[int, ...]:
        """Return the slots of the vendors that can be asked now. The context has no part in it."""
        reachable = self._recommender.peers.reachable
        return tuple(slot for name, slot in self._slot_of.items() if reachable(name))

    async def fetch_items(
        self, questions: Sequence[Question], decisions: Sequence[Decision]
    ) -> list[Decision]:
        """Return the decisions with an item for every vendor that was drawn."""
        return list(
            await asyncio.gather(
                *(
                    self._fetch_item(question, decision)
                    for question, decision in zip(questions, decisions, strict=True)
                )
            )
        )

    async def _fetch_item(self, question: Question, decision: Decision) -> Decision:
        slot = decision.choices[0].slot if decision.choices else -1
        vendor = self._name_of.get(slot)
        if vendor is None:
            return decision
        cell = int.from_bytes(decision.note[1:CELL_BYTES], "little")
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
        if item is None:
            assert isinstance(question, PartitionQuestion)
            return self._replacement(question, decision)
        return replace(
            decision,
            items=(item.handle,),
            vendor=vendor,
            expires_at=item.expires_at,
            note=decision.note + item.handle.encode("ascii"),
        )

    def _replacement(self, question: PartitionQuestion, decision: Decision) -> Decision:
        """Return an item of ours in place of a vendor's that did not come.

        It was paid for, and that a vendor had been drawn may show: not free, and not independent of
        the context, though the item is.
        """
        recommender = self._recommender
        own = recommender.current.model.own
        choices = own.decide_for_anybody(question, ChoiceRule(self._epsilon), recommender.noise)
        items = tuple(recommender.id_of[choice.slot] for choice in choices)
        return replace(decision, items=items, choices=choices)

    async def _ask(self, vendor: str, cell: int) -> VendorItem:
        recommender = self._recommender
        tree = recommender.current.model.own.statistics.tree
        content = {"centre": tree.centre(cell, self._dimensions), "epsilon": self._epsilon}
        status, body = await self._post(vendor, "forwards", content, urgent=True)
        if status != 200:
            recommender.peers.distrust(peer=vendor)
            raise PeerUnavailable(f"refused with status {status}", reason="refused")
        item = read_item(body)
        if item is None or item.expires_at <= recommender.clock():
            recommender.peers.distrust(peer=vendor)
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

    def handle_of(self, pending: PendingDecision) -> str | None:
        """Return the handle that an answer showed, if its item is a vendor's."""
        if pending.note[:1] == GUESTS or len(pending.note) <= CELL_BYTES:
            return None
        return pending.note[CELL_BYTES:].decode("ascii")

    async def pass_on(self, feedback: PendingFeedback) -> None:
        """Keep feedback on a vendor's item, durably, until the vendor has it, and send it."""
        handle = self.handle_of(feedback.pending)
        vendor = self._name_of.get(feedback.pending.choices[0].slot)
        if handle is None or vendor is None:
            return  # ours, or of a vendor that is no longer to be told
        message = {
            "vendor": vendor,
            "handle": handle,
            "reward": feedback.feedback.reward,
            "expires_at": feedback.pending.expires_at,
        }
        name = feedback.pending.decision_id
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

    def __init__(self, recommender: Recommender[PartitionModel], *, dimensions: int) -> None:
        self._recommender = recommender
        self._dimensions = dimensions

    def decide(
        self, *, requester: str, centre: tuple[float, ...], epsilon: float
    ) -> tuple[bytes, tuple[Choice, ...], bytes]:
        """Return the paying principal, the choice and the note for one of another vendor's users.

        The draw reveals at most `epsilon` about the cell. It comes from the released model.
        """
        recommender = self._recommender
        if not 0 < epsilon <= 50:
            raise InvalidArgument("epsilon", "must be greater than 0 and at most 50")
        if len(centre) != self._dimensions:
            raise InvalidArgument("centre", f"must have {self._dimensions} values")
        if not len(recommender.visible):
            raise NothingToRecommend("this recommender has no item to offer")
        principal = recommender.principals.client(recommender.name, f"\x01vendor {requester}")
        question = PartitionQuestion(principal, 1, centre, recommender.visible, whole=True)
        guests = recommender.current.model.guests
        ((choices, cell),) = guests.decide([question], ChoiceRule(epsilon), recommender.noise)
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
