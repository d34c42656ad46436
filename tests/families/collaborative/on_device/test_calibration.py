"""The paper's example to two decimals, the certified optimum, and the exact loss."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from discreet.errors import InvalidArgument
from discreet.families.collaborative.on_device.calibration import (
    affordable,
    calibrate,
    least_noise,
    loss_of,
)
from discreet.families.collaborative.on_device.catalogue import NOTHING, Concerns, Level, scope_of
from discreet.privacy.charges import decimal
from tests.families.collaborative.on_device.profiles import FIVE, five, made


def test_the_papers_example() -> None:
    found = calibrate(catalogue=five(), epsilon=1.0)
    assert [round(each, 2) for each in found.magnitudes] == [3.61, 2.36, 3.34, 2.36, 1.38]
    assert round(found.mean, 2) == 2.61
    assert found.gap < 1e-9


def test_an_independent_solver_finds_the_same_optimum() -> None:
    rows = scope_of(made(items=150, categories=8, seed=3), Concerns()).rows
    ours, _ = least_noise(rows)
    start = np.full(8, 0.5 / rows.sum(axis=1).max())
    theirs = minimize(
        lambda rates: float(np.sum(1 / rates)),
        start,
        jac=lambda rates: -1 / rates**2,
        hess=lambda rates: np.diag(2 / rates**3),
        method="trust-constr",
        bounds=[(1e-3, 1.0)] * 8,
        constraints=LinearConstraint(rows.astype(float), -np.inf, 1.0),
        options={"gtol": 1e-9, "xtol": 1e-12, "maxiter": 2_000},
    )
    assert ours.sum() == pytest.approx(theirs.fun, rel=1e-5)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 0.23, 0.7, 1.0, 3.3, 50.0])
def test_the_exact_loss_is_within_epsilon_and_wastes_nothing(epsilon: float) -> None:
    catalogue = made(items=300, categories=9, seed=5)
    found = calibrate(catalogue=catalogue, epsilon=epsilon)
    rates = {
        name: 1 / Fraction(each)
        for name, each in zip(found.categories, found.magnitudes, strict=True)
    }
    worst = max(
        sum(rates[catalogue.categories[at]] for at in np.flatnonzero(row))
        for row in catalogue.incidence
    )
    assert worst == found.loss <= decimal(epsilon)
    assert found.loss >= decimal(epsilon) * Fraction(999_999, 1_000_000)


def test_magnitudes_that_lose_too_much_are_raised_until_they_do_not() -> None:
    rows = scope_of(five(), Concerns()).rows
    cheap = np.array([1.0, 1.0, 1.0, 1.0, 1.0])
    assert loss_of(rows, cheap) == 3
    raised = affordable(rows, cheap, Fraction(1, 3))
    assert loss_of(rows, raised) <= Fraction(1, 3)
    assert raised == pytest.approx(np.full(5, 9.0))


def test_it_never_needs_more_than_the_plain_mechanism() -> None:
    for seed in range(5):
        catalogue = made(items=120, categories=6, seed=seed)
        plain = catalogue.incidence.sum(axis=1).max()
        assert calibrate(catalogue=catalogue, epsilon=1.0).mean <= plain * (1 + 1e-8)


def test_only_what_is_perturbed_gets_noise() -> None:
    chosen = Concerns.choose({"1": Level.ALL, "5": Level.NO})
    found = calibrate(catalogue=five(), epsilon=1.0, concerns=chosen)
    assert found.categories == ("2", "3", "4")
    # Items 1, 3 and 5 are left with the pairs {2,3}, {3,4} and {2,4}: by symmetry 2 for each.
    assert found.magnitudes == pytest.approx((2.0, 2.0, 2.0))
    assert FIVE["item 5"] == ("2", "4")


def test_nothing_to_perturb_needs_no_noise() -> None:
    found = calibrate(catalogue=five(), epsilon=1.0, concerns=NOTHING)
    assert found.magnitudes == ()
    assert found.loss == 0
    assert found.mean == 0


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 51.0, float("nan"), float("inf")])
def test_an_epsilon_that_cannot_be_promised_is_refused(epsilon: float) -> None:
    with pytest.raises(InvalidArgument, match="epsilon"):
        calibrate(catalogue=five(), epsilon=epsilon)
