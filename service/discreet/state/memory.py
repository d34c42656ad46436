"""The store as dictionaries of one process: for simulations and for tests of what stands above.

It keeps the same promises as Redis, to the byte, except one: it is gone with its process, so it
must never hold a real person's ledger. Nothing here waits, so one event loop's calls are atomic by
themselves; it is not meant for several threads.
"""

import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

import numpy as np

from discreet.errors import DiscreetError, StateOverflow, UnknownDecision
from discreet.privacy.charges import Charge, Limit
from discreet.state import checks
from discreet.state.expiring import Expiring
from discreet.state.memory_values import MemoryValues
from discreet.state.ready import Failed, Ready
from discreet.state.stores import Account, Claim, Event, Learned, Learning, Registry, Rows, Vector

NOTHING = np.zeros(0, dtype=np.int64)
NOTHING.setflags(write=False)


class MemoryStore(MemoryValues):
    """Every method of `stores.Store`; `clock` counts seconds and decides what has expired."""

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, rng: random.Random | None = None
    ) -> None:
        super().__init__(clock=clock)
        self._ledgers: dict[bytes, Charge] = {}
        self._markers: dict[bytes, Expiring[tuple[bytes, Charge], None]] = {}
        self._cells: dict[bytes, Vector] = {}
        self._claims: Expiring[tuple[bytes, bytes], int] = Expiring(clock)
        self._indexes: dict[bytes, dict[bytes, int]] = {}
        self._events: Expiring[bytes, Event] = Expiring(clock)
        self._queues: dict[bytes, dict[bytes, bytes]] = {}
        self._documents: dict[str, bytes] = {}
        self._secrets: dict[str, bytes] = {}
        self._epoch = 0
        self._clock = clock
        self._rng = rng or random.Random()  # noqa: S311  which cells a survey samples is public

    def spend(
        self,
        *,
        principal: bytes,
        charge: Charge,
        limit: Limit,
        marker: bytes | None = None,
        marker_ttl: int = 86_400,
    ) -> Awaitable[Account]:
        checks.digest("principal", principal)
        if marker is None:
            return Ready(self._debit(principal, charge, limit))
        checks.digest("marker", marker)
        checks.ttl("marker_ttl", marker_ttl)
        markers = self._markers.get(principal)
        if markers is None:
            markers = self._markers[principal] = Expiring(self._clock)
        if (marker, charge) in markers:
            return Ready(Account(granted=True, spent=self._ledgers.get(principal, Charge())))
        account = self._debit(principal, charge, limit)
        if account.granted:
            markers.put((marker, charge), None, marker_ttl)
        return Ready(account)

    def spend_each(
        self, *, principals: Sequence[bytes], charge: Charge, limit: Limit
    ) -> Awaitable[Sequence[Account | DiscreetError]]:
        checks.digests("principals", principals)
        return Ready([self._debit(each, charge, limit) for each in principals])

    def _debit(self, principal: bytes, charge: Charge, limit: Limit) -> Account:
        spent = self._ledgers.get(principal, Charge())
        total = spent + charge
        if not limit.admits(total):
            return Account(granted=False, spent=spent)
        self._ledgers[principal] = total
        return Account(granted=True, spent=total)

    def balance(self, *, principal: bytes) -> Awaitable[Charge]:
        return Ready(self._ledgers.get(checks.digest("principal", principal), Charge()))

    def forget_markers(self, *, principal: bytes) -> Awaitable[Sequence[bytes]]:
        markers = self._markers.pop(checks.digest("principal", principal), None)
        return Ready(list(dict.fromkeys(marker for marker, _ in markers)) if markers else [])

    def read(self, *, addresses: Sequence[bytes]) -> Awaitable[Sequence[Vector]]:
        return Ready(self._vectors(addresses))

    def read_rows(self, *, addresses: Sequence[bytes], fields: int) -> Awaitable[Rows]:
        sums = np.zeros((len(addresses), checks.fields(fields)), dtype=np.int64)
        for row, vector in zip(sums, self._vectors(addresses), strict=True):
            known = vector[:fields]
            row[: len(known)] = known
        return Ready(Rows(sums, {}))

    def _vectors(self, addresses: Sequence[bytes]) -> list[Vector]:
        cells = self._cells
        return [cells.get(each, NOTHING) for each in checks.digests("addresses", addresses)]

    def learn(
        self,
        *,
        address: bytes,
        increments: Sequence[tuple[int, int]],
        claim: bytes,
        reward: int,
        claim_ttl: int,
    ) -> Awaitable[Learned]:
        learned = self._learn(Learning(address, increments, claim, reward, claim_ttl))
        return Failed(learned) if isinstance(learned, StateOverflow) else Ready(learned)

    def learn_each(
        self, *, learnings: Sequence[Learning]
    ) -> Awaitable[Sequence[Learned | DiscreetError]]:
        for each in learnings:
            checks.learning(each)
        return Ready([self._learn(each) for each in learnings])

    def _learn(self, one: Learning) -> Learned | StateOverflow:
        checks.learning(one)
        key = (one.address, one.claim)
        before = self._cells.get(one.address, NOTHING)
        counted = self._claims.get(key)
        if counted is not None:
            outcome = Claim.DUPLICATE if counted == one.reward else Claim.CONFLICT
            return Learned(outcome, int(before[0]) if len(before) else 0)
        try:
            after = added(before, one.increments)
        except StateOverflow as overflow:
            return overflow
        self._cells[one.address] = after
        self._claims.put(key, one.reward, one.claim_ttl)
        return Learned(Claim.COUNTED, int(after[0]) if len(after) else 0)

    def index_cell(self, *, index: bytes, address: bytes, level: int) -> Awaitable[None]:
        cells = self._indexes.setdefault(checks.digest("index", index), {})
        cells[checks.digest("address", address)] = checks.level(level)
        return Ready(None)

    def cells(self, *, index: bytes, most: int) -> Awaitable[Mapping[bytes, int]]:
        cells = self._indexes.get(checks.digest("index", index), {})
        if len(cells) <= checks.most(most):
            return Ready(dict(cells))
        return Ready({each: cells[each] for each in self._rng.sample(list(cells), most)})

    def count_cells(self, *, index: bytes) -> Awaitable[int]:
        return Ready(len(self._indexes.get(checks.digest("index", index), ())))

    def remove_cells(self, *, index: bytes) -> Awaitable[int]:
        removed = self._indexes.pop(checks.digest("index", index), {})
        for address in removed:
            self._cells.pop(address, None)
        return Ready(len(removed))

    def claim_event(self, *, event: bytes, fingerprint: bytes, ttl: int) -> Awaitable[Event]:
        checks.digest("event", event)
        checks.digest("fingerprint", fingerprint)
        checks.ttl("ttl", ttl)
        standing = self._events.get(event)
        if standing is None:
            standing = Event(fingerprint=fingerprint, answer=None)
            self._events.put(event, standing, ttl)
        return Ready(standing)

    def answer_event(self, *, event: bytes, answer: bytes, ttl: int) -> Awaitable[bytes]:
        checks.digest("event", event)
        checks.document("answer", answer)
        checks.ttl("ttl", ttl)
        standing = self._events.get(event)
        if standing is None:
            return Failed(UnknownDecision("the event was forgotten before it was answered"))
        if standing.answer is None:
            standing = Event(fingerprint=standing.fingerprint, answer=answer)
            self._events.put(event, standing, ttl)
        assert standing.answer is not None
        return Ready(standing.answer)

    def find_event(self, *, event: bytes) -> Awaitable[Event | None]:
        return Ready(self._events.get(checks.digest("event", event)))

    def forget_event(self, *, event: bytes) -> Awaitable[None]:
        self._events.remove(checks.digest("event", event))
        return Ready(None)

    def post_letter(self, *, queue: bytes, letter: bytes, content: bytes) -> Awaitable[None]:
        letters = self._queues.setdefault(checks.digest("queue", queue), {})
        letters[checks.digest("letter", letter)] = checks.document("content", content)
        return Ready(None)

    def letters(self, *, queue: bytes, most: int) -> Awaitable[Mapping[bytes, bytes]]:
        letters = self._queues.get(checks.digest("queue", queue), {})
        if len(letters) <= checks.most(most):
            return Ready(dict(letters))
        return Ready({each: letters[each] for each in self._rng.sample(list(letters), most)})

    def discard_letter(self, *, queue: bytes, letter: bytes) -> Awaitable[None]:
        letters = self._queues.get(checks.digest("queue", queue), {})
        letters.pop(checks.digest("letter", letter), None)
        return Ready(None)

    def count_letters(self, *, queue: bytes) -> Awaitable[int]:
        return Ready(len(self._queues.get(checks.digest("queue", queue), ())))

    def epoch(self) -> Awaitable[int]:
        return Ready(self._epoch)

    def registry(self) -> Awaitable[Registry]:
        return Ready(Registry(epoch=self._epoch, documents=dict(self._documents)))

    def put_document(
        self, *, name: str, document: bytes, expected: bytes | None
    ) -> Awaitable[bool]:
        checks.name(name)
        checks.document("document", document)
        if expected is not None:
            checks.document("expected", expected)
        if self._documents.get(name) != expected:
            return Ready(False)
        self._documents[name] = document
        self._epoch += 1
        return Ready(True)

    def remove_document(self, *, name: str) -> Awaitable[bool]:
        if self._documents.pop(checks.name(name), None) is None:
            return Ready(False)
        self._epoch += 1
        return Ready(True)

    def secret(self, *, name: str, proposal: bytes) -> Awaitable[bytes]:
        checks.document("proposal", proposal)
        return Ready(self._secrets.setdefault(checks.name(name), proposal))

    def ping(self) -> Awaitable[None]:
        return Ready(None)

    async def open(self) -> None:
        """Nothing to connect to."""

    async def close(self) -> None:
        """Nothing to let go of; what is stored stays until the object goes."""


def added(before: Vector, increments: Sequence[tuple[int, int]]) -> Vector:
    """Return a new, read-only vector with the increments added in turn, or raise StateOverflow.

    The vector that was there is never written to, because readers hold it.
    """
    longest = max((field for field, _ in increments), default=-1) + 1
    after = np.zeros(max(len(before), longest), dtype=np.int64)
    after[: len(before)] = before
    for field, amount in increments:
        total = int(after[field]) + amount
        if total not in checks.INT64:
            raise StateOverflow("a statistic would leave its 64-bit field")
        after[field] = total
    after.setflags(write=False)
    return after
