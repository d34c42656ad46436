"""Evidence: the closed formula is the probability, and clusters are those of the truth."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from discreet.errors import InvalidArgument
from discreet.families.fclub.evidence import Clustering, Knowledge, potential, widened

RULE = Clustering(variety=0.1)


def people(
    truth: np.ndarray, *, count: int, seed: int = 0, variance: float = 0.2
) -> tuple[Knowledge, np.ndarray]:
    """Return exact knowledge of users whose tastes are the rows of an orthogonal matrix."""
    rng = np.random.default_rng(seed)
    tastes = np.eye(4) * 0.6
    matrices, vectors = [], []
    for user in truth:
        x = rng.normal(size=(count, 4))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        y = x @ tastes[user] + rng.normal(scale=np.sqrt(variance), size=count)
        matrices.append(x.T @ x / variance)
        vectors.append(x.T @ y / variance)
    return Knowledge(np.array(matrices), np.array(vectors)), tastes


def test_factor_is_the_ratio_of_probabilities() -> None:
    """Two sums b with known V are normal; compare with scipy's density, one theta against two."""
    rng = np.random.default_rng(1)
    variety, variance = 0.1, 0.3
    gram = np.array([[2.0, 0.3], [0.3, 1.0]])
    other = np.array([[1.0, -0.2], [-0.2, 3.0]])
    b, c = rng.normal(size=2), rng.normal(size=2)
    users = Knowledge(np.array([gram, other]) / variance, np.array([b, c]) / variance)
    found = Clustering(variety=variety).factors(users=users[:1], clusters=users[1:])[0, 0]
    own = [variety * v @ v + variance * v for v in (gram, other)]
    joint = np.block([[own[0], variety * gram @ other], [variety * other @ gram, own[1]]])
    together = multivariate_normal(np.zeros(4), joint).logpdf(np.concatenate([b, c]))
    apart = sum(
        multivariate_normal(np.zeros(2), cov).logpdf(value)
        for cov, value in zip(own, (b, c), strict=True)
    )
    assert found == pytest.approx(together - apart, rel=1e-9)


def test_nothing_known_is_neither_for_nor_against() -> None:
    empty = Knowledge.nothing(dimensions=4, pieces=2)
    assert np.allclose(RULE.factors(users=empty, clusters=empty), 0.0)
    assert RULE.labels(users=empty).tolist() == [0, 1]


def test_nobody_is_in_no_cluster() -> None:
    nobody = Knowledge.nothing(dimensions=4, pieces=0)
    some = Knowledge.nothing(dimensions=4, pieces=3)
    assert RULE.labels(users=nobody).tolist() == []
    assert RULE.labels(users=nobody, known=some).tolist() == []


def test_finds_the_clusters_of_users_who_taught_enough() -> None:
    truth = np.array([0, 1, 2, 0, 1, 2, 3, 3, 0, 1])
    users, _ = people(truth, count=300)
    assert RULE.labels(users=users).tolist() == [0, 1, 2, 0, 1, 2, 3, 3, 0, 1]


def test_many_users_are_placed_beside_the_seeds() -> None:
    truth = np.arange(120) % 3
    users, _ = people(truth, count=200)
    labels = Clustering(variety=0.1, seeds=20).labels(users=users)
    for cluster in range(3):
        inside = labels[truth == cluster]
        # Of 40 users at most 2 may be elsewhere; with 200 observations each, none should.
        assert np.bincount(inside).max() >= 38


def test_users_may_join_what_is_known_from_elsewhere() -> None:
    users, tastes = people(np.array([2, 0]), count=40)
    known = Knowledge(np.array([500 * np.eye(4)] * 2), 500 * tastes[[2, 3]])
    labels = RULE.labels(users=users, known=known)
    assert labels.tolist() == [0, 2]


def test_known_clusters_keep_their_numbers_without_members() -> None:
    users, tastes = people(np.array([0, 0]), count=300)
    known = Knowledge(np.array([500 * np.eye(4)]), 500 * tastes[[3]])
    assert RULE.labels(users=users, known=known).tolist() == [1, 1]


def test_widening_adds_variance_and_keeps_the_mean() -> None:
    matrix = np.array([[4.0, 1.0], [1.0, 3.0]])
    vector = np.array([1.0, 2.0])
    wide, shifted = widened(matrix, vector, 0.5)
    assert np.allclose(np.linalg.inv(wide), np.linalg.inv(matrix) + 0.25 * np.eye(2))
    assert np.allclose(np.linalg.solve(wide, shifted), np.linalg.solve(matrix, vector))
    same, unmoved = widened(matrix, vector, 0.0)
    assert np.allclose(same, matrix)
    assert np.allclose(unmoved, vector)


def test_potential_works_on_stacks() -> None:
    matrix = np.array([np.eye(2), 4 * np.eye(2)])
    vector = np.array([[1.0, 0.0], [0.0, 2.0]])
    assert np.allclose(potential(matrix, vector), [0.5, 0.5 - np.log(4)])


@pytest.mark.parametrize("wrong", [{"variety": 0.0}, {"margin": -1.0}, {"seeds": 0}])
def test_refuses_what_is_no_rule(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidArgument):
        Clustering(**{"variety": 0.1, **wrong})  # type: ignore[arg-type]


def test_refuses_matrices_that_do_not_fit() -> None:
    with pytest.raises(InvalidArgument, match="matrix"):
        Knowledge(np.eye(3), np.zeros(2))
