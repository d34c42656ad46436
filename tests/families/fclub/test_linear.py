"""Upper confidence bounds, and matrices that are made positive."""

import numpy as np
import pytest

from discreet.families.fclub.linear import inverse_roots, positive, products_of, upper_bounds


def test_bounds_are_estimate_plus_width_times_norm() -> None:
    items = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    inverse = np.diag([0.25, 1.0])
    bounds = upper_bounds(items=items, estimate=np.array([1.0, 0.0]), inverse=inverse, width=2.0)
    norm = np.sqrt(0.36 * 0.25 + 0.64)
    assert np.allclose(bounds, [1 + 2 * 0.5, 2.0, 0.6 + 2 * norm])
    estimates = np.array([[1.0, 0.0], [0.0, -1.0]])
    many = upper_bounds(
        items=items, estimate=estimates, inverse=np.array([inverse, 4 * inverse]), width=2.0
    )
    assert np.allclose(many[0], bounds)
    assert np.allclose(many[1], [2.0, -1 + 4.0, -0.8 + 4 * norm])


@pytest.mark.parametrize("order", [1, 2, 10, 40])
def test_bounds_by_products_that_were_worked_out_ahead_are_the_same(order: int) -> None:
    """Also where the squares are a small difference of large products."""
    rng = np.random.default_rng(order)
    items, estimate = rng.normal(size=(7, order)), rng.normal(size=(3, order))
    drawn = rng.normal(size=(3, order + 5, order)) * np.logspace(0, 3, order)
    inverse = np.linalg.inv(np.swapaxes(drawn, -1, -2) @ drawn + np.eye(order))
    plain = upper_bounds(items=items, estimate=estimate, inverse=inverse, width=0.7)
    products = products_of(items)
    assert products is not None
    quick = upper_bounds(
        items=items, estimate=estimate, inverse=inverse, width=0.7, products=products
    )
    assert np.abs(quick - plain).max() < 1e-12


def test_products_of_very_many_items_are_not_worked_out_ahead() -> None:
    assert products_of(np.zeros((100_000, 3))) is None


@pytest.mark.parametrize("many", [3, 30])
@pytest.mark.parametrize("order", [1, 2, 12, 13, 40, 63])
def test_inverses_and_determinants_are_those_of_whole_matrices(order: int, many: int) -> None:
    """Among them matrices as unlike the identity as sums of many observations make them."""
    rng = np.random.default_rng(order)
    drawn = rng.normal(size=(many, 2, order + 5, order)) * np.logspace(0, 3, order)
    matrices = np.swapaxes(drawn, -1, -2) @ drawn + np.eye(order)
    roots, sizes = inverse_roots(matrices)
    inverses = np.swapaxes(roots, -1, -2) @ roots
    expected = np.linalg.inv(matrices)
    scale = np.sqrt(np.diagonal(expected, axis1=-2, axis2=-1))
    difference = np.abs(inverses - expected) / (scale[..., None] * scale[..., None, :])
    assert difference.max() < 1e-7
    assert sizes == pytest.approx(np.linalg.slogdet(matrices)[1] / 2, rel=1e-12)
    alone, size = inverse_roots(matrices[0, 0])
    assert np.abs(alone - roots[0, 0]).max() < 1e-9 * np.abs(roots[0, 0]).max()
    assert size == pytest.approx(sizes[0, 0])


def test_positive_raises_negative_eigenvalues_only() -> None:
    matrix = np.diag([3.0, -2.0, 0.1])
    assert np.allclose(positive(matrix, floor=0.0), np.diag([3.0, 0.0, 0.1]))
    assert np.allclose(positive(matrix, floor=0.5), np.diag([3.0, 0.5, 0.5]))
