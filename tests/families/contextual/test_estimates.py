"""How much items differ is read off the data; means and errors follow the rows."""

import numpy as np

from discreet.families.contextual.estimates import (
    Estimates,
    common_part,
    empirical_bayes,
    overall_rate,
    posterior,
)

GROUPS = np.array([0, 1, 1, 1])


def observed(deviations: list[float], *, items: int = 60, strength: float = 400.0) -> np.ndarray:
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((items, 4)) * np.array(deviations)[GROUPS]
    evidence = strength * truth + np.sqrt(strength) * rng.standard_normal(truth.shape)
    precision = np.tile(strength * np.eye(4), (items, 1, 1))
    start = np.array([0.05, 0.05])
    return empirical_bayes(precision, evidence, GROUPS, start, start)


def test_the_differences_between_items_are_found() -> None:
    found = np.sqrt(observed([0.3, 0.1]))
    assert abs(found[0] - 0.3) < 0.06
    assert abs(found[1] - 0.1) < 0.03


def test_where_contexts_tell_nothing_slopes_shrink() -> None:
    found = observed([0.3, 0.0])
    assert found[1] < 0.1 * 0.05
    assert found[1] < 0.05 * found[0]


def test_what_is_shown_most_is_not_what_is_common() -> None:
    """Nine items at 0.2 and one at 0.9 that got nearly all visits: they share about 0.27."""
    visits = np.array([20.0] * 9 + [20_000.0])
    level = np.array([0.2] * 9 + [0.9])
    precision, evidence = visits[:, None, None] * np.ones((1, 1)), (visits * level)[:, None]
    found = common_part(precision, evidence, np.array([0.1]), np.array([1e-3]))
    assert 0.2 < found[0] < 0.4


def test_the_posterior_is_the_textbook_one() -> None:
    precision, evidence = np.array([[[4.0]]]), np.array([[2.0]])
    mean, covariance = posterior(precision, evidence, np.array([0]), np.array([0.25]))
    assert np.isclose(mean[0, 0], 2 / 8)
    assert np.isclose(covariance[0, 0, 0], 1 / 8)


def test_means_and_errors_are_functions_of_the_row() -> None:
    estimates = Estimates(
        coefficients=np.array([[0.5, 0.1], [0.4, 0.0]]),
        mix=np.eye(2),
        spread=np.array([[0.04, 0.0], [0.0, 0.09]]),
        people=np.ones((1, 2)),
        shares=np.ones(1),
        known=np.ones(2),
        levels=np.ones(2),
    )
    rows, both = np.array([[1.0, 2.0]]), np.array([0, 1])
    assert np.allclose(estimates.means(rows, both), [[0.7, 0.4]])
    assert np.allclose(estimates.deviations(rows, both), [[0.2, 0.6]])


def test_the_rate_starts_at_a_half_and_never_reaches_an_end() -> None:
    assert overall_rate(0.0, 0.0, 10.0) == 0.5
    assert overall_rate(0.0, 1e9, 10.0) == 0.002
    assert overall_rate(1e9, 1e9, 10.0) == 0.998


def test_errors_from_roots_are_those_of_the_covariance() -> None:
    covariance = np.array([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.9], [-0.9, 1.0]]])
    estimates = Estimates(
        coefficients=np.zeros((2, 2)),
        mix=np.eye(2),
        spread=np.ones((2, 2)),
        people=np.ones((1, 2)),
        shares=np.ones(1),
        known=np.ones(2),
        levels=np.ones(2),
        roots=np.linalg.cholesky(covariance).transpose(1, 0, 2),
    )
    rows = np.array([[1.0, 1.0], [1.0, -0.5]])
    expected = np.sqrt(np.einsum("ni,kij,nj->nk", rows, covariance, rows))
    assert np.allclose(estimates.deviations(rows, np.array([0, 1])), expected)
    assert np.allclose(estimates.deviations(rows, np.array([1])), expected[:, 1:])
