"""Draw an index with probability proportional to integer weights, in fixed time.

The cumulative sums of the weights cut [0, total) into one interval for each index. A uniform
integer U of n bits is mapped into [0, total) by r = floor(U * total / 2**n), and the index is the
one whose interval holds r.

How far that is from proportional. The index i is drawn for those U with
cumulative[i] <= U * total / 2**n < cumulative[i+1], an interval of w_i * 2**n / total numbers, so
their count differs from that by less than 1, and

    P(i) = (w_i / total) * (1 + d),   |d| < total / (w_i * 2**n) <= 2**-65,

because n is chosen so that total <= 2**(n-65), and w_i >= 1 unless i is impossible (w_i = 0 is
never drawn: its interval is empty). Two neighbouring inputs therefore see the ratio of their
probabilities off by a factor of at most (1 + 2**-65) / (1 - 2**-65), and a difference of two such
log-ratios, which is what bounded range is about, by at most 4 * 2**-65 * (1 + 2**-60) < `BIAS`.
Mechanisms aim at epsilon - `BIAS`, so that what they charge covers the draw as well: no delta, no
"negligible".

Time. The random bits, their number and the sequence of array operations depend on how many
weights there are and how wide they may become, which is public, and never on their values. The
alternative, rejection sampling, has no bias but a running time that depends on the total.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.privacy.noise import NoiseSource

Limbs = npt.NDArray[np.uint32]
Multiples = npt.NDArray[np.int64]

BIAS = Fraction(1, 2**62)
"""The most that drawing can add to a privacy loss; mechanisms take it off their epsilon."""

MOST = 2**63 - 1
"""The largest total that the 64-bit path holds."""

SPARE = 65
"""How many more random bits are drawn than the total has."""

BITS = 128
"""Enough for any total on the 64-bit path."""


def draw_below(total: int, noise: NoiseSource, *, bits: int = BITS) -> int:
    """Return an integer in [0, total), uniform in the sense of this module's first lines."""
    if total < 1:
        raise InvalidArgument("total", "must be at least 1")
    if total.bit_length() + SPARE > bits:
        raise InvalidArgument("bits", f"must be at least {SPARE} more than the total has")
    return (noise.bits(bits) * total) >> bits


def draw_below_each(totals: Sequence[int], noise: NoiseSource) -> list[int]:
    """Return what `draw_below` returns for each of these, independently; the bits come at once."""
    if min(totals, default=1) < 1 or max(totals, default=1) > MOST:
        raise InvalidArgument("totals", f"must be between 1 and {MOST}")
    size = BITS // 8
    content = noise.bits(BITS * len(totals)).to_bytes(size * len(totals), "little")
    return [
        (int.from_bytes(content[start : start + size], "little") * total) >> BITS
        for start, total in zip(range(0, len(content), size), totals, strict=True)
    ]


def draw_index(
    weights: npt.NDArray[np.integer] | npt.NDArray[np.object_] | Sequence[int],
    noise: NoiseSource,
) -> int:
    """Return an index with probability proportional to `weights`: integers of any size, not all 0.

    The general entrance: it looks at the weights to check them and to see whether they fit 64
    bits. A mechanism that knows both beforehand calls the functions below.
    """
    array = np.asarray(weights)
    if array.ndim != 1 or array.size == 0:
        raise InvalidArgument("weights", "must be a sequence of at least one integer")
    boxed = array.dtype == object and all(type(weight) is int for weight in array)
    if not boxed and array.dtype.kind not in "iu":
        raise InvalidArgument("weights", "must be integers")
    if array.min() < 0:
        raise InvalidArgument("weights", "must not be negative")
    most = int(array.max())
    if most == 0:
        raise InvalidArgument("weights", "must not all be 0")
    if most * array.size <= MOST:
        return draw_narrow(array.astype(np.int64), noise)
    bits = (most * array.size).bit_length() + SPARE
    return draw_counted([int(weight) for weight in array], noise, bits=bits)


def draw_narrow(weights: npt.NDArray[np.int64], noise: NoiseSource) -> int:
    """Draw from weights known to be non-negative, not all 0, and to sum to at most `MOST`."""
    cumulative = weights.cumsum()
    return int(cumulative.searchsorted(draw_below(int(cumulative[-1]), noise), side="right"))


def draw_narrow_each(weights: npt.NDArray[np.int64], noise: NoiseSource) -> npt.NDArray[np.intp]:
    """Return what `draw_narrow` returns for each row, independently.

    Every interval's end is compared with the row's number: as much is done for any index.
    """
    cumulative = weights.cumsum(axis=1)
    drawn = np.array(draw_below_each(cumulative[:, -1].tolist(), noise), dtype=np.int64)
    chosen: npt.NDArray[np.intp] = np.add.reduce(cumulative <= drawn[:, None], axis=1)
    return chosen


def draw_counted(weights: Sequence[int], noise: NoiseSource, *, bits: int) -> int:
    """Draw from a few integers of any width, using `bits` random bits, which must be enough.

    Every interval's end is compared with the drawn number, so that as much is done for the first
    index as for the last. A caller whose weights vary with private data fixes `bits` beforehand.
    """
    ends = list(accumulate(weights))
    drawn = draw_below(ends[-1], noise, bits=bits)
    return sum([end <= drawn for end in ends])


def to_limbs(weights: Sequence[int]) -> Limbs:
    """Write each integer as a row of 32-bit digits, lowest first, all rows of one length."""
    digits = (max(weights).bit_length() + 31) // 32
    packed = b"".join(weight.to_bytes(4 * digits, "little") for weight in weights)
    return np.frombuffer(packed, dtype="<u4").reshape(len(weights), digits)


def draw_wide(limbs: Limbs, noise: NoiseSource, *, base: Multiples | None = None) -> int:
    """Draw from many weights wider than 64 bits, given as rows of `to_limbs`; not all may be 0.

    Row i counts `base[i]` times. Schoolbook arithmetic, column by column: digits are summed in 64
    bits, carries move up, and the drawn number is compared digit by digit. Nothing overflows as
    long as there are fewer than 2**31 rows, or the base sums to less than 2**31.
    """
    digits = limbs.astype(np.uint64)
    if base is not None:
        digits *= base.astype(np.uint64)[:, np.newaxis]
    columns = []
    carry = np.zeros(limbs.shape[0], dtype=np.uint64)
    for column in digits.cumsum(axis=0).T:
        column = column + carry
        carry = column >> np.uint64(32)
        columns.append(column & np.uint64(0xFFFFFFFF))
    columns.append(carry)
    total = sum(int(column[-1]) << (32 * place) for place, column in enumerate(columns))
    drawn = draw_below(total, noise, bits=32 * len(columns) + SPARE)
    # An interval lies wholly at or below the drawn number exactly when its end is <= drawn.
    below = np.ones(limbs.shape[0], dtype=np.bool_)
    for place, column in enumerate(columns):
        digit = np.uint64((drawn >> (32 * place)) & 0xFFFFFFFF)
        below = (column < digit) | ((column == digit) & below)
    return int(np.count_nonzero(below))
