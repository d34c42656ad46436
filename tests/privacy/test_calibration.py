"""Scales keep their promise, waste little, and are paid for by the ledger they were made for."""

import math

import dp_accounting
import pytest

from discreet.errors import InvalidArgument
from discreet.privacy import events
from discreet.privacy.accountants import Accountant, Budget, accountant
from discreet.privacy.calibration import (
    analytic_gaussian_scale,
    gaussian_scale,
    laplace_scale,
    published_privatizer_scale,
    tree_gaussian_sensitivity,
    tree_laplace_sensitivity,
    tree_levels,
    zcdp_gaussian_scale,
)
from discreet.privacy.charges import Charge


def admitted(rule: Accountant, event: events.PrivacyEvent, budget: Budget) -> int:
    """Return how many such releases the filter lets through one by one."""
    limit, charge = rule.limit(budget), rule.charge(event)
    total, count = Charge(), 0
    while limit.admits(total + charge):
        total, count = total + charge, count + 1
    return count


@pytest.mark.parametrize("releases", [1, 3, 7, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_ledger_pays_for_as_many_releases_as_asked_for(releases: int, epsilon: float) -> None:
    budget = Budget(epsilon, 1e-6)
    scale = laplace_scale(epsilon=epsilon, sensitivity=2.5, releases=releases)
    laplace = events.LaplaceRelease(scale=scale, sensitivity=2.5)
    assert admitted(accountant("basic"), laplace, budget) == releases
    assert scale == pytest.approx(releases * 2.5 / epsilon, rel=1e-5)

    scale = zcdp_gaussian_scale(epsilon=epsilon, delta=1e-6, sensitivity=2.5, releases=releases)
    gaussian = events.GaussianRelease(scale=scale, sensitivity=2.5)
    count = admitted(accountant("zcdp"), gaussian, budget)
    # Where a release costs few units, rounding the cost down to them may leave room for more.
    assert releases <= count <= releases * 1.01 + 1


@pytest.mark.parametrize("delta", [1e-10, 1e-6, 0.1])
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 8.0])
@pytest.mark.parametrize("releases", [1, 50])
def test_the_analytic_scale_is_what_another_accountant_computes(
    epsilon: float, delta: float, releases: int
) -> None:
    ours = analytic_gaussian_scale(epsilon=epsilon, delta=delta, sensitivity=3.0, releases=releases)
    theirs = 3.0 * math.sqrt(releases) * dp_accounting.get_sigma_gaussian(epsilon, delta)
    assert ours == pytest.approx(theirs, rel=1e-6)
    multiplier = ours / (3.0 * math.sqrt(releases))
    assert dp_accounting.get_epsilon_gaussian(multiplier, delta) <= epsilon * (1 + 1e-9)
    assert dp_accounting.get_epsilon_gaussian(0.99 * multiplier, delta) > epsilon


def _discrete_delta(scale: float, shift: int, epsilon: float) -> float:
    """The exact delta of one discrete Gaussian in steps of 1 whose input moves by `shift`."""
    reach = range(-int(40 * scale), int(40 * scale) + 1)
    total = math.fsum(math.exp(-0.5 * (z / scale) ** 2) for z in reach)
    grown = math.exp(epsilon)
    return math.fsum(
        max(
            math.exp(-0.5 * (z / scale) ** 2) - grown * math.exp(-0.5 * ((z - shift) / scale) ** 2),
            0,
        )
        / total
        for z in reach
    )


@pytest.mark.parametrize("shift", [3, 10, 40])
def test_the_discrete_sampler_keeps_the_promise_on_a_coarse_lattice(shift: int) -> None:
    epsilon, delta = 1.0, 1e-3
    scale = analytic_gaussian_scale(
        epsilon=epsilon, delta=delta, sensitivity=float(shift), granularity=1.0
    )
    continuous = analytic_gaussian_scale(epsilon=epsilon, delta=delta, sensitivity=float(shift))
    assert scale > continuous, "the lattice has its price"
    assert _discrete_delta(scale, shift, epsilon) <= delta
    assert _discrete_delta(0.9 * continuous, shift, epsilon) > delta


def test_the_better_route_is_taken() -> None:
    fine = gaussian_scale(epsilon=1.0, delta=1e-6, sensitivity=1.0)
    assert fine.route == "analytic"
    assert fine.scale == pytest.approx(4.2247, abs=1e-4)
    assert zcdp_gaussian_scale(epsilon=1.0, delta=1e-6, sensitivity=1.0) == pytest.approx(
        4.5309, abs=1e-4
    )
    coarse = gaussian_scale(epsilon=1.0, delta=1e-6, sensitivity=1.0, granularity=1.0)
    assert coarse.route == "zcdp"
    assert coarse.scale < analytic_gaussian_scale(
        epsilon=1.0, delta=1e-6, sensitivity=1.0, granularity=1.0
    )
    # Too small a promise for the ledger's unit still has an analytic answer.
    assert gaussian_scale(epsilon=1e-6, delta=1e-9, sensitivity=1.0).route == "analytic"


def test_more_of_anything_needs_more_noise() -> None:
    def scale(**changed: float) -> float:
        usual = {"epsilon": 1.0, "delta": 1e-6, "sensitivity": 1.0, "releases": 4, "dimension": 100}
        return gaussian_scale(**{**usual, **changed}).scale  # type: ignore[arg-type]

    usual = scale()
    assert scale(releases=16) == pytest.approx(2 * usual, rel=1e-5)
    assert scale(sensitivity=3.0) == pytest.approx(3 * usual, rel=1e-5)
    assert scale(epsilon=0.5) > usual
    assert scale(delta=1e-9) > usual
    assert scale(dimension=10**6, granularity=2.0**-10) > scale(granularity=2.0**-10)


def test_the_published_recipe_beside_the_analytic_one() -> None:
    """Ten levels, epsilon 1, delta 0.1: the whole matrix, then its upper triangle only."""
    assert published_privatizer_scale(levels=10, epsilon=1.0, delta=0.1) == pytest.approx(
        43.8, abs=0.05
    )
    for entry, expected in ((2 * math.sqrt(2), 9.7), (3 / math.sqrt(2), 7.3)):
        sensitivity = tree_gaussian_sensitivity(levels=10, sensitivity=entry)
        scale = analytic_gaussian_scale(epsilon=1.0, delta=0.1, sensitivity=sensitivity)
        assert scale == pytest.approx(expected, abs=0.05)
        # The default delta of one in a million still needs less noise than was published for 0.1.
        modest = analytic_gaussian_scale(epsilon=1.0, delta=1e-6, sensitivity=sensitivity)
        assert modest < 43.8


def test_trees() -> None:
    assert [tree_levels(t) for t in (1, 2, 3, 4, 1023, 1024)] == [1, 2, 2, 3, 10, 11]
    assert tree_gaussian_sensitivity(levels=9, sensitivity=2.0) == pytest.approx(6.0)
    assert tree_laplace_sensitivity(levels=9, sensitivity=2.0) == pytest.approx(18.0)


GOOD: dict[str, float] = {"epsilon": 1.0, "delta": 1e-6, "sensitivity": 1.0, "releases": 1}


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("epsilon", 0.0),
        ("epsilon", math.inf),
        ("epsilon", math.nan),
        ("delta", 0.0),
        ("delta", 1.0),
        ("sensitivity", 0.0),
        ("sensitivity", math.inf),
        ("releases", 0),
    ],
)
def test_bad_arguments_are_named(argument: str, value: float) -> None:
    bad = {**GOOD, argument: value}
    for calibrate in (gaussian_scale, zcdp_gaussian_scale, analytic_gaussian_scale):
        with pytest.raises(InvalidArgument) as caught:
            calibrate(**bad)  # type: ignore[arg-type]
        assert caught.value.argument == argument
    if argument != "delta":
        del bad["delta"]
        with pytest.raises(InvalidArgument) as caught:
            laplace_scale(**bad)  # type: ignore[arg-type]
        assert caught.value.argument == argument


def test_what_cannot_be_calibrated_is_refused() -> None:
    for call, argument in (
        (lambda: laplace_scale(epsilon=1e-9, sensitivity=1.0, releases=2), "releases"),
        (
            lambda: zcdp_gaussian_scale(epsilon=1e-3, delta=1e-6, sensitivity=1.0, releases=10**9),
            "releases",
        ),
        (lambda: analytic_gaussian_scale(**GOOD, dimension=0), "dimension"),  # type: ignore[arg-type]
        (lambda: analytic_gaussian_scale(**GOOD, granularity=-1.0), "granularity"),  # type: ignore[arg-type]
        (lambda: tree_levels(0), "horizon"),
        (lambda: tree_gaussian_sensitivity(levels=0, sensitivity=1.0), "levels"),
        (lambda: published_privatizer_scale(levels=1, epsilon=1.0, delta=0.0), "delta"),
    ):
        with pytest.raises(InvalidArgument) as caught:
            call()
        assert caught.value.argument == argument
