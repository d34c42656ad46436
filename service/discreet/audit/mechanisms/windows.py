"""The claims of windows and of ledger groups: nobody is given more than one budget.

A spender who tries again and again is let loose on a ledger with windows: over their boundaries,
and with a clock that goes back and forth. What was granted is counted apart, by the latest window
that the ledger had been in, and compared with the budget. Records of one release that are given in
two windows must cost, together, what n records that share one noise cost.

A group of recommenders is asked in turn, through the shipped decisions, for as long as any of them
personalises; what all of them gave away is compared with the largest budget of the group.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator

from discreet.audit.claims import Claim, Finding, Method, PlantedFault, Scope
from discreet.audit.mechanisms.stores import embedded
from discreet.errors import DiscreetError
from discreet.families.observer import NullObserver
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.families.peering import NoPeers
from discreet.families.questions import Answered, Ask
from discreet.families.registration import read_document
from discreet.families.resources import Resources
from discreet.families.stored import StoredDocument
from discreet.privacy.charges import NANO, UNLIMITED, Charge, Limit
from discreet.privacy.noise import SystemNoise
from discreet.state.ledgers import Ledger, LedgerWindow, turned
from discreet.state.memory import MemoryStore
from discreet.state.principals import Principals
from discreet.state.stores import Debit, Debited, FeedbackRecord, Learned, Store

_PERSON = b"person"
_LENGTH = 10
_MOST = 3
_ONE = Charge(NANO, NANO, 0)
_LIMIT = Limit(_MOST * NANO, _MOST * NANO)
_MOMENTS = (5, 9, 10, 11, 9, 0, 19, 20, 3, 29, 31, 45, 12, 45, 50)
"""What the clock says, in turn: windows end, and it goes back, by less than one and by more."""
_RHO = 1_000


class Clock:
    """A clock that says what it is told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


async def _granted(store: Store, window: int) -> bool:
    (found,) = await store.spend([Debit(_PERSON, _ONE, _LIMIT, window=window)])
    if isinstance(found, DiscreetError):
        raise found
    return found.granted


async def over_in_memory(kind: type[MemoryStore]) -> float:
    """Return by how many debits a window was overspent at most, with a clock that goes back."""
    clock = Clock()
    store = kind(clock=clock)
    latest, granted = -1, dict[int, int]()
    for moment in _MOMENTS:
        clock.now = float(moment)
        latest = max(latest, moment // _LENGTH)
        for _ in range(_MOST + 2):
            granted[latest] = granted.get(latest, 0) + await _granted(store, _LENGTH)
    return float(max(granted.values()) - _MOST)


async def over_in_scripts() -> float:
    """Return the same of the shipped scripts, by a server's own clock, over two boundaries."""
    async with embedded() as store:
        granted: dict[int, int] = {}
        until = time.monotonic() + 60
        while len(granted) < 3 and time.monotonic() < until:
            (found,) = await store.spend([Debit(_PERSON, _ONE, _LIMIT, window=1)])
            if not isinstance(found, Debited):
                raise found
            window = found.ledger.window(1)
            assert window is not None
            granted[window.number] = granted.get(window.number, 0) + found.granted
        return float(max(granted.values()) - _MOST)


async def short_of_shared_noise(kind: type[MemoryStore]) -> float:
    """Return the rho that is missing if records of one release are given in several windows."""
    clock = Clock()
    store = kind(clock=clock)
    charge, records = Charge(UNLIMITED, _RHO), 6
    for number in range(records):
        clock.now = number * _LENGTH / 2
        record = FeedbackRecord(
            *(_PERSON, b"audit", bytes([number]), 1, 3_600, {b"sums": [(0, 1)]}, charge),
            limit=Limit(-1, 1_000 * _RHO),
            window=_LENGTH,
        )
        (learned,) = await store.learn([record])
        if not isinstance(learned, Learned):
            raise learned
    await store.freeze(generation=b"audit", number=1)
    blocks = await store.frozen(generation=b"audit", number=1)
    held = int(blocks[b"sums"][0])
    (ledger,) = await store.ledgers([_PERSON])
    return float(_RHO * held**2 - ledger.feedback.nano_rho)


async def exact_and_then_private(kind: type[MemoryStore]) -> float:
    """Count private debits that are granted in any window after an exact one."""
    clock = Clock()
    store = kind(clock=clock)
    await store.spend([Debit(_PERSON, Charge(UNLIMITED, UNLIMITED), Limit(), window=_LENGTH)])
    granted = 0
    for moment in _MOMENTS:
        clock.now = float(moment)
        granted += await _granted(store, _LENGTH)
    return float(granted)


BUDGETS = (2.0, 5.0)
"""Of the recommenders of one group."""


def _member(
    family: type[PartitionRecommender], store: Store, name: str, budget: float
) -> PartitionRecommender:
    document = read_document(
        {
            "algorithm": "p-dap",
            "items": ["a", "b", "c"],
            "context": {"dimensions": 1},
            "ledger": "shared",
            "privacy": {
                "answers": {"epsilon": 1.0, "budget": {"epsilon": budget, "delta": 0}},
            },
        }
    )
    return family(
        name=name,
        stored=StoredDocument(document, os.urandom(8), 0.0, {}, 0).with_document(document),
        resources=Resources(
            store=store,
            noise=SystemNoise(),
            observer=NullObserver(),
            principals=Principals(bytes(32)),
            peers=NoPeers(),
            clock=lambda: 0.0,
        ),
    )


async def over_in_group(family: type[PartitionRecommender]) -> float:
    """Return by how much a group's answers exceed its largest budget, whoever is asked first."""
    worst = -max(BUDGETS)
    for budgets in (BUDGETS, BUDGETS[::-1]):
        store = MemoryStore()
        group = [_member(family, store, str(place), one) for place, one in enumerate(budgets)]
        given = 0.0
        for turn in range(30):
            member = group[turn % 2] if turn < 20 else group[turn % 3 % 2]
            question = member.question(Ask(member.name, "person", (0.5,), limit=3))
            (answered,) = await member.answer([question], [None])
            if not isinstance(answered, Answered):
                raise answered
            given += answered.charge.nano_epsilon / NANO
        worst = max(worst, given - max(BUDGETS))
    return worst


def _examine(question: Callable[[], Awaitable[float]]) -> Finding:
    async def ask() -> float:
        return await question()

    measured = asyncio.run(ask())
    return Finding(0.0, max(measured, 0.0), holds=measured <= 0)


QUESTIONS: dict[str, Callable[[], Awaitable[float]]] = {
    "memory, debits above a window's budget, the clock goes back": lambda: over_in_memory(
        MemoryStore
    ),
    "scripts, debits above a window's budget, over boundaries": over_in_scripts,
    "memory, rho short of n**2 records, given in several windows": lambda: short_of_shared_noise(
        MemoryStore
    ),
    "memory, private debits in windows after an exact one": lambda: exact_and_then_private(
        MemoryStore
    ),
    "a group, epsilon above its largest budget": lambda: over_in_group(PartitionRecommender),
}


def claims() -> Iterator[Claim]:
    """Yield the claims of windows and groups."""
    for name, question in QUESTIONS.items():

        def examine(_: object, question: Callable[[], Awaitable[float]] = question) -> Finding:
            return _examine(question)

        yield Claim(f"ledger, {name}", Method.EXACT, examine, Scope.PERSON)


class ReopeningStore(MemoryStore):
    """Believes the clock: where it says another window, that one begins anew."""

    def _ledger(self, principal: bytes, window: int) -> Ledger:
        held = self._ledgers.get(principal, Ledger())
        number = int(self._clock() // window) if window else 0
        windows = [
            each if each.number == number else LedgerWindow(window, number) for each in held.windows
        ]
        return turned(held._replace(windows=tuple(windows)), window, self._clock())


class RecountingStore(MemoryStore):
    """Counts a release's records anew in each window."""

    def _learn(self, one: FeedbackRecord) -> Learned | DiscreetError:
        held = self._ledgers.get(one.principal, Ledger()).window(one.window)
        if held is not None and held.number != int(self._clock() // one.window):
            self._counts.clear()
        return super()._learn(one)


class ForgivingStore(MemoryStore):
    """Lets a window begin with nothing, also after something exact."""

    def _ledger(self, principal: bytes, window: int) -> Ledger:
        held = self._ledgers.get(principal, Ledger())
        forgiven = turned(Ledger(windows=held.windows), window, self._clock())
        return held._replace(windows=forgiven.windows)


class LonelyRecommender(PartitionRecommender):
    """Debits a ledger of its own, whatever its document says."""

    def principal(self, client: str) -> bytes:
        return self.principals.client(self.name, client)


def faults() -> Iterator[PlantedFault]:
    """Yield ledgers that are broken on purpose."""
    planted: dict[str, Callable[[], Awaitable[float]]] = {
        "a window that opens again when the clock goes back": lambda: over_in_memory(
            ReopeningStore
        ),
        "records of one release counted anew in each window": lambda: short_of_shared_noise(
            RecountingStore
        ),
        "an exact answer forgiven in the next window": lambda: exact_and_then_private(
            ForgivingStore
        ),
        "a group whose recommenders do not share": lambda: over_in_group(LonelyRecommender),
    }
    for name, question in planted.items():

        def examine(_: object, question: Callable[[], Awaitable[float]] = question) -> Finding:
            return _examine(question)

        yield PlantedFault(f"ledger: {name}", examine, Scope.PERSON)
