import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from discreet.audit.enclosures import exceeds_exp, exp_interval
from discreet.errors import InvalidArgument
from discreet.privacy.draw import BIAS
from discreet.privacy.noise import SystemNoise
from discreet.privacy.tables import (
    NarrowTable,
    WideTable,
    exp_below,
    geometric_table,
    promised,
    weight_table,
)

EXPONENTS = [
    Fraction(0),
    Fraction(1, 10**12),
    Fraction(-1, 10**12),
    Fraction(1),
    Fraction(-1, 3),
    Fraction(50),
    Fraction(-50),
    Fraction(4096),
]


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("bits", [1, 64, 160])
def test_an_exponential_is_bounded_from_below_and_closely(exponent: Fraction, bits: int) -> None:
    # The enclosure sums the series in integers; the function under test asks `decimal`.
    truth = exp_interval(exponent, digits=8192)
    value = Fraction(exp_below(exponent, bits), 2**bits)
    assert value <= truth.high
    assert value > truth.low - Fraction(1, 2**bits) - truth.low / 10**30


def test_the_promise_is_the_smaller_of_decimal_and_binary() -> None:
    assert Fraction(0.1) > Fraction(1, 10)
    assert promised(0.1) == Fraction(1, 10) - BIAS
    assert Fraction(0.3) < Fraction(3, 10)
    assert promised(0.3) == Fraction(0.3) - BIAS


def keeps_its_ratios(table: tuple[int, ...], stride: int, exponent: Fraction) -> bool:
    return not any(
        exceeds_exp(Fraction(table[high], table[low]), exponent)
        for low in range(len(table))
        for high in range(low, min(low + stride, len(table) - 1) + 1)
    )


TABLES = [
    (steps, stride, Fraction(exponent), bits)
    for steps, stride in [(1, 1), (6, 6), (12, 1), (12, 5), (30, 7)]
    for exponent in ("1/1000000", "1/20", "1/2", "3", "25")
    for bits in (4, 42, 80)
]


@pytest.mark.parametrize(("steps", "stride", "exponent", "bits"), TABLES)
def test_ratios_within_a_stride_are_exact_bounds(
    steps: int, stride: int, exponent: Fraction, bits: int
) -> None:
    table = geometric_table(steps=steps, stride=stride, exponent=exponent, bits=bits)
    assert len(table) == steps + 1
    assert table[-1] == 2**bits
    assert min(table) >= 1
    assert all(low <= high for low, high in pairwise(table))
    assert keeps_its_ratios(table, stride, exponent)


def test_rounding_down_would_break_them() -> None:
    # The planted fault that this construction avoids, and that the check above notices.
    exponent, steps, stride, bits = Fraction(3), 12, 5, 10
    floors = tuple(
        max(1, math.floor(2**bits * math.exp(-3 * (steps - q) / stride))) for q in range(steps + 1)
    )
    assert not keeps_its_ratios(floors, stride, exponent)
    table = geometric_table(steps=steps, stride=stride, exponent=exponent, bits=bits)
    assert keeps_its_ratios(table, stride, exponent)
    assert not keeps_its_ratios(table, stride, exponent / Fraction(13, 10))


@pytest.mark.parametrize(("stride", "exponent"), [(4096, Fraction(1, 2)), (129, Fraction(1))])
def test_the_table_follows_the_exponential(stride: int, exponent: Fraction) -> None:
    bits = 80
    table = geometric_table(steps=4096, stride=stride, exponent=exponent, bits=bits)
    for q in range(0, 4097, 64):
        ideal = math.exp(-float(exponent) * (4096 - q) / stride)
        assert table[q] / 2**bits == pytest.approx(ideal, rel=1e-9)


def test_a_narrow_table_is_used_where_it_suffices() -> None:
    assert isinstance(weight_table(50.0, 4096, 4096), NarrowTable)
    assert isinstance(weight_table(60.0, 4096, 4096), WideTable)
    assert isinstance(weight_table(1.0, 4096, 41), WideTable)


def test_a_table_too_wide_to_be_useful_is_refused() -> None:
    weight_table(1300.0, 64, 64)
    with pytest.raises(InvalidArgument, match="narrow the range or lower epsilon") as refusal:
        weight_table(1500.0, 64, 64)
    assert refusal.value.argument == "epsilon"


@pytest.mark.parametrize("kind", [NarrowTable, WideTable])
def test_both_kinds_weigh_and_draw_alike(kind: type[NarrowTable] | type[WideTable]) -> None:
    table = kind((1, 10, 2**42))
    points, base = np.array([0, 2, 1, 1]), np.array([5, 0, 2, 1])
    assert table.weights(points, None).tolist() == [1, 2**42, 10, 10]
    assert table.weights(points, base).tolist() == [5, 0, 20, 10]
    # The rarest has a share of 1/7: absent from 200 draws with probability below 1e-13.
    assert {table.draw(points, base, SystemNoise()) for _ in range(200)} == {0, 2, 3}
    # 2**42 against 21 others: another answer has probability 5e-12.
    assert table.draw(points, None, SystemNoise()) == 1
