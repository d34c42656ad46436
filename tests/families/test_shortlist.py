"""The shortlist: greedy growth against brute force and against the best rule there is."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, hstack, identity, kron, vstack

from discreet.families.choice import Floats, Slots
from discreet.families.shortlist import MOST_ARMS, grow_shortlist


@dataclass(frozen=True, eq=False)
class World:
    """Clustered contexts; an arm's mean is its popularity and a bump around a place of its own."""

    seed: int
    arms: int = 20
    dimensions: int = 2
    clusters: int = 6

    def contexts(self, count: int) -> Floats:
        rng = np.random.default_rng([self.seed, 1])
        centres = rng.uniform(0.1, 0.9, (self.clusters, self.dimensions))
        which = rng.choice(self.clusters, count, p=rng.dirichlet(np.full(self.clusters, 3.0)))
        drawn = centres[which] + rng.normal(0.0, 0.07, (count, self.dimensions))
        near: Floats = np.clip(drawn, 0.0, 1.0)
        return near

    def means(self, contexts: Floats) -> Floats:
        rng = np.random.default_rng([self.seed, 2])
        places = rng.uniform(0.0, 1.0, (self.arms, self.dimensions))
        popularity = rng.uniform(0.02, 0.45, self.arms)
        heights = rng.uniform(0.25, 0.5, self.arms)
        squares = ((contexts[:, None, :] - places) ** 2).sum(axis=2)
        means: Floats = popularity + heights * np.exp(-squares / (2 * 0.3**2))
        return means


def value(means: Floats, shares: Floats, odds: Floats, listed: Slots) -> float:
    """Return V(H), written out cell by cell."""
    total = 0.0
    for row, share, odd in zip(means, shares, odds, strict=True):
        weights = np.ones(len(listed))
        weights[row[listed].argmax()] = odd
        total += share * float(weights @ row[listed]) / float(weights.sum())
    return total / float(shares.sum())


def world(seed: int, *, arms: int) -> tuple[Floats, Floats]:
    """Return the true means of 8 x 8 cells and their traffic."""
    smooth = World(seed, arms=arms, clusters=8)
    contexts = smooth.contexts(1_500)
    cell = (np.minimum(contexts * 8, 7.99).astype(int) @ [8, 1]).astype(int)
    means = smooth.means(contexts)
    names = np.unique(cell)
    return (
        np.array([means[cell == name].mean(axis=0) for name in names]),
        np.array([float((cell == name).sum()) for name in names]),
    )


def optimum(means: Floats, shares: Floats, epsilon: float) -> float:
    """Return the most that any epsilon-DP rule can earn: maximise over p and a with
    a_k <= p(k | C) <= e^epsilon a_k."""
    cells, arms = means.shape
    every = identity(cells * arms, format="csr")
    base = kron(np.ones((cells, 1)), identity(arms), format="csr")
    bounds = vstack([hstack([every, -math.exp(epsilon) * base]), hstack([-every, base])])
    sums = hstack(
        [kron(identity(cells), np.ones((1, arms)), format="csr"), csr_matrix((cells, arms))]
    )
    weights = shares / shares.sum()
    solved = linprog(
        np.concatenate([-(weights[:, None] * means).ravel(), np.zeros(arms)]),
        A_ub=bounds,
        b_ub=np.zeros(2 * cells * arms),
        A_eq=sums,
        b_eq=np.ones(cells),
        method="highs",
    )
    assert solved.success
    return -float(solved.fun)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_no_private_rule_earns_more_than_one_percent_more(seed: int, epsilon: float) -> None:
    means, shares = world(seed, arms=12)
    odds = np.full(len(shares), math.exp(epsilon))
    listed = grow_shortlist(means=means, shares=shares, odds=odds)
    ours = value(means, shares, odds, listed)
    best = optimum(means, shares, epsilon)
    assert 0.99 * best <= ours <= best * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_growth_is_close_to_the_best_of_all_shortlists(seed: int) -> None:
    rng = np.random.default_rng(seed)
    means = rng.random((9, 6)) * rng.random(6)
    shares = rng.random(9)
    odds = np.exp(rng.uniform(0.2, 3.0, 9))
    ours = value(means, shares, odds, grow_shortlist(means=means, shares=shares, odds=odds))
    every = (
        np.array(some) for size in range(1, 7) for some in itertools.combinations(range(6), size)
    )
    best = max(value(means, shares, odds, some) for some in every)
    assert 0.995 * best <= ours <= best * (1 + 1e-9)


def test_an_arm_that_pleases_everybody_a_little_leaves_when_others_please_each_more() -> None:
    # Four tastes with a favourite each, and one arm that is second for all of them.
    means = np.hstack([0.1 + 0.6 * np.eye(4), np.full((4, 1), 0.35)])
    odds = np.full(4, math.exp(2.0))
    listed = grow_shortlist(means=means, shares=np.ones(4), odds=odds)
    assert sorted(listed.tolist()) == [0, 1, 2, 3]


def test_with_little_privacy_loss_it_is_the_most_popular_arm() -> None:
    means, shares = world(1, arms=12)
    listed = grow_shortlist(means=means, shares=shares, odds=np.full(len(shares), math.exp(1e-3)))
    assert listed.tolist() == [int((shares @ means).argmax())]


def test_with_much_it_holds_the_best_arm_of_every_cell() -> None:
    means, shares = world(2, arms=12)
    listed = grow_shortlist(means=means, shares=shares, odds=np.full(len(shares), math.exp(30.0)))
    assert np.allclose(means[:, listed].max(axis=1), means.max(axis=1))


def test_traffic_decides() -> None:
    means = np.array([[0.9, 0.1], [0.1, 0.8]])
    odds = np.full(2, math.exp(0.1))
    for shares, popular in ((np.array([1.0, 5.0]), 1), (np.array([5.0, 1.0]), 0)):
        assert grow_shortlist(means=means, shares=shares, odds=odds).tolist() == [popular]


def test_nothing_to_choose_from_gives_an_empty_list() -> None:
    none = np.zeros(0)
    assert len(grow_shortlist(means=np.zeros((0, 3)), shares=none, odds=none)) == 0
    assert len(grow_shortlist(means=np.zeros((2, 0)), shares=np.ones(2), odds=np.ones(2))) == 0


def test_it_never_grows_beyond_its_bound() -> None:
    arms = MOST_ARMS + 40
    means = np.eye(arms)
    listed = grow_shortlist(means=means, shares=np.ones(arms), odds=np.full(arms, 1e20))
    assert len(listed) == len(set(listed.tolist())) == MOST_ARMS
