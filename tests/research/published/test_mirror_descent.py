"""Algorithm 1 line by line, against a transcription with dense vectors."""

import math

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.mirror_descent.sparse import SparseRows
from discreet.research.noise import SeededNoise
from discreet.research.published.mirror_descent import (
    Algorithm1,
    laplace,
    published_rate,
    published_sensitivity,
)
from discreet.research.reproduce.node_topologies import edges_of, metropolis


def test_lemma_1_and_theorem_2() -> None:
    assert published_sensitivity(rate=0.1, dimension=10_000, bound=1.0) == pytest.approx(20.0)
    assert published_rate(radius=2.0, bound=1.0, lasso=3.0, records=100) == pytest.approx(0.05)
    algorithm = Algorithm1(nodes=2, dimension=10_000, rate=0.1, epsilon=0.5)
    assert algorithm.noise_scale == pytest.approx(40.0)


def test_without_noise_it_is_the_algorithm_of_the_paper() -> None:
    nodes, dimension, rate, lasso = 3, 7, 0.2, 0.1
    rng = np.random.default_rng(0)
    weights = metropolis(edges_of("ring", nodes), nodes)
    algorithm = Algorithm1(nodes=nodes, dimension=dimension, rate=rate, lasso=lasso)
    theta = np.zeros((nodes, dimension))
    for _ in range(30):
        x = np.zeros((nodes, dimension))
        indices = np.array([np.sort(rng.permutation(dimension)[:2]) for _ in range(nodes)])
        np.put_along_axis(x, indices, rng.normal(size=(nodes, 2)), axis=1)
        labels = rng.choice([-1, 1], nodes)
        w = np.sign(theta) * np.maximum(np.abs(theta) - rate * lasso, 0)
        margins = (w * x).sum(axis=1)
        rows = SparseRows(
            np.arange(nodes + 1) * 2,
            indices.reshape(-1),
            np.take_along_axis(x, indices, axis=1).reshape(-1),
        )
        own, mean = algorithm.predict(rows)
        assert np.allclose(own, margins)
        assert np.allclose(mean, x @ w.mean(axis=0))
        gradient = np.where(labels * margins < 1, -labels, 0)[:, None] * x
        theta = weights @ theta - rate * gradient
        algorithm.learn(rows=rows, labels=labels, margins=own, weights=weights)
        assert np.allclose(algorithm.theta, theta)
    assert 0 <= algorithm.sparsity() < 1


def test_the_noise_is_laplace_of_the_stated_scale_on_what_is_broadcast() -> None:
    """40,000 draws: the mean of |z| is within 3% but for chance 1e-8."""
    algorithm = Algorithm1(nodes=4, dimension=10_000, rate=0.05, epsilon=2.0)
    rows = SparseRows(np.arange(5), np.zeros(4, dtype=np.int64), np.ones(4))
    algorithm.learn(
        rows=rows,
        labels=np.ones(4, dtype=np.int64),
        margins=np.zeros(4),
        weights=np.eye(4),
        noise=laplace(SeededNoise(1), nodes=4, dimension=10_000),
    )
    drawn = algorithm.noisy - algorithm.theta
    assert np.abs(drawn).mean() == pytest.approx(5.0, rel=0.03)
    assert drawn.std() == pytest.approx(5.0 * math.sqrt(2), rel=0.05)
    assert algorithm.theta[:, 1:].any() == np.False_


def test_what_cannot_be_is_refused() -> None:
    for change in ({"nodes": 0}, {"rate": 0.0}, {"lasso": -1.0}, {"epsilon": 0.0}):
        with pytest.raises(InvalidArgument):
            Algorithm1(**{"nodes": 2, "dimension": 3, "rate": 1.0, **change})  # type: ignore[arg-type]
    algorithm = Algorithm1(nodes=2, dimension=3, rate=1.0)
    with pytest.raises(InvalidArgument, match="rows"):
        algorithm.predict(SparseRows(np.array([0, 1]), np.array([0]), np.array([1.0])))


def test_privacy_without_noise_is_refused() -> None:
    algorithm = Algorithm1(nodes=1, dimension=1, rate=1.0, epsilon=1.0)
    rows = SparseRows(np.array([0, 1]), np.array([0]), np.array([1.0]))
    one = np.ones(1)
    with pytest.raises(InvalidArgument, match="noise"):
        algorithm.learn(
            rows=rows, labels=one.astype(np.int64), margins=0 * one, weights=np.ones((1, 1))
        )
