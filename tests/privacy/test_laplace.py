"""Exact discrete Laplace: every digit's probability to the last bit, and the law that follows."""

import math
import os
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import StateOverflow
from discreet.privacy import laplace
from discreet.privacy.laplace import LaplaceSampler, share_below

SCALES = [0.3, 1.0, 4.5540360428292574, 1000.0, 2.0**52]


@pytest.mark.parametrize("beside", [0, 1])
@pytest.mark.parametrize("bits", [64, 128, 320])
@pytest.mark.parametrize(
    "exponent", [Fraction(1, 10**6), Fraction(1, 3), Fraction(7), Fraction(50)]
)
def test_a_share_is_the_probability_to_so_many_bits(
    exponent: Fraction, bits: int, beside: int
) -> None:
    share = share_below(exponent, bits, beside=beside)
    with localcontext() as context:
        context.prec = 400
        chance = 1 / (beside + (Decimal(exponent.numerator) / exponent.denominator).exp())
        assert share <= chance * 2**bits < share + 1
    assert share >> 32 == share_below(exponent, bits - 32, beside=beside)


def test_a_share_that_no_bit_can_show_is_nothing_at_once() -> None:
    assert share_below(Fraction(10**300), 64, beside=1) == 0
    assert share_below(Fraction(1_000), 64 * 30, beside=0) > 0


@pytest.mark.parametrize("scale", SCALES)
def test_the_digits_make_the_law(scale: float) -> None:
    """P(g) by the digits' probabilities, beside (1 - q) q**g."""
    sampler = LaplaceSampler(scale)
    shares = [int(word) / 2**64 for word in sampler._first]
    digits = shares[:-1]
    for number in (0, 1, 2, 5, int(scale), int(3 * scale) + 1):
        by_digits = math.prod(
            share if number >> place & 1 else 1 - share for place, share in enumerate(digits)
        )
        law = -math.expm1(-1 / scale) * math.exp(-number / scale)
        assert by_digits == pytest.approx(law, rel=1e-9)
    # Beyond the digits there is next to nothing, and the integers hold them all.
    assert 2 ** len(digits) - 1 >= 1023 * Fraction(scale) > 2 ** (len(digits) - 1) - 1
    assert len(digits) <= 62


@pytest.mark.parametrize("scale", [2.0**-10, 2.0**-9, 0.01])
def test_neighbours_are_as_near_as_they_should_be_to_the_ends(scale: float) -> None:
    """The whole law of what is returned, from the digits' chances to 4,096 bits."""
    sampler = LaplaceSampler(scale)
    with localcontext() as context:
        context.prec = 1_300
        bits = 4_096
        numbers = [Decimal(1)]
        for exponent, beside in sampler._chances[:-1]:
            one = Decimal(share_below(exponent, bits, beside=beside)) / 2**bits
            numbers = [chance * (1 - one) for chance in numbers] + [each * one for each in numbers]
        most = len(numbers) - 1
        law = [
            sum((numbers[g] * numbers[g + z] for g in range(most + 1 - z)), Decimal(0))
            for z in range(most + 1)
        ]
        assert abs(law[0] + 2 * sum(law[1:]) - 1) < Decimal("1e-1200")
        factor = (1 / Decimal(scale)).exp()
        apart = sum(
            max(here - factor * there, Decimal(0))
            for here, there in zip(law, [*law[1:], Decimal(0)], strict=True)
        )
        assert apart <= Decimal(-1023).exp() < Decimal("1e-444")


def test_draws_differ_by_what_their_law_says() -> None:
    # Of 20,000 draws, P(0) = (1 - q) / (1 + q) has a deviation of 0.0035: the limits are 8 of them.
    drawn = LaplaceSampler(1.0).draw(20_000)
    q = math.exp(-1)
    assert abs(np.mean(drawn == 0) - (1 - q) / (1 + q)) < 0.028
    assert abs(np.mean(drawn == 1) - np.mean(drawn == -1)) < 0.028
    assert LaplaceSampler(1.0).draw(0).tolist() == []


def scripted(monkeypatch: pytest.MonkeyPatch, answers: Callable[[int], bytes]) -> None:
    """Let the operating system say what a test wants."""

    class Scripted:
        urandom = staticmethod(answers)

    monkeypatch.setattr(laplace, "os", Scripted)


@pytest.mark.parametrize("step", [-1, 1])
@pytest.mark.parametrize("equal", [0, 2])
def test_a_tie_is_settled_by_the_next_bits(
    monkeypatch: pytest.MonkeyPatch, step: int, equal: int
) -> None:
    sampler = LaplaceSampler(4.5)
    words = np.full((1, 2, len(sampler._first)), 2**64 - 1, dtype="<u8")  # all digits 0
    words[0, 0, 2] = sampler._first[2]  # but the fours of the first number, which are in doubt
    exponent = 4 / Fraction(4.5)
    following = [
        share_below(exponent, 64 * (2 + place), beside=1) % 2**64 for place in range(equal + 1)
    ]
    following[-1] += step
    script = [words.tobytes(), *(each.to_bytes(8, "little") for each in following)]

    def answers(size: int) -> bytes:
        assert len(script[0]) == size
        return script.pop(0)

    scripted(monkeypatch, answers)
    assert sampler.draw(1).tolist() == [4 if step < 0 else 0]
    assert script == []


def test_a_number_out_of_reach_is_never_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, bytes)  # nothing but zeros: below every probability there is
    with pytest.raises(StateOverflow):
        LaplaceSampler(4.5).draw(1)


def test_every_call_asks_for_fresh_bits_and_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def answers(size: int) -> bytes:
        asked.append(size)
        return os.urandom(size)

    scripted(monkeypatch, answers)
    sampler = LaplaceSampler(4.5)
    for _ in range(3):
        sampler.draw(5)
    assert asked == [5 * 16 * len(sampler._first)] * 3
