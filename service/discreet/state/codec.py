"""Numbers as the store keeps them: integers, packed big-endian, eight bytes each.

Sums must be the same bytes whatever the order of their terms, and floating-point addition is not
associative. So what is summed is integers. Big-endian is what BITFIELD uses; numpy reads it in
place and converts to native order once.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from discreet.privacy.charges import UNLIMITED, Charge, Limit
from discreet.state.stores import Account, DaySpending, Ledger, LedgerWindow, Vector

_PACKED = np.dtype(">i8")
_TERMS = struct.Struct(">6q")
_COLUMNS = struct.Struct(">3q")
_WINDOW = struct.Struct(">2I")
_DAY = struct.Struct(">IB")
ACCOUNT_BYTES = _COLUMNS.size
_LEDGER_BYTES = 2 * ACCOUNT_BYTES
_WINDOW_BYTES = _WINDOW.size + _LEDGER_BYTES
FEWEST_IN_A_ROW = 8
"""Increments with gaps between them that are added at once as one row: fewer cost the store less
one by one."""
_MOST_LEDGERS = 4_096
"""Ledgers that are read once: people who spent as much have equal ones."""
_DAY_VALUE = (4, 7, 7, 7)
"""Bytes of each number in a day's entry: debits, and the three columns."""


def pack_vector(vector: Vector) -> bytes:
    """Return the vector as the store keeps it."""
    return vector.astype(_PACKED).tobytes()


def unpack_vector(stored: bytes | None) -> Vector:
    """Return the stored vector, read-only; nothing stored is an empty one.

    Raises ValueError for bytes that are not whole fields: sums that cannot be read are not the same
    as none.
    """
    vector: Vector = np.frombuffer(stored or b"", dtype=_PACKED).astype(np.int64)
    vector.setflags(write=False)
    return vector


def pack_row(increments: Sequence[tuple[int, int]]) -> tuple[int, bytes] | None:
    """Return the first field and the amounts of increments in a row, as `learn.lua` adds them at
    once; None if they are far apart, few and not side by side, out of order or more than 4 bytes
    each."""
    if len(increments) < FEWEST_IN_A_ROW:
        return _pack_few(increments)
    fields, amounts = zip(*increments, strict=True)
    first, many = fields[0], fields[-1] - fields[0] + 1
    if not len(fields) <= many <= 2 * len(fields) or max(map(abs, amounts)) >= 2**31:
        return None
    places = np.array(fields) - first
    if not np.all(places[1:] > places[:-1]):
        return None
    row = np.zeros(many, dtype=">i4")
    row[places] = amounts
    return first, row.tobytes()


def _pack_few(increments: Sequence[tuple[int, int]]) -> tuple[int, bytes] | None:
    first, many = increments[0][0], len(increments)
    amounts = [amount for place, (field, amount) in enumerate(increments, first) if field == place]
    if many < 2 or len(amounts) < many or max(map(abs, amounts)) >= 2**31:
        return None
    return first, struct.pack(f">{many}i", *amounts)


def pack_terms(charge: Charge, limit: Limit) -> bytes:
    """Return the columns of a charge, then of a limit, as the ledger's scripts read them."""
    return _TERMS.pack(
        charge.nano_epsilon,
        charge.nano_rho,
        charge.pico_delta,
        limit.nano_epsilon,
        limit.nano_rho,
        limit.pico_delta,
    )


@lru_cache(maxsize=_MOST_LEDGERS)
def unpack_ledger(stored: bytes | None) -> Ledger:
    """Return what a ledger holds; no ledger holds nothing.

    The feedback account is left out while nothing follows the first; windows follow the accounts.
    Raises ValueError for bytes that no debit can have written.
    """
    if stored is None:
        return Ledger()
    if len(stored) == ACCOUNT_BYTES:
        return Ledger(unpack_charge(stored))
    windows = tuple(
        _unpack_window(stored[start : start + _WINDOW_BYTES])
        for start in range(_LEDGER_BYTES, len(stored), _WINDOW_BYTES)
    )
    return Ledger(*_unpack_accounts(stored[:_LEDGER_BYTES]), windows)


def unpack_parts(reply: Sequence[bytes | None]) -> Ledger:
    """Return what a ledger holds, from its accounts and its windows as they are stored."""
    accounts, windows = reply
    if not windows:
        return unpack_ledger(accounts)
    return unpack_ledger((accounts or b"").ljust(_LEDGER_BYTES, b"\0") + windows)


def _unpack_accounts(stored: bytes) -> tuple[Charge, Charge]:
    return unpack_charge(stored[:ACCOUNT_BYTES]), unpack_charge(stored[ACCOUNT_BYTES:])


def _unpack_window(stored: bytes) -> LedgerWindow:
    if len(stored) != _WINDOW_BYTES:
        raise ValueError("a ledger of the wrong length")
    seconds, number = _WINDOW.unpack_from(stored)
    if not seconds:
        raise ValueError("a ledger with a window of no length")
    return LedgerWindow(seconds, number, *_unpack_accounts(stored[_WINDOW.size :]))


def unpack_days(reply: Sequence[bytes]) -> list[DaySpending]:
    """Return what was spent by day, in ascending order, from all of a ledger's names and values."""
    days = []
    for name, value in zip(reply[::2], reply[1::2], strict=True):
        if not name.startswith(b"d"):
            continue
        day, account = _DAY.unpack_from(name, 1)
        if len(value) != sum(_DAY_VALUE):
            raise ValueError("a day's entry of the wrong length")
        numbers, start = [], 0
        for size in _DAY_VALUE:
            numbers.append(int.from_bytes(value[start : start + size], "big"))
            start += size
        uses, *columns = numbers
        charge = Charge(*columns)
        days.append(DaySpending(day, Account(account), name[1 + _DAY.size :], uses, charge))
    return sorted(days, key=lambda one: one[:3])


@lru_cache(maxsize=4_096)
def unpack_charge(stored: bytes) -> Charge:
    """Return the three columns of one account; raise ValueError for what no debit can have written.

    Kept, because the same totals come again and again: most are a few times one price.
    """
    if len(stored) != ACCOUNT_BYTES:
        raise ValueError("a ledger of the wrong length")
    columns = _COLUMNS.unpack(stored)
    if min(columns) < 0 or max(columns) > UNLIMITED:
        raise ValueError("a ledger outside its range")
    return Charge(*columns)
