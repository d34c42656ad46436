"""Integers of the ledger: costs up, limits down, sums that saturate, nothing negative."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.privacy.charges import (
    NANO,
    NEVER,
    PICO,
    UNLIMITED,
    Charge,
    Limit,
    decimal,
    round_down,
    round_up,
)

AMOUNTS = st.floats(min_value=0, max_value=1e6, allow_nan=False)


@pytest.mark.parametrize("amount", [0.1, 0.3, 0.7, 1e-9, 2.5, 1.1, 0.000123456])
def test_a_decimal_that_a_person_wrote_is_that_many_units(amount: float) -> None:
    whole = Fraction(repr(amount)) * NANO
    assert round_up(amount, NANO) == round_down(amount, NANO) == whole


def test_what_is_between_two_units_costs_the_upper_and_allows_the_lower() -> None:
    assert round_up(1.5e-9, NANO) == 2
    assert round_down(1.5e-9, NANO) == 1
    assert round_up(1e-30, NANO) == 1, "nothing that costs something is free"
    assert round_down(0.9e-12, PICO) == 0
    assert round_up(Fraction(1, 3), NANO) == 333_333_334
    assert round_down(Fraction(1, 3), NANO) == 333_333_333


@given(AMOUNTS)
def test_rounding_brackets_the_decimal_by_less_than_a_unit(amount: float) -> None:
    exact = decimal(amount) * NANO
    ulp = Fraction(math.ulp(amount)) * NANO
    assert exact <= round_up(amount, NANO) < exact + 1 + ulp
    assert exact - 1 - ulp < round_down(amount, NANO) <= exact


def test_numpy_numbers_are_numbers() -> None:
    assert round_up(np.float64(0.1), NANO) == 100_000_000
    assert round_down(np.float64(0.1), NANO) == 100_000_000


def test_infinity_and_what_no_column_holds_become_unlimited() -> None:
    assert round_up(math.inf, NANO) == round_down(math.inf, NANO) == UNLIMITED
    assert round_up(1e7, NANO) == UNLIMITED
    assert round_up(Fraction(10**30), PICO) == UNLIMITED


@pytest.mark.parametrize("amount", [math.nan, -1.0, -1e-300, Fraction(-1, 7)])
def test_what_is_no_amount_is_refused(amount: float | Fraction) -> None:
    for rounding in (round_up, round_down):
        with pytest.raises(InvalidArgument) as caught:
            rounding(amount, NANO)
        assert caught.value.argument == "amount"


@pytest.mark.parametrize("column", ["nano_epsilon", "nano_rho", "pico_delta"])
@pytest.mark.parametrize("amount", [-2, UNLIMITED + 1, 1.0, True, np.int64(3)])
def test_columns_hold_plain_integers_below_two_to_the_53(column: str, amount: object) -> None:
    for kind in (Charge, Limit):
        with pytest.raises(InvalidArgument) as caught:
            kind(**{column: amount})  # type: ignore[arg-type]
        assert caught.value.argument == column


@given(
    st.lists(
        st.tuples(*[st.integers(min_value=0, max_value=UNLIMITED)] * 3), min_size=1, max_size=6
    )
)
def test_sums_add_in_any_order_and_saturate(amounts: list[tuple[int, int, int]]) -> None:
    forwards = backwards = Charge()
    for entry in amounts:
        forwards = forwards + Charge(*entry)
    for entry in reversed(amounts):
        backwards = Charge(*entry) + backwards
    assert forwards == backwards
    assert forwards.nano_rho == min(sum(entry[1] for entry in amounts), UNLIMITED)


@pytest.mark.parametrize("column", ["nano_epsilon", "nano_rho"])
def test_a_limit_is_reached_but_not_passed(column: str) -> None:
    other = "nano_rho" if column == "nano_epsilon" else "nano_epsilon"
    limit = Limit(**{column: 10, other: NEVER})
    assert limit.admits(Charge(**{column: 10}))
    assert not limit.admits(Charge(**{column: 11}))
    assert not limit.admits(Charge(**{column: UNLIMITED}))


def test_either_rule_admits_and_delta_must_be_within_its_limit() -> None:
    limit = Limit(nano_epsilon=10, nano_rho=5, pico_delta=3)
    assert limit.admits(Charge(10, 99, 3))
    assert limit.admits(Charge(99, 5, 3))
    assert not limit.admits(Charge(11, 6, 0))
    assert not limit.admits(Charge(1, 1, 4))


def test_a_rule_that_is_not_in_use_admits_nothing() -> None:
    assert not Limit(nano_epsilon=NEVER, nano_rho=NEVER).admits(Charge())
    with pytest.raises(InvalidArgument):
        Charge(nano_epsilon=NEVER)


def test_only_no_limit_admits_what_has_no_price() -> None:
    full = Charge(UNLIMITED, UNLIMITED, UNLIMITED)
    assert Limit().admits(full)
    assert not Limit(UNLIMITED - 1, UNLIMITED - 1).admits(full)
    assert not Limit(pico_delta=UNLIMITED - 1).admits(full)


@given(
    st.tuples(*[st.integers(min_value=0, max_value=20)] * 3),
    st.tuples(*[st.integers(min_value=0, max_value=20)] * 3),
    st.tuples(*[st.integers(min_value=-1, max_value=20)] * 2),
)
def test_what_was_refused_stays_refused(
    first: tuple[int, int, int], more: tuple[int, int, int], limits: tuple[int, int]
) -> None:
    """Sums only grow, and no rule admits a larger sum than one that it refused."""
    limit = Limit(*limits, pico_delta=10)
    if not limit.admits(Charge(*first)):
        assert not limit.admits(Charge(*first) + Charge(*more))
