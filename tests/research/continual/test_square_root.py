"""The square root: published figures, and that the dyadic factor is what is claimed for it."""

import math

import numpy as np
import pytest
from scipy.signal import fftconvolve

from discreet.errors import InvalidArgument
from discreet.research.continual import BinaryTree, SquareRoot, square_root
from discreet.research.noise import SeededNoise
from tests.research.continual.impulses import releases, responses


@pytest.mark.parametrize(("power", "deviation"), [(10, 3.3), (16, 4.6), (20, 5.5)])
def test_the_deviation_at_the_end(power: int, deviation: float) -> None:
    sums = SquareRoot(horizon=2**power, multiplier=1.0)
    assert math.sqrt(sums.variance(2**power)) == pytest.approx(deviation, abs=0.05)
    assert sums.variance(1) < sums.variance(2**power // 2) < sums.variance(2**power)


def test_the_variance_follows_the_published_coefficients() -> None:
    """f[0] = 1, f[k] = f[k-1]*(2k-1)/(2k): sensitivity and variance are sums of their squares."""
    horizon = 500
    f = [1.0]
    for k in range(1, horizon):
        f.append(f[-1] * (2 * k - 1) / (2 * k))
    squares = np.cumsum(np.square(f))
    sums = SquareRoot(horizon=horizon, multiplier=1.0)
    assert sums.sensitivity == pytest.approx(math.sqrt(squares[-1]), rel=1e-5)
    for step in (1, 10, 500):
        assert sums.variance(step) == pytest.approx(squares[-1] * squares[step - 1], rel=1e-5)


def test_both_factors_multiply_to_the_prefix_sum() -> None:
    """B is found by poking; C = B**-1 A then has the claimed column norm, and dyadic entries."""
    horizon = 24
    sums = SquareRoot(horizon=horizon, multiplier=1.0, granularity=1.0)
    answers, _ = responses(sums, horizon)
    inner = np.linalg.solve(answers * 2.0**20, np.tril(np.ones((horizon, horizon))))
    norms = np.linalg.norm(inner, axis=0)
    claimed = sums.sensitivity / 2  # steps of 1 and a rounding of 1 make the step count twice
    assert norms.max() <= claimed
    assert norms.max() == pytest.approx(claimed, rel=1e-9)
    assert np.allclose(inner * 2**20, np.rint(inner * 2**20), atol=1e-6)


def test_long_sums_are_not_biased_by_the_dyadic_factor() -> None:
    horizon = 2**16
    product = fftconvolve(square_root._outer(horizon), square_root._inner(horizon) * 2.0**-20)[
        :horizon
    ]
    # Of 65,536 ones, summed, less than a billionth is lost.
    assert np.abs(product - 1).sum() < 1e-8
    # Undoing f instead of F would lose more than a thousand times that.
    plain = fftconvolve(square_root._root(horizon), square_root._inner(horizon) * 2.0**-20)
    assert np.abs(plain[:horizon] - 1).sum() > 1e-3


@pytest.mark.parametrize("size", [2**10, 2**30, 2**38])
def test_rows_are_exact(size: int) -> None:
    rng = np.random.default_rng(size)
    coefficients = square_root._inner(60)
    values = rng.integers(-size, size, size=(60, 2))
    exact = [
        sum(int(c) * int(v) for c, v in zip(coefficients, column, strict=True))
        for column in values.T
    ]
    assert square_root._apply(coefficients, values).tolist() == exact


def test_it_beats_the_tree_on_the_same_stream() -> None:
    """300 streams (coordinates) of 100 steps, seeded: 7.3 against 2.5 in deviation, at the end."""
    values = np.random.default_rng(1).normal(size=(100, 300))
    exact = np.cumsum(values, axis=0)
    errors = {}
    for kind in (BinaryTree, SquareRoot):
        sums = kind(horizon=100, multiplier=1.0, dimension=300)
        told = releases(sums, values, SeededNoise(9))
        errors[kind] = float(np.mean((told - exact) ** 2))
    assert errors[SquareRoot] < errors[BinaryTree] / 2


def test_a_horizon_that_would_not_fit_memory_is_refused() -> None:
    with pytest.raises(InvalidArgument) as caught:
        SquareRoot(horizon=2**24 + 1, multiplier=1.0)
    assert caught.value.argument == "horizon"
    assert "SmoothBinary" in caught.value.reason
