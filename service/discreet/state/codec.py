"""Numbers as the store keeps them: integers, packed big-endian, eight bytes each.

Sums must be the same bytes whatever the order of their terms, and floating-point addition is not
associative. So what is summed is integers. Big-endian is what BITFIELD uses; numpy reads it in
place and converts to native order once.
"""

import struct
from functools import lru_cache

import numpy as np

from discreet.privacy.charges import UNLIMITED, Charge, Limit
from discreet.state.stores import Ledger, Vector

_PACKED = np.dtype(">i8")
_TERMS = struct.Struct(">6q")
_COLUMNS = struct.Struct(">3q")
ACCOUNT_BYTES = _COLUMNS.size


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


def unpack_ledger(stored: bytes | None) -> Ledger:
    """Return what a ledger holds; no ledger holds nothing.

    The feedback account is left out while it is empty. Raises ValueError for bytes that no debit
    can have written.
    """
    if stored is None:
        return Ledger()
    if len(stored) == ACCOUNT_BYTES:
        return Ledger(unpack_charge(stored))
    return Ledger(unpack_charge(stored[:ACCOUNT_BYTES]), unpack_charge(stored[ACCOUNT_BYTES:]))


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
