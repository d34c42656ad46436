"""Numbers as the store keeps them: fixed-point integers, packed big-endian, eight bytes each.

Sums must be the same bytes whatever the order of their terms, and floating-point addition is not
associative. So what is summed is integers: a value is rounded once, when it enters, to a step
chosen for its field, and everything after is exact. Rounding to nearest moves a value by at most
half a step; a mean of many is moved no further.

Big-endian is what BITFIELD uses; numpy reads it in place and converts to native order once.
"""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument, StateOverflow
from discreet.privacy.charges import UNLIMITED, Charge, Limit

Vector = npt.NDArray[np.int64]

FIELD_BYTES = 8
_WIRE = np.dtype(">i8")
_COLUMNS = struct.Struct(">3q")
LEDGER_BYTES = _COLUMNS.size


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """Values in steps of 2**-`bits`: a power of two, so that scaling itself never rounds."""

    bits: int

    def __post_init__(self) -> None:
        if not 0 <= self.bits <= 52:
            raise InvalidArgument("bits", "must lie in [0, 52]")

    def encode(self, value: float) -> int:
        """Return the nearest whole number of steps; refuse what 64 bits cannot hold."""
        if not math.isfinite(value):
            raise InvalidArgument("value", "must be finite")
        steps = round(math.ldexp(value, self.bits)) if abs(value) < 2**64 else 2**63
        if not -(2**63) <= steps < 2**63:
            raise StateOverflow("a value does not fit its 64-bit field at this scale")
        return steps

    def decode(self, steps: int) -> float:
        """Return the value of so many steps."""
        return math.ldexp(steps, -self.bits)


REWARD = FixedPoint(bits=20)
"""Rewards in [0, 1] to one part in a million: a sum holds 8.8 * 10**12 of them."""


def pack_vector(vector: Vector) -> bytes:
    """Return the vector as the store keeps it."""
    return vector.astype(_WIRE).tobytes()


def unpack_vector(stored: bytes | None) -> Vector:
    """Return the stored vector, read-only; nothing stored is an empty one.

    Raises ValueError for bytes that are not whole fields: statistics that cannot be read are not
    the same as none.
    """
    if stored is None:
        stored = b""
    vector: Vector = np.frombuffer(stored, dtype=_WIRE).astype(np.int64)
    vector.setflags(write=False)
    return vector


def pack_amounts(amounts: Charge | Limit) -> bytes:
    """Return the columns of a charge or limit as the ledger script reads them."""
    return _COLUMNS.pack(amounts.nano_epsilon, amounts.nano_rho, amounts.pico_delta)


def unpack_rows(stored: Sequence[bytes], fields: int) -> Vector:
    """Return the first `fields` of each of these vectors, a row each; what is missing is 0."""
    width = FIELD_BYTES * fields
    content = b"".join([each[:width].ljust(width, b"\0") for each in stored])
    rows: Vector = np.frombuffer(content, dtype=_WIRE).reshape(len(stored), fields)
    return rows.astype(np.int64)


@lru_cache(maxsize=4_096)
def unpack_charge(stored: bytes | None) -> Charge:
    """Return what a ledger holds; no ledger holds nothing.

    Raises ValueError for bytes that no spend can have written.
    """
    if stored is None:
        return Charge()
    if len(stored) != LEDGER_BYTES:
        raise ValueError("a ledger of the wrong length")
    columns = _COLUMNS.unpack(stored)
    if min(columns) < 0 or max(columns) > UNLIMITED:
        raise ValueError("a ledger outside its range")
    return Charge(*columns)
