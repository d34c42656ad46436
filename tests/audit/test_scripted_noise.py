"""Scripted noise reads a draw's distribution off the code, exactly, or says that it cannot."""

from collections.abc import Callable, Hashable
from fractions import Fraction

import numpy as np
import pytest

from discreet.audit.scripted_noise import (
    ConstantNoise,
    ScriptedNoise,
    TapedNoise,
    coin_law,
    distribution,
    uniform_law,
)
from discreet.privacy.draw import draw_index
from discreet.privacy.noise import NoiseSource


def test_a_draw_by_thirds_is_read_off_to_the_last_of_its_bits() -> None:
    def draw(noise: NoiseSource) -> int:
        return noise.bits(8) * 3 >> 8

    assert distribution(draw) == {0: Fraction(86, 256), 1: Fraction(85, 256), 2: Fraction(85, 256)}


def test_the_shipped_draw_follows_its_weights() -> None:
    found = distribution(lambda noise: draw_index([1, 0, 2**40], noise))
    assert set(found) == {0, 2}
    assert sum(found.values()) == 1
    assert abs(found[0] * (1 + 2**40) - 1) < Fraction(1, 2**60)


def test_further_requests_are_explored_below_each_outcome() -> None:
    def draw(noise: NoiseSource) -> tuple[int, ...]:
        first = noise.bits(4) >> 3
        if first:
            return (1,)
        return (0, noise.bits(6) * 3 >> 6)

    assert distribution(draw) == {
        (1,): Fraction(1, 2),
        (0, 0): Fraction(22, 128),
        (0, 1): Fraction(21, 128),
        (0, 2): Fraction(21, 128),
    }


def test_an_outcome_of_intervals_in_any_order_is_read_off() -> None:
    def draw(noise: NoiseSource) -> str:
        return "cab"[noise.bits(10) * 3 >> 10]

    found = distribution(draw)
    assert found["c"] == Fraction(342, 1024)
    assert sum(found.values()) == 1


def test_an_outcome_that_comes_and_goes_is_refused() -> None:
    with pytest.raises(ArithmeticError, match="monotone"):
        distribution(lambda noise: noise.bits(10) % 3)


def test_a_list_must_come_in_the_order_of_its_draws() -> None:
    with pytest.raises(TypeError, match="tuple"):
        distribution(lambda noise: noise.bits(2) + noise.bits(2))


def test_a_script_stretches_and_cuts() -> None:
    script = ScriptedNoise(((0b101, 3), (0b101, 3)))
    assert script.bits(5) == 0b10100
    assert script.bits(2) == 0b10
    assert script.asked == [5, 2]


def test_constant_noise_notes_every_draw() -> None:
    constant = ConstantNoise(7)
    assert list(constant.discrete_laplace(scale=2.0, size=2)) == [7, 7]
    assert list(constant.discrete_gaussian(scale=3.0, size=1)) == [7]
    assert (constant.laplace, constant.gaussian) == ([2.0, 2.0], [3.0])


def test_each_source_answers_only_what_its_kind_of_mechanism_asks() -> None:
    with pytest.raises(AssertionError):
        ConstantNoise().bits(8)
    with pytest.raises(AssertionError):
        ScriptedNoise(()).discrete_gaussian(scale=1.0, size=1)
    assert np.all(ConstantNoise().discrete_laplace(scale=1.0, size=4) == 0)


def test_a_tape_plays_its_bits_and_its_steps_in_order_and_notes_the_scales() -> None:
    tape = TapedNoise(bits=[5, 6], steps=[1, -2, 3])
    assert [tape.bits(8), tape.bits(8)] == [5, 6]
    assert list(tape.discrete_gaussian(scale=2.0, size=2)) == [1, -2]
    assert list(tape.discrete_laplace(scale=4.0, size=2)) == [3, 0]
    assert tape.scales == [2.0, 2.0, 4.0, 4.0]
    with pytest.raises(IndexError):
        tape.bits(8)


@pytest.mark.parametrize("source", [ScriptedNoise(()), TapedNoise(), ConstantNoise()])
def test_no_scripted_source_calls_itself_production(source: NoiseSource) -> None:
    assert not source.production


def _explores_below(threshold: int) -> Callable[[int, int], Hashable]:
    """Explore two of four items evenly if the coin is below the threshold, else show the first."""

    def outcome(coin: int, uniform: int) -> Hashable:
        return ("explored", uniform >> 3) if coin < threshold else ("shown", 0)

    return outcome


def test_a_coin_and_a_uniform_give_an_exact_law_and_bits_for_each_outcome() -> None:
    outcome = _explores_below(40)
    law = coin_law(outcome, coin_bits=8, uniform_bits=4)
    assert law.shares == {
        ("explored", 0): Fraction(20, 256),
        ("explored", 1): Fraction(20, 256),
        ("shown", 0): Fraction(216, 256),
    }
    for seen, (coin, uniform) in law.bits.items():
        assert outcome(coin, uniform) == seen


def test_a_coin_that_decides_nothing_leaves_one_law() -> None:
    law = coin_law(lambda _, uniform: uniform >> 1, coin_bits=8, uniform_bits=2)
    assert law.shares == {0: Fraction(1, 2), 1: Fraction(1, 2)}


def test_a_coin_whose_threshold_depends_on_the_uniform_is_refused() -> None:
    def outcome(coin: int, uniform: int) -> Hashable:
        return "explored", uniform >> 3 if coin < 40 + uniform else 9

    with pytest.raises(ArithmeticError, match="several thresholds"):
        coin_law(outcome, coin_bits=8, uniform_bits=4)


def test_a_coin_with_three_sides_is_refused() -> None:
    with pytest.raises(ArithmeticError, match="several thresholds"):
        coin_law(lambda coin, _: coin * 3 >> 8, coin_bits=8, uniform_bits=4)


def test_a_uniform_alone_gives_an_exact_law_and_bits_for_each_outcome() -> None:
    law = uniform_law(lambda uniform: uniform * 3 >> 8, uniform_bits=8)
    assert law.shares == {0: Fraction(86, 256), 1: Fraction(85, 256), 2: Fraction(85, 256)}
    assert all(uniform * 3 >> 8 == seen for seen, (uniform,) in law.bits.items())


def test_where_outcomes_began_before_decides_nothing() -> None:
    """Laws that differ by one number in millions, one after the other, are told apart."""
    for threshold in (1_000_000, 1_000_001, 999_999, 5, 1_000_000, 2**30 - 1):

        def drawn(noise: NoiseSource, threshold: int = threshold) -> bool:
            return noise.bits(30) < threshold

        share = Fraction(threshold, 2**30)
        assert distribution(drawn) == {True: share, False: 1 - share}


def test_a_law_that_was_met_before_takes_few_draws() -> None:
    drawn = 0

    def draw(noise: NoiseSource) -> bool:
        nonlocal drawn
        drawn += 1
        return noise.bits(30) < 123_456_789

    first = distribution(draw)
    needed, drawn = drawn, 0
    assert distribution(draw) == first
    assert drawn < 0.7 * needed
