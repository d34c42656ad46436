"""Ledgers, claims and sums in memory; see `memory`, which adds the rest."""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import numpy as np

from discreet.errors import DiscreetError, StateOverflow
from discreet.privacy.charges import UNLIMITED, Charge
from discreet.state import checks
from discreet.state.awaiting import Counted
from discreet.state.expiring import Expiring
from discreet.state.ledgers import DAY_SECONDS, KEPT_DAYS, booked, turned
from discreet.state.memory_awaiting import MemoryAwaiting
from discreet.state.ready import Ready
from discreet.state.stores import (
    NO_CHARGE,
    OWN,
    Account,
    ClaimOutcome,
    DaySpending,
    Debit,
    Debited,
    FeedbackRecord,
    Increments,
    Learned,
    Ledger,
    OwnRow,
    Vector,
)

NOTHING = np.zeros(0, dtype=np.int64)
NOTHING.setflags(write=False)


class MemorySums(MemoryAwaiting):
    """The part of `stores.Store` that counts; `clock` decides which claims have lapsed."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        super().__init__(clock=clock)
        self._ledgers: dict[bytes, Ledger] = {}
        self._days: dict[bytes, dict[tuple[int, Account, bytes], DaySpending]] = {}
        self._markers: dict[bytes, Expiring[tuple[bytes, Account, Charge], None]] = {}
        self._claims: Expiring[tuple[bytes, bytes], tuple[int, bool]] = Expiring(clock)
        self._open: dict[bytes, dict[bytes, Vector]] = {}
        self._frozen: dict[tuple[bytes, int], dict[bytes, Vector]] = {}
        self._numbers: dict[bytes, int] = {}
        self._counts: dict[bytes, dict[bytes, int]] = {}
        self._own: dict[bytes, dict[bytes, Vector]] = {}
        self._erased: dict[bytes, dict[bytes, int]] = {}

    def spend(self, debits: Sequence[Debit]) -> Awaitable[Sequence[Debited | DiscreetError]]:
        for each in debits:
            checks.debit(each)
        return Ready([self._spend_and_open(each) for each in debits])

    def _spend_and_open(self, debit: Debit) -> Debited:
        after = self._spend(debit)
        if debit.opened is None or not after.granted:
            return after
        return after._replace(awaiting=self._open_decision(debit.principal, debit.opened))

    def _spend(self, debit: Debit) -> Debited:
        ledger = self._ledger(debit.principal, debit.window)
        if debit.marker is None:
            return self._debit(debit, ledger)
        markers = self._markers.get(debit.principal)
        if markers is None:
            markers = self._markers[debit.principal] = Expiring(self._clock)
        paid_for = (debit.marker, debit.account, debit.charge)
        if paid_for in markers:
            return Debited(True, ledger)
        after = self._debit(debit, ledger)
        if after.granted:
            markers.put(paid_for, None, debit.marker_ttl)
        return after

    def _debit(self, debit: Debit, ledger: Ledger) -> Debited:
        if debit.charge == NO_CHARGE:
            return Debited(True, ledger)
        after = booked(ledger, debit.account, debit.charge)
        if not debit.limit.admits(after.spent(debit.account, debit.window)):
            return Debited(False, ledger)
        self._book(debit.principal, after, debit.account, debit.purpose, debit.charge)
        return Debited(True, after)

    def _ledger(self, principal: bytes, window: int) -> Ledger:
        """Return a ledger as it stands at this moment."""
        return turned(self._ledgers.get(principal, Ledger()), window, self._clock())

    def _book(
        self, principal: bytes, after: Ledger, account: Account, purpose: bytes, charge: Charge
    ) -> None:
        """Keep a ledger after a charge, and the charge by day."""
        self._ledgers[principal] = after
        today = int(self._clock() // DAY_SECONDS)
        days = self._days.setdefault(principal, {})
        key = (today, account, purpose)
        if key not in days:
            for old in [each for each in days if each[0] + KEPT_DAYS <= today]:
                del days[old]
        found = days.get(key, DaySpending(*key, 0, NO_CHARGE))
        days[key] = DaySpending(*key, found.uses + 1, found.charge + charge)

    def days(self, principal: bytes) -> Awaitable[Sequence[DaySpending]]:
        held = self._days.get(checks.digest("principal", principal), {})
        return Ready([held[key] for key in sorted(held)])

    def forget_days(self, principal: bytes) -> Awaitable[None]:
        self._days.pop(checks.digest("principal", principal), None)
        return Ready(None)

    def ledgers(self, principals: Sequence[bytes]) -> Awaitable[Sequence[Ledger]]:
        checks.digests("principals", principals)
        return Ready([self._ledgers.get(each, Ledger()) for each in principals])

    def forget_markers(self, principal: bytes) -> Awaitable[Sequence[bytes]]:
        markers = self._markers.pop(checks.digest("principal", principal), None)
        return Ready(list(dict.fromkeys(marker for marker, _, _ in markers)) if markers else [])

    def learn(
        self, records: Sequence[FeedbackRecord]
    ) -> Awaitable[Sequence[Learned | DiscreetError]]:
        for each in records:
            checks.feedback_record(each)
        return Ready([self._learn(each) for each in records])

    def _learn(self, one: FeedbackRecord) -> Learned | DiscreetError:
        ledger = self._ledger(one.principal, one.window)
        row = one.increments.get(OWN)
        if isinstance(row, OwnRow):
            erased = self._erased.get(one.generation, {}).get(one.principal)
            if erased is not None and row.made_at <= erased:
                return Learned(ClaimOutcome.COUNTED, False, NO_CHARGE, ledger)
        key = (one.principal, one.claim)
        held = self._held(one)
        if held not in (None, ClaimOutcome.HELD):
            settled = one.settles and held is ClaimOutcome.DUPLICATE
            return Learned(held, False if settled else None, NO_CHARGE, ledger)
        standing = self._claims.get(key)
        if standing is not None:
            self._note(one, Counted.COUNTED)
            reward, added = standing
            outcome = ClaimOutcome.DUPLICATE if reward == one.reward else ClaimOutcome.CONFLICT
            return Learned(outcome, added, NO_CHARGE, ledger)
        if held is ClaimOutcome.HELD:
            self._note(one, one.reward)
            return Learned(held, None, NO_CHARGE, ledger)
        price, count, after = NO_CHARGE, 0, ledger
        if one.charge != NO_CHARGE:
            count = self._counts.get(one.generation, {}).get(one.principal, 0) + 1
            price = nth_price(one.charge, count)
            after = booked(ledger, Account.FEEDBACK, price)
            if not one.limit.admits(after.spent(Account.FEEDBACK, one.window)):
                self._claims.put(key, (one.reward, False), one.claim_ttl)
                self._note(one, Counted.COUNTED)
                return Learned(ClaimOutcome.COUNTED, False, NO_CHARGE, ledger)
        try:
            self._add(one)
        except StateOverflow as overflow:
            return overflow
        if count:
            self._counts.setdefault(one.generation, {})[one.principal] = count
            self._book(one.principal, after, Account.FEEDBACK, one.purpose, price)
        self._claims.put(key, (one.reward, True), one.claim_ttl)
        self._note(one, Counted.COUNTED)
        return Learned(ClaimOutcome.COUNTED, True, price, after)

    def _add(self, one: FeedbackRecord) -> None:
        """Add all increments or none."""
        shared = self._open.setdefault(one.generation, {})
        own = self._own.setdefault(one.generation, {})
        after: dict[bytes, Vector] = {}
        for block, increments in one.increments.items():
            before = own.get(one.principal) if block == OWN else shared.get(block)
            after[block] = added(NOTHING if before is None else before, increments)
        for block, vector in after.items():
            if block == OWN:
                own[one.principal] = vector
            else:
                shared[block] = vector

    def freeze(self, *, generation: bytes, number: int) -> Awaitable[None]:
        checks.digest("generation", generation)
        checks.number(number)
        if self._numbers.get(generation, 0) < number:
            self._numbers[generation] = number
            self._frozen[generation, number] = self._open.pop(generation, {})
            self._counts.pop(generation, None)
        return Ready(None)

    def frozen(self, *, generation: bytes, number: int) -> Awaitable[Mapping[bytes, Vector]]:
        checks.digest("generation", generation)
        found = self._frozen.get((generation, checks.number(number)), {})
        return Ready(dict(sorted(found.items())))

    def discard(self, *, generation: bytes, number: int) -> Awaitable[None]:
        self._frozen.pop((checks.digest("generation", generation), checks.number(number)), None)
        return Ready(None)

    def own(self, *, generation: bytes, principals: Sequence[bytes]) -> Awaitable[Sequence[Vector]]:
        held = self._own.get(checks.digest("generation", generation), {})
        return Ready([held.get(each, NOTHING) for each in checks.digests("principals", principals)])

    def fold_own(
        self, *, generation: bytes, principal: bytes, before: Vector, after: Vector
    ) -> Awaitable[bool]:
        held = self._own.get(checks.digest("generation", generation), {})
        found = held.get(checks.digest("principal", principal), NOTHING)
        size = len(checks.folded(before))
        checks.vector("after", after)
        if not np.array_equal(found[:size], before):
            return Ready(False)
        held[principal] = joined = np.concatenate([after, found[size:]])
        joined.setflags(write=False)
        return Ready(True)

    def owners(self, *, generation: bytes) -> Awaitable[Sequence[bytes]]:
        return Ready(sorted(self._own.get(checks.digest("generation", generation), ())))

    def forget_own(self, *, generation: bytes, principal: bytes) -> Awaitable[bool]:
        held = self._own.get(checks.digest("generation", generation), {})
        erased = self._erased.setdefault(generation, {})
        erased[checks.digest("principal", principal)] = math.ceil(self._clock())
        return Ready(held.pop(principal, None) is not None)

    def erase_sums(self, *, generation: bytes) -> Awaitable[None]:
        checks.digest("generation", generation)
        held: dict[bytes, Any]
        for held in (
            *(self._open, self._own, self._erased),
            *(self._counts, self._numbers, self._awaited),
        ):
            held.pop(generation, None)
        for key in [key for key in self._frozen if key[0] == generation]:
            del self._frozen[key]
        return Ready(None)


def nth_price(charge: Charge, count: int) -> Charge:
    """Return what the n-th record of a principal in one release adds, if the first costs `charge`.

    n records that share one noise cost n**2 times the rho of one, so the n-th adds 2 n - 1 times.
    Epsilon of a pure mechanism grows with n, so the n-th adds it once.
    """
    return Charge(
        charge.nano_epsilon,
        min(charge.nano_rho * (2 * count - 1), UNLIMITED),
        charge.pico_delta,
    )


def added(before: Vector, increments: Increments | OwnRow) -> Vector:
    """Return a new, read-only vector with the increments added in turn, or raise StateOverflow.

    The vector that was there is never written to, because readers hold it.
    """
    if isinstance(increments, OwnRow):
        missing = np.zeros(max(0, increments.head - len(before)), dtype=np.int64)
        longer = np.concatenate([before, missing, increments.numbers])
        longer.setflags(write=False)
        return longer
    if isinstance(increments, np.ndarray):
        rows = increments.tolist()
        increments = list(enumerate(rows)) if increments.ndim == 1 else rows
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
