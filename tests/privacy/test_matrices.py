"""Sensitivities of outer products: never exceeded, and reached."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import minimize

from discreet.errors import InvalidArgument
from discreet.privacy.events import GaussianRelease
from discreet.privacy.matrices import (
    Neighbours,
    frobenius_sensitivity,
    half_size,
    half_vector_sensitivity,
    outer,
    pack,
    release_symmetric,
    unpack,
)
from discreet.research.noise import SeededNoise

Floats = npt.NDArray[np.float64]


def _record(free: Floats) -> Floats:
    """Any numbers, as a z = (x, y) with |x| <= 1 and |y| <= 1."""
    x, y = free[:-1], free[-1]
    return np.append(x / max(1.0, float(np.linalg.norm(x))), np.clip(y, -1, 1))


def _difference(free: Floats, neighbours: Neighbours) -> Floats:
    if neighbours is Neighbours.ADD_REMOVE:
        z = _record(free)
        return np.outer(z, z)
    z, w = (_record(half) for half in np.split(free, 2))
    return np.outer(z, z) - np.outer(w, w)


def _half_norm(matrix: Floats) -> float:
    diagonal = matrix.diagonal()
    return math.sqrt((np.vdot(matrix, matrix) + diagonal @ diagonal) / 2)


def _frobenius(matrix: Floats) -> float:
    return float(np.linalg.norm(matrix))


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize(
    ("norm", "claim"),
    [(_frobenius, frobenius_sensitivity), (_half_norm, half_vector_sensitivity)],
)
@pytest.mark.parametrize("features", [2, 5])
def test_no_pair_of_records_is_further_apart_and_one_is_as_far(  # type: ignore[no-untyped-def]
    neighbours: Neighbours, norm, claim, features: int
) -> None:
    """Random records, and ascent from random starts. A claim 1% off either way would fail."""
    rng = np.random.default_rng(7)
    size = (features + 1) * (2 if neighbours is Neighbours.REPLACE else 1)
    claimed = claim(neighbours)
    found = max(norm(_difference(3 * rng.normal(size=size), neighbours)) for _ in range(2000))
    for _ in range(5):
        best = minimize(
            lambda free: -norm(_difference(free, neighbours)),
            rng.normal(size=size),
            method="Nelder-Mead",
            options={"maxiter": 3000, "fatol": 1e-7, "xatol": 1e-4},
        )
        found = max(found, -best.fun)
    assert found <= claimed
    assert found >= 0.99 * claimed


def test_the_pairs_that_the_proofs_name_reach_the_bounds() -> None:
    root = 2 * math.sqrt(2)
    p, q = (math.sqrt(3) + 1) / root, (math.sqrt(3) - 1) / root
    z, w = np.array([p, q, 1.0]), np.array([-q, -p, 1.0])
    apart = _half_norm(np.outer(z, z) - np.outer(w, w))
    assert apart == pytest.approx(3 / math.sqrt(2), rel=1e-12)
    v = np.array([p, q, -1.0])
    assert _frobenius(np.outer(z, z) - np.outer(v, v)) == pytest.approx(2 * math.sqrt(2), rel=1e-12)
    corner = np.array([1.0, 0.0, 1.0])
    assert _half_norm(np.outer(corner, corner)) == pytest.approx(math.sqrt(3), rel=1e-12)


@pytest.mark.parametrize("order", [1, 2, 7])
def test_packing_is_undone_by_unpacking(order: int) -> None:
    square = np.random.default_rng(order).normal(size=(order, order))
    symmetric = square + square.T
    half = pack(symmetric)
    assert np.linalg.norm(half) == pytest.approx(_half_norm(symmetric))
    assert half.shape == (half_size(order),)
    assert np.array_equal(unpack(half), symmetric)


def test_outer_products_stay_within_the_bound_they_are_charged_for() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        x = rng.normal(size=6)
        x /= np.linalg.norm(x)  # of norm 1 up to rounding, on either side
        assert np.linalg.norm(outer(x, 1.0)) <= half_vector_sensitivity(Neighbours.ADD_REMOVE)
    assert np.allclose(unpack(outer([0.6, 0.0], -0.5)), np.outer([0.6, 0, -0.5], [0.6, 0, -0.5]))


def test_a_release_is_the_matrix_with_noise_on_its_upper_triangle() -> None:
    order, scale = 60, 2.0
    matrix = np.diag(np.arange(order, dtype=np.float64))
    released = release_symmetric(
        matrix, scale=scale, sensitivity=1.5, noise=SeededNoise(5), granularity=2.0**-20
    )
    assert np.array_equal(released.value, released.value.T)
    assert isinstance(released.event, GaussianRelease)
    assert released.event.scale == scale
    rounding = math.sqrt(half_size(order)) * 2.0**-20
    assert released.event.sensitivity == pytest.approx(1.5 + rounding, rel=1e-12)
    # 1,830 draws: the sample deviation is within 12% with probability above 1 - 1e-12.
    noise = pack(released.value - matrix)
    assert np.std(noise) == pytest.approx(scale, rel=0.12)
    assert len(set(noise.tolist())) > 1800


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: pack([[1.0, 2.0]]), "matrix"),
        (lambda: pack([[1.0, 2.0], [3.0, 1.0]]), "matrix"),
        (lambda: pack([[math.nan]]), "matrix"),
        (lambda: pack(np.zeros((0, 0))), "matrix"),
        (lambda: unpack([1.0, 2.0]), "half"),
        (lambda: unpack([]), "half"),
        (lambda: unpack([[1.0]]), "half"),
        (lambda: half_size(0), "order"),
        (lambda: outer([1.0, 0.1], 0.0), "x"),
        (lambda: outer([math.inf], 0.0), "x"),
        (lambda: outer([[0.1]], 0.0), "x"),
        (lambda: outer([0.1], 1.1), "y"),
        (lambda: outer([0.1], math.nan), "y"),
    ],
)
def test_bad_arguments_are_named(call, argument: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidArgument) as caught:
        call()
    assert caught.value.argument == argument
