"""The claims of a store's ledgers: what it charges for many records, and that the unpaid wait.

A store charges the n-th record of a principal between two releases (2 n - 1) times the rho of the
first, because n records that share one noise cost n**2 times as much. Records come here in every
order that matters: alone in a release, many in one, some in each, over the limit, the same twice.
After every record the ledger is compared with what the sums then hold: sum over releases of n**2
times the rho of one record, n being counted in the sums themselves.

The shipped stores are examined alike: the one in memory, and the scripts, on an embedded server.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from fractions import Fraction

from discreet.audit.claims import Claim, Finding, Method, PlantedFault
from discreet.audit.enclosures import float_above
from discreet.errors import DiscreetError
from discreet.privacy.charges import NANO, UNLIMITED, Charge, Limit
from discreet.state.embedded import EmbeddedStore
from discreet.state.memory import MemoryStore
from discreet.state.redis_store import open_store
from discreet.state.stores import EXACT, ClaimOutcome, FeedbackRecord, Learned, Ledger, Store

OpenStore = Callable[[], AbstractAsyncContextManager[Store]]

_PERSON, _OTHER = b"person", b"other"
_GENERATION = b"audit"
_BLOCK = b"sums"
_RHO = 1_000
"""Nano-rho of a principal's first record in a release."""
_LIMIT = Limit(nano_epsilon=-1, nano_rho=40 * _RHO)
"""Room for forty first records: for six in one release, and then four alone."""

SCHEDULES: tuple[tuple[int, ...], ...] = ((1,), (3,), (1, 1, 1), (4, 2, 3), (9, 9), (1, 6, 8, 2))
"""How many records the person sends before each release."""


@asynccontextmanager
async def memory() -> AsyncIterator[Store]:
    """Open the store in memory."""
    yield MemoryStore()


@asynccontextmanager
async def embedded() -> AsyncIterator[Store]:
    """Open a store with the shipped scripts, on a server of its own."""
    with tempfile.TemporaryDirectory() as folder, EmbeddedStore(folder) as url:
        store = open_store(url, timeout=20)
        await store.open()
        try:
            yield store
        finally:
            await store.close()


def _record(claim: int, principal: bytes, generation: bytes, charge: Charge) -> FeedbackRecord:
    place = 0 if principal != _OTHER else 1
    return FeedbackRecord(
        principal=principal,
        generation=generation,
        claim=claim.to_bytes(4, "little"),
        reward=1,
        claim_ttl=3_600,
        increments={_BLOCK: [(place, 1)]},
        charge=charge,
        limit=_LIMIT if charge != EXACT else Limit(),
    )


async def _worst_shortfall(store: Store) -> Fraction:
    """Return by how much the ledger ever fell short of what the sums of all releases cost."""
    short = Fraction(-1)
    charge = Charge(nano_epsilon=UNLIMITED, nano_rho=_RHO)
    for number, schedule in enumerate(SCHEDULES):
        generation, person = _GENERATION + bytes([number]), _PERSON + bytes([number])
        cost, claim = Fraction(0), 1_000 * number
        for release, records in enumerate(schedule, start=1):
            for _ in range(records):
                claim += 1
                # The second is a duplicate; others' records must not change the price.
                for principal in (person, person, _OTHER):
                    await _learn(store, _record(claim, principal, generation, charge))
            await store.freeze(generation=generation, number=release)
            await store.freeze(generation=generation, number=release)
            blocks = await store.frozen(generation=generation, number=release)
            held = int(blocks[_BLOCK][0]) if _BLOCK in blocks else 0
            cost += Fraction(_RHO * held**2, NANO)
            (ledger,) = await store.ledgers([person])
            short = max(short, cost - Fraction(ledger.feedback.nano_rho, NANO))
    return short


async def _learn(store: Store, record: FeedbackRecord) -> Learned:
    (learned,) = await store.learn([record])
    if isinstance(learned, DiscreetError):
        raise learned
    return learned


async def _unpaid_and_added(store: Store) -> int:
    """Count records that are in the sums though the ledger did not admit them."""
    charge = Charge(nano_epsilon=UNLIMITED, nano_rho=_RHO)
    paid = 0
    for claim in range(1, 60):
        learned = await _learn(store, _record(claim, _PERSON, b"unpaid", charge))
        paid += learned.claim is ClaimOutcome.COUNTED and learned.price != Charge()
    await store.freeze(generation=b"unpaid", number=1)
    blocks = await store.frozen(generation=b"unpaid", number=1)
    return int(blocks[_BLOCK][0]) - paid


async def _exact_for_good(store: Store) -> int:
    """Count private records that are learned after an exact one."""
    await _learn(store, _record(1, b"exact person", b"exact", EXACT))
    private = _record(2, b"exact person", b"exact", Charge(UNLIMITED, _RHO))
    learned = await _learn(store, private)
    (ledger,) = await store.ledgers([b"exact person"])
    return bool(learned.added) + (ledger != Ledger(feedback=EXACT))


def examine_store(opened: OpenStore, question: Callable[[Store], Awaitable[float]]) -> Finding:
    """Ask a fresh store; nothing may be short, unpaid or forgotten."""

    async def ask() -> float:
        async with opened() as store:
            return float(await question(store))

    measured = asyncio.run(ask())
    return Finding(0.0, max(measured, 0.0), holds=measured <= 0)


async def _shortfall(store: Store) -> float:
    return float_above(await _worst_shortfall(store))


QUESTIONS: dict[str, Callable[[Store], Awaitable[float]]] = {
    "rho short of n**2 records a release": _shortfall,
    "records learned and not paid for": _unpaid_and_added,
    "private records after an exact one": _exact_for_good,
}


def claims() -> Iterator[Claim]:
    """Yield the claims of both stores."""
    for name, opened in (("memory", memory), ("scripts", embedded)):
        for about, question in QUESTIONS.items():

            def examine(
                _: object,
                opened: OpenStore = opened,
                question: Callable[[Store], Awaitable[float]] = question,
            ) -> Finding:
                return examine_store(opened, question)

            yield Claim(f"store, {name}: {about}", Method.EXACT, examine)


class LinearPriceStore(MemoryStore):
    """Charges every record like the first of its release: n records n times, not n**2 times."""

    def _learn(self, one: FeedbackRecord) -> Learned | DiscreetError:
        self._counts.clear()
        return super()._learn(one)


class UnpaidStore(MemoryStore):
    """Adds records that the ledger does not admit."""

    def _learn(self, one: FeedbackRecord) -> Learned | DiscreetError:
        learned = super()._learn(one)
        if isinstance(learned, Learned):
            refused = learned.claim is ClaimOutcome.COUNTED and not learned.added
            if refused:
                self._add(one)
        return learned


class RefundingStore(MemoryStore):
    """Forgets what an exact record cost once the next one comes."""

    def _learn(self, one: FeedbackRecord) -> Learned | DiscreetError:
        if self._ledgers.get(one.principal, Ledger()).feedback == EXACT:
            del self._ledgers[one.principal]
        return super()._learn(one)


def _opens(kind: type[MemoryStore]) -> OpenStore:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Store]:
        yield kind()

    return opened


def faults() -> Iterator[PlantedFault]:
    """Yield stores that are broken on purpose."""
    yield PlantedFault(
        "store: n records of one release charged n times",
        lambda _: examine_store(_opens(LinearPriceStore), _shortfall),
    )
    yield PlantedFault(
        "store: a record added that was not paid for",
        lambda _: examine_store(_opens(UnpaidStore), _unpaid_and_added),
    )
    yield PlantedFault(
        "store: an exact record forgotten by the ledger",
        lambda _: examine_store(_opens(RefundingStore), _exact_for_good),
    )
