"""Exact judgements on distributions whose divergences are known in closed form."""

import math
from fractions import Fraction

import pytest

from discreet.audit.enclosures import exp_interval
from discreet.audit.examine_exact import (
    both_ways,
    from_weights,
    judge_pure,
    judge_zcdp,
    zcdp_of,
)

HALF = Fraction(1, 2)


def _coin(p: Fraction) -> dict[str, Fraction]:
    return {"a": p, "b": 1 - p}


def _response(epsilon: Fraction) -> tuple[dict[str, Fraction], dict[str, Fraction]]:
    """Binary randomised response, a hair inside epsilon."""
    power = exp_interval(epsilon).low
    return _coin(power / (1 + power)), _coin(1 / (1 + power))


def test_the_largest_loss_is_found_in_both_directions() -> None:
    finding = judge_pure(pairs=[(_coin(HALF), _coin(Fraction(1, 8)))], claimed=Fraction(2))
    assert finding.holds
    assert finding.measured == pytest.approx(math.log(4), rel=1e-15)
    assert finding.measured >= math.log(4)


def test_a_loss_beyond_the_claim_by_less_than_a_double_is_refused() -> None:
    low, high = exp_interval(Fraction(1))
    inside = ({"a": low / 4, "b": 1 - low / 4}, {"a": Fraction(1, 4), "b": Fraction(3, 4)})
    outside = ({"a": high / 4, "b": 1 - high / 4}, {"a": Fraction(1, 4), "b": Fraction(3, 4)})
    assert judge_pure(pairs=[inside], claimed=Fraction(1)).holds
    assert not judge_pure(pairs=[outside], claimed=Fraction(1)).holds


def test_an_outcome_that_only_one_input_allows_is_an_infinite_loss() -> None:
    pair = ({"a": Fraction(1)}, _coin(HALF))
    for finding in (
        judge_pure(pairs=[pair], claimed=Fraction(10**6)),
        judge_zcdp(pairs=[pair], claimed=Fraction(10**6)),
    ):
        assert finding.measured == math.inf
        assert not finding.holds


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_randomised_response_costs_its_known_divergence(epsilon: Fraction) -> None:
    """Its KL divergence is epsilon tanh(epsilon/2); no order asks for more than that."""
    pair = _response(epsilon)
    kl = float(epsilon) * math.tanh(float(epsilon) / 2)
    enough = Fraction(kl * (1 + 1e-9))
    found = judge_zcdp(pairs=[pair], claimed=enough)
    assert found.holds
    assert found.measured <= kl * (1 + 1e-9)
    assert not judge_zcdp(pairs=[pair], claimed=Fraction(kl * (1 - 1e-6))).holds


def test_bounded_range_is_worth_a_quarter_of_randomised_response() -> None:
    """Losses of range epsilon cost at most epsilon**2/8, which randomised response exceeds."""
    epsilon = Fraction(1)
    root = exp_interval(epsilon / 2).low
    narrow = (_coin(root / (1 + root)), _coin(HALF))
    assert judge_zcdp(pairs=[narrow], claimed=epsilon**2 / 8).holds
    assert not judge_zcdp(pairs=[_response(epsilon)], claimed=epsilon**2 / 8).holds
    assert judge_zcdp(pairs=[_response(epsilon)], claimed=epsilon**2 / 2).holds


def test_a_violation_at_one_high_order_only_is_found() -> None:
    """A rare large loss: divergence near 0 at low orders, far above the claim at high ones."""
    rare = Fraction(1, 10**6)
    pair = (
        {"a": 1000 * rare, "b": 1 - 1000 * rare},
        {"a": rare, "b": 1 - rare},
    )
    (forwards,) = {ratios for ratios in both_ways([pair]) if any(p > 100 * q for p, q in ratios)}
    kl = sum(float(p) * math.log(p / q) for p, q in forwards)
    rho = Fraction(2 * kl)
    met, holds = zcdp_of(forwards, rho)
    assert not holds
    assert met > rho


def test_equal_distributions_cost_nothing() -> None:
    pair = (_coin(HALF), _coin(HALF))
    assert judge_pure(pairs=[pair], claimed=Fraction(0)).holds
    assert judge_zcdp(pairs=[pair], claimed=Fraction(0)).holds
    other = (_coin(HALF), _coin(Fraction(1, 3)))
    assert not judge_pure(pairs=[other], claimed=Fraction(0)).holds
    assert not judge_zcdp(pairs=[other], claimed=Fraction(0)).holds


def test_permuted_pairs_are_examined_once() -> None:
    pairs = [
        (from_weights([1, 2, 3]), from_weights([3, 2, 1])),
        (from_weights([2, 3, 1]), from_weights([2, 1, 3])),
    ]
    assert len(both_ways(pairs)) == 1
