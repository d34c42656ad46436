"""Discrete Laplace noise, exactly: binary digits, each compared with its own probability.

P(z) is proportional to q**|z| with q = exp(-1 / scale). Let G have the law (1 - q) q**g on 0, 1, 2,
and so on. Its binary digits are independent, and digit j is 1 with probability

    p_j = q**(2**j) / (1 + q**(2**j)) = 1 / (1 + exp(2**j / scale)),

because (1 - q) * (1 + q) * (1 + q**2) * (1 + q**4) * ... = 1: the product of the digits' chances is
(1 - q) times q**(2**j) for every digit that is 1, which is (1 - q) q**g. The difference of two such
numbers has the law wanted: P(z) = sum of (1 - q)**2 q**(2g + |z|) = (1 - q) / (1 + q) * q**|z|.

A digit is 1 if a uniform number U in [0, 1) is below p_j. Of U the first 64 bits are drawn, and
compared with those of p_j. Only if they are equal, which has probability 2**-64, the next 64 of
either are needed, and so on. All bits of p_j can be had: exp of a rational is computed to as many
places as it takes, with proved bounds. So nothing is rounded, and no digit's probability is off by
anything.

What is left out. Only digits with 2**j <= n are drawn one by one, where n = 2**digits - 1 is at
least 1023 scale: numbers are 0 to n. That one is larger has probability q**(n + 1); it is drawn
like a digit, and raises `StateOverflow`, whatever the data. Of the differences that are returned
P(z) is proportional to q**|z| (1 - q**(2 (n + 1 - |z|))), so that next to the ends neighbours are
further apart than exp(1 / scale). By how much, in all: the sum over z of P(z) - P(z + 1) / q, where
that is positive, is (1 - q) q**n (1 - q**(n + 1)). So one draw is (1 / scale, delta)-private for a
step with delta <= exp(-1023) < 10**-444, which no ledger books: it is less than any event whose
chance the 256 bits behind the operating system's generator can express.

Bits are the operating system's, asked anew for every call, a fixed number for each draw.
"""

import math
import os
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet.errors import StateOverflow

_WORD = 64
_REACH = 1023
"""Scales that numbers reach at least. With the widest scale, 2**52, they stay below 2**62."""


def share_below(exponent: Fraction, bits: int, *, beside: int) -> int:
    """Return floor(2**bits / (beside + exp(exponent))) for a positive exponent."""
    if exponent > bits:
        return 0  # exp(-bits) is less than 2**-bits
    digits = 40 + bits // 3 + int(exponent) // 2
    while True:
        context = Context(prec=digits)
        nearest = context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
        # `decimal` documents its division and its exp as correctly rounded.
        low = context.next_minus(context.exp(context.next_minus(nearest)))
        high = context.next_plus(context.exp(context.next_plus(nearest)))
        least, most = (int(2**bits / (beside + Fraction(end))) for end in (high, low))
        if least == most:
            return least
        digits *= 2


class LaplaceSampler:
    """Draws of one scale. It holds the first words of the digits' probabilities, and no bits."""

    def __init__(self, scale: float) -> None:
        steps = Fraction(scale)
        digits = max(0, math.floor(math.log2(_REACH) + math.log2(scale)))
        while 2**digits - 1 < _REACH * steps:
            digits += 1
        self._chances = [(2**place / steps, 1) for place in range(digits)]
        self._chances.append((2**digits / steps, 0))
        self._first = np.array(
            [share_below(exponent, _WORD, beside=beside) for exponent, beside in self._chances],
            dtype=np.uint64,
        )
        self._worth = 2 ** np.arange(digits, dtype=np.int64)

    def draw(self, size: int) -> npt.NDArray[np.int64]:
        """Return so many draws; raise `StateOverflow` if one is out of reach."""
        columns = len(self._chances)
        words = np.frombuffer(os.urandom(16 * columns * size), dtype="<u8")
        words = words.reshape(size, 2, columns)
        ones = words < self._first
        ties = words == self._first
        if ties.any():
            for row, side, column in np.argwhere(ties).tolist():
                ones[row, side, column] = self._settled(column)
        if ones[:, :, -1].any():
            raise StateOverflow("a draw left the range in which adding it is exact")
        numbers = ones[:, :, :-1] @ self._worth
        drawn: npt.NDArray[np.int64] = numbers[:, 0] - numbers[:, 1]
        return drawn

    def _settled(self, column: int) -> bool:
        """Tell whether a digit is 1 whose first word is that of its probability."""
        exponent, beside = self._chances[column]
        bits = _WORD
        while True:
            bits += _WORD
            wanted = share_below(exponent, bits, beside=beside) % 2**_WORD
            drawn = int.from_bytes(os.urandom(_WORD // 8), "little")
            if drawn < wanted:
                return True
            if drawn > wanted:
                return False
