"""Upper confidence bounds, and matrices that are made positive."""

import numpy as np

from discreet.families.fclub.linear import positive, upper_bounds


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


def test_positive_raises_negative_eigenvalues_only() -> None:
    matrix = np.diag([3.0, -2.0, 0.1])
    assert np.allclose(positive(matrix, floor=0.0), np.diag([3.0, 0.0, 0.1]))
    assert np.allclose(positive(matrix, floor=0.5), np.diag([3.0, 0.5, 0.5]))
