"""Conversions are bounds: never on the wrong side of high-precision arithmetic, and close to it.

Two oracles that share no code with ours: mpmath at 60 digits on the formula, and dp-accounting.
"""

import math

import dp_accounting
import mpmath
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.privacy.conversions import (
    gaussian_delta,
    lattice_gap,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_rho,
)

RHOS = st.floats(min_value=1e-12, max_value=1e4)
DELTAS = st.floats(min_value=1e-15, max_value=0.9)
EPSILONS = st.floats(min_value=1e-6, max_value=500)


def _curve(rho: float, delta: float, x: mpmath.mpf) -> mpmath.mpf:
    """The published expression at alpha = 1 + x, in high precision."""
    alpha = 1 + x
    return rho * alpha + mpmath.log(1 - 1 / alpha) - (mpmath.log(delta) + mpmath.log(alpha)) / x


def _exact_epsilon(rho: float, delta: float) -> mpmath.mpf:
    """The minimum over alpha, located by the root of the derivative."""
    with mpmath.workdps(60):
        r, d = mpmath.mpf(rho), mpmath.mpf(delta)
        low, high = mpmath.mpf(0), mpmath.sqrt(mpmath.log(1 / d) / r) + 1
        for _ in range(100):
            middle = (low + high) / 2
            if r * middle**2 + mpmath.log(1 + middle) < mpmath.log(1 / d):
                low = middle
            else:
                high = middle
        return mpmath.mpf(max(0, _curve(r, d, high)))


@pytest.mark.parametrize(("epsilon", "rho"), [(1, 0.02436), (2, 0.08815), (8, 1.0524)])
def test_published_pairs_at_one_in_a_million(epsilon: float, rho: float) -> None:
    assert zcdp_rho(epsilon=epsilon, delta=1e-6) == pytest.approx(
        rho, abs=5e-5 if rho > 1 else 5e-6
    )
    assert zcdp_epsilon(rho=rho, delta=1e-6) == pytest.approx(epsilon, abs=1e-3)
    assert zcdp_delta(rho=rho, epsilon=epsilon) == pytest.approx(1e-6, rel=2e-3)


@settings(max_examples=150)
@given(RHOS, DELTAS)
def test_epsilon_is_above_the_exact_minimum_and_close(rho: float, delta: float) -> None:
    ours = zcdp_epsilon(rho=rho, delta=delta)
    exact = _exact_epsilon(rho, delta)
    assert ours >= exact
    assert ours <= exact + mpmath.mpf(1e-12) * (1 + exact)


@settings(max_examples=150)
@given(EPSILONS, DELTAS)
def test_rho_is_the_largest_that_keeps_epsilon(epsilon: float, delta: float) -> None:
    rho = zcdp_rho(epsilon=epsilon, delta=delta)
    assert rho > 0
    assert _exact_epsilon(rho, delta) <= epsilon
    assert _exact_epsilon(rho * (1 + 1e-8), delta) > epsilon * (1 - 1e-12)


@settings(max_examples=150)
@given(RHOS, st.floats(min_value=0, max_value=500))
def test_delta_undoes_epsilon(rho: float, epsilon: float) -> None:
    delta = zcdp_delta(rho=rho, epsilon=epsilon)
    assert 0 <= delta <= 1
    if 1e-300 < delta < 1:
        # At the delta returned, epsilon is enough, and not by much.
        needed = _exact_epsilon(rho, delta)
        assert needed <= epsilon
        if delta < 0.9:  # near 1 the curve is flat, and delta says little about epsilon
            assert needed >= epsilon - mpmath.mpf(1e-9) * (1 + epsilon)


@pytest.mark.parametrize("rho", [1e-4, 0.02436, 0.3, 1.0524, 20.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 0.01])
def test_another_accountant_agrees(rho: float, delta: float) -> None:
    orders = [1 + 10 ** (k / 400) for k in range(-700, 2000)]
    theirs, _ = rdp_privacy_accountant.compute_epsilon(orders, [rho * a for a in orders], delta)
    ours = zcdp_epsilon(rho=rho, delta=delta)
    assert ours <= theirs + 1e-12, "our minimum is over all orders"
    assert ours == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize("multiplier", [0.05, 0.3, 1.0, 4.2247, 40.0, 3000.0])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 5.0, 30.0])
def test_the_gaussian_curve_bounds_high_precision(multiplier: float, epsilon: float) -> None:
    with mpmath.workdps(80):
        m, e = mpmath.mpf(multiplier), mpmath.mpf(epsilon)
        exact = mpmath.ncdf(1 / (2 * m) - e * m) - mpmath.exp(e) * mpmath.ncdf(-1 / (2 * m) - e * m)
        ours = gaussian_delta(multiplier=multiplier, epsilon=epsilon)
        assert ours >= exact
        if exact > 1e-300:
            assert ours <= exact * (1 + mpmath.mpf(1e-7)) + mpmath.mpf(1e-300)


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 0.1])
@pytest.mark.parametrize("multiplier", [0.5, 2.0, 10.0])
def test_the_gaussian_curve_agrees_with_another_accountant(delta: float, multiplier: float) -> None:
    epsilon = dp_accounting.get_epsilon_gaussian(multiplier, delta)
    if epsilon == 0:
        assert gaussian_delta(multiplier=multiplier, epsilon=0) <= delta
    else:
        ours = gaussian_delta(multiplier=multiplier, epsilon=epsilon)
        assert ours == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize("steps", [0.6, 1.0, 2.0, 5.0, 20.0])
def test_the_lattice_gap_bounds_the_distance_of_the_two_noises(steps: float) -> None:
    with mpmath.workdps(30):
        reach = int(15 * steps) + 5
        weights = {z: mpmath.exp(-mpmath.mpf(z * z) / (2 * steps**2)) for z in range(-reach, reach)}
        total = mpmath.fsum(weights.values())
        half = mpmath.mpf(1) / 2
        distance = mpmath.fsum(
            max(
                weights[z] / total
                - (mpmath.ncdf((z + half) / steps) - mpmath.ncdf((z - half) / steps)),
                mpmath.mpf(0),
            )
            for z in weights
        )
    gap = lattice_gap(steps=steps, coordinates=1)
    assert distance <= gap
    assert gap <= 4 * distance, "a bound that is far off would waste the promise"
    assert lattice_gap(steps=steps, coordinates=7) == pytest.approx(min(1, 7 * gap))


def test_the_ends_of_the_scale() -> None:
    assert zcdp_epsilon(rho=0.0, delta=1e-6) == 0
    assert zcdp_epsilon(rho=math.inf, delta=1e-6) == math.inf
    assert zcdp_delta(rho=0.0, epsilon=1.0) == 0
    assert zcdp_delta(rho=math.inf, epsilon=1.0) == 1
    assert zcdp_delta(rho=1.0, epsilon=math.inf) == 0
    assert gaussian_delta(multiplier=1.0, epsilon=math.inf) == 0
    assert zcdp_epsilon(rho=5e-324, delta=0.5) >= 0
    assert zcdp_epsilon(rho=1e300, delta=1e-6) >= 1e300
    assert zcdp_rho(epsilon=1e-300, delta=1e-300) >= 0


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: zcdp_epsilon(rho=-1, delta=0.1), "rho"),
        (lambda: zcdp_epsilon(rho=math.nan, delta=0.1), "rho"),
        (lambda: zcdp_epsilon(rho=1, delta=0), "delta"),
        (lambda: zcdp_epsilon(rho=1, delta=1), "delta"),
        (lambda: zcdp_epsilon(rho=1, delta=math.nan), "delta"),
        (lambda: zcdp_rho(epsilon=0, delta=0.1), "epsilon"),
        (lambda: zcdp_rho(epsilon=math.inf, delta=0.1), "epsilon"),
        (lambda: zcdp_rho(epsilon=1, delta=-0.1), "delta"),
        (lambda: zcdp_delta(rho=-1, epsilon=1), "rho"),
        (lambda: zcdp_delta(rho=1, epsilon=-1), "epsilon"),
        (lambda: gaussian_delta(multiplier=0, epsilon=1), "multiplier"),
        (lambda: gaussian_delta(multiplier=math.inf, epsilon=1), "multiplier"),
        (lambda: gaussian_delta(multiplier=1, epsilon=math.nan), "epsilon"),
        (lambda: lattice_gap(steps=0, coordinates=1), "steps"),
        (lambda: lattice_gap(steps=1, coordinates=0), "coordinates"),
    ],
)
def test_bad_arguments_are_named(call, argument: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidArgument) as caught:
        call()
    assert caught.value.argument == argument
