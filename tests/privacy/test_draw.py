from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest

from discreet.audit.examine_samples import entropy_evidence
from discreet.errors import InvalidArgument
from discreet.privacy.draw import (
    BIAS,
    MOST,
    SPARE,
    draw_below,
    draw_below_each,
    draw_counted,
    draw_index,
    draw_narrow,
    draw_narrow_each,
    draw_wide,
    to_limbs,
)
from discreet.privacy.noise import Integers, SystemNoise
from discreet.research.noise import SeededNoise
from tests.privacy.shapes import ALARM


class Fixed:
    """A source whose only number is given, and that notes how many bits were asked for."""

    production = False

    def __init__(self, number: Callable[[int], int]) -> None:
        self._number = number
        self.asked: list[int] = []

    def bits(self, count: int) -> int:
        self.asked.append(count)
        return self._number(count)

    def discrete_laplace(self, *, scale: float, size: int) -> Integers:
        raise AssertionError("a draw asks for bits")

    def discrete_gaussian(self, *, scale: float, size: int) -> Integers:
        raise AssertionError("a draw asks for bits")


def narrow(weights: Sequence[int], noise: Fixed) -> int:
    return draw_narrow(np.array(weights, dtype=np.int64), noise)


def wide(weights: Sequence[int], noise: Fixed) -> int:
    return draw_wide(to_limbs(weights), noise)


def counted(weights: Sequence[int], noise: Fixed) -> int:
    return draw_counted(weights, noise, bits=sum(weights).bit_length() + SPARE)


SMALL = [[1], [5, 5], [1, 2, 3, 4], [0, 7, 0, 0, 1, 0], [2**61, 1, 2**61], list(range(100))]
LARGE = [[2**70, 1], [2**40 - 1] * 50, [3**100, 0, 2**150, 1], [2**32, 2**64, 2**96, 2**32 - 1]]


@pytest.mark.parametrize(
    ("draw", "weights"),
    [(draw, weights) for draw in (narrow, wide, counted, draw_index) for weights in SMALL]
    + [(draw, weights) for draw in (wide, counted, draw_index) for weights in LARGE],
)
def test_every_index_owns_exactly_its_interval(
    draw: Callable[[Sequence[int], Fixed], int], weights: list[int]
) -> None:
    # Index i is drawn for U from ceil(start * 2**n / total) on, up to its neighbour's first U.
    total, start = sum(weights), 0
    possible = [index for index, weight in enumerate(weights) if weight]
    for before, index in zip([None, *possible], possible, strict=False):
        start = sum(weights[:index])

        def first(bits: int, start: int = start) -> int:
            return -((-start << bits) // total)

        assert draw(weights, Fixed(first)) == index
        if before is not None:
            assert draw(weights, Fixed(lambda bits: first(bits) - 1)) == before
    assert draw(weights, Fixed(lambda bits: 2**bits - 1)) == possible[-1]


@pytest.mark.parametrize("weights", [*SMALL, *LARGE])
def test_the_bias_is_within_its_bound(weights: list[int]) -> None:
    # How many U fall to each index, against its share, as the module's proof has it.
    asked = Fixed(lambda bits: 0)
    draw_index(weights, asked)
    (bits,) = asked.asked
    total = sum(weights)
    ends = [-((-end << bits) // total) for end in accumulate(weights, initial=0)]
    for weight, low, high in zip(weights, ends, ends[1:], strict=False):
        if weight:
            share = Fraction(high - low, 2**bits)
            assert abs(share * total / weight - 1) <= Fraction(1, 2**65)
        else:
            assert high == low
    # Two such factors above and two below stay under what mechanisms keep back, with
    # ln((1+d)/(1-d)) <= 2d / (1-d).
    assert 2 * (2 * Fraction(1, 2**65) / (1 - Fraction(1, 2**65))) < BIAS


@pytest.mark.parametrize("draw", [narrow, wide])
def test_as_many_bits_are_asked_for_whatever_the_weights(
    draw: Callable[[Sequence[int], Fixed], int],
) -> None:
    top = 2**40
    asked = set()
    for weights in ([top, 1, 1], [1, 1, top], [top, top, top], [0, top, 0]):
        noise = Fixed(lambda bits: 2 ** (bits - 1))
        draw(weights, noise)
        asked.add(tuple(noise.asked))
    assert len(asked) == 1


def test_a_base_counts_rows_several_times() -> None:
    table, base = [2**80, 2**20, 3], [3, 0, 5]
    multiplied = [weight * times for weight, times in zip(table, base, strict=True)]
    limbs = to_limbs(table)
    for step in range(200):
        share = Fraction(step, 199) * (1 - Fraction(1, 2**90))
        direct = wide(multiplied, Fixed(lambda bits, share=share: int(share * 2**bits)))
        noise = Fixed(lambda bits, share=share: int(share * 2**bits))
        assert draw_wide(limbs, noise, base=np.array(base)) == direct


@pytest.mark.parametrize("weights", [[1, 2, 3, 4], [2**70, 2**71, 3 * 2**70, 2**72]])
def test_frequencies_follow_the_weights(weights: list[int]) -> None:
    # False alarm below 1e-9; rejects the last two weights swapped.
    drawn = [draw_index(weights, SystemNoise()) for _ in range(4_000)]
    counts = np.bincount(drawn, minlength=4)
    shares = np.array([weight / sum(weights) for weight in weights])
    assert entropy_evidence(counts, shares) < ALARM
    assert entropy_evidence(counts, shares[[0, 1, 3, 2]]) > ALARM


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint64])
def test_any_integer_type_will_do(dtype: type[np.integer]) -> None:
    weights = np.array([0, 200, 0], dtype=dtype)
    assert draw_index(weights, SystemNoise()) == 1


def test_sums_beyond_64_bits_do_not_wrap() -> None:
    weights = np.array([2**63, 2**63, 2**63], dtype=np.uint64)
    assert draw_index(weights, Fixed(lambda bits: 2**bits // 2)) == 1
    assert draw_index(weights, Fixed(lambda bits: 2**bits - 1)) == 2


@pytest.mark.parametrize(
    "weights",
    [
        [],
        [[1, 2]],
        [1, -1],
        [2**70, -1],
        [0, 0],
        [0.5, 0.5],
        [float("nan")],
        [2**70, 0.5],
        [True, False],
        ["1"],
        [None],
    ],
)
def test_other_weights_are_refused(weights: list[int]) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        draw_index(weights, SystemNoise())
    assert refusal.value.argument == "weights"


def test_nothing_is_drawn_below_nothing() -> None:
    with pytest.raises(InvalidArgument) as refusal:
        draw_below(0, SystemNoise())
    assert refusal.value.argument == "total"


def test_too_few_bits_are_refused() -> None:
    assert draw_below(2**63 - 1, SystemNoise()) < 2**63 - 1
    with pytest.raises(InvalidArgument) as refusal:
        draw_below(2**63, SystemNoise())
    assert refusal.value.argument == "bits"


def test_draws_for_many_are_those_for_each() -> None:
    totals = [1, 7, 2**62, MOST]
    together = draw_below_each(totals, SeededNoise(3))
    noise = SeededNoise(3)
    assert together == [draw_below(total, noise) for total in totals]
    assert draw_below_each([], SeededNoise(3)) == []
    for wrong in ([1, 0], [MOST + 1]):
        with pytest.raises(InvalidArgument):
            draw_below_each(wrong, SeededNoise(3))


def test_rows_are_drawn_from_as_each_alone() -> None:
    rows = [[1, 2, 3, 4], [0, 7, 0, 1], [2**61, 0, 1, 2**61], [0, 0, 0, 5]]
    for seed in range(20):
        together = draw_narrow_each(np.array(rows, dtype=np.int64), SeededNoise(seed))
        noise = SeededNoise(seed)
        alone = [draw_narrow(np.array(row, dtype=np.int64), noise) for row in rows]
        assert together.tolist() == alone
