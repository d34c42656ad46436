"""The ceiling, where it is known in closed form."""

import itertools
import math

import numpy as np
import pytest

from discreet.research.suite.ceiling import private_optimum


def test_unprotected_it_is_the_best_item() -> None:
    means = np.array([[0.1, 0.7], [0.4, 0.2]])
    np.testing.assert_array_equal(private_optimum(means, None), [0.7, 0.4])


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_two_kinds_of_people_and_two_items(epsilon: float) -> None:
    """Each kind likes its own item surely and the other never: e / (e + 1) of them are pleased."""
    means = np.tile([[1.0, 0.0], [0.0, 1.0]], (50, 1))
    odds = math.exp(epsilon)
    np.testing.assert_allclose(private_optimum(means, epsilon), odds / (odds + 1.0))


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_where_everybody_agrees_it_is_the_most_popular_item(epsilon: float) -> None:
    means = np.tile([0.2, 0.6, 0.5], (10, 1))
    np.testing.assert_allclose(private_optimum(means, epsilon), 0.6)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_it_is_within_a_percent_of_the_best_of_all_shortlists(epsilon: float) -> None:
    means = np.random.default_rng(3).beta(1.0, 3.0, (40, 6))
    odds = math.exp(epsilon)
    values = [
        float(((odds - 1) * part.max(axis=1) + part.sum(axis=1)).mean() / (odds + size - 1))
        for size in range(1, 7)
        for listed in itertools.combinations(range(6), size)
        for part in [means[:, list(listed)]]
    ]
    found = private_optimum(means, epsilon).mean()
    assert 0.99 * max(values) <= found <= max(values) + 1e-12


def test_it_grows_with_epsilon() -> None:
    means = np.random.default_rng(4).beta(1.0, 3.0, (300, 12))
    found = [private_optimum(means, one).mean() for one in (0.5, 1.0, 2.0, 4.0, None)]
    assert found == sorted(found)


def test_many_values_are_thinned_out_and_change_little() -> None:
    means = np.random.default_rng(5).beta(1.0, 3.0, (3, 400_000)) * 0.0 + 0.3
    np.testing.assert_allclose(private_optimum(means, 1.0), 0.3)
