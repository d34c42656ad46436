"""Trees: published figures, the smallest code, and faults that the loss would betray."""

import math
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

from discreet.privacy.events import Released
from discreet.privacy.noise import NoiseSource
from discreet.research.continual import BinaryTree, DyadicState, LaplaceTree, SmoothBinary
from discreet.research.continual.dyadic import published_code, smallest_code
from discreet.research.noise import SeededNoise
from tests.research.continual.impulses import Impulse, losses, releases


@pytest.mark.parametrize(("horizon", "deviation"), [(2**10, 10.5), (2**16, 16.5), (2**20, 20.5)])
def test_the_tree_at_its_worst(horizon: int, deviation: float) -> None:
    tree = BinaryTree(horizon=horizon, multiplier=1.0)
    worst = max(tree.variance(t) for t in (horizon - 1, horizon, horizon // 2 - 1))
    assert math.sqrt(worst) == pytest.approx(deviation, abs=0.05)
    assert tree.variance(horizon) == pytest.approx(worst / (horizon.bit_length() - 1))


@pytest.mark.parametrize(
    ("horizon", "published", "ours"),
    [(2**10, 7, math.sqrt(40)), (2**16, 10, math.sqrt(88)), (2**20, 12, math.sqrt(130))],
)
def test_the_smooth_tree_at_every_step(horizon: int, published: float, ours: float) -> None:
    height, ones = published_code(horizon)
    assert math.sqrt(ones * (height - ones)) == published
    smooth = SmoothBinary(horizon=horizon, multiplier=1.0)
    for step in (1, 2, 77, horizon // 2, horizon):
        assert math.sqrt(smooth.variance(step)) == pytest.approx(ours, rel=1e-5)
    assert ours < published


def test_the_smallest_code_is_the_smallest() -> None:
    for horizon in [*range(1, 120), 2**10, 2**16, 2**20, 10**9]:
        height, ones = smallest_code(horizon)
        assert math.comb(height, ones) > horizon
        least = min(
            k * (h - k) for h in range(2, 130) for k in range(1, h) if math.comb(h, k) > horizon
        )
        assert ones * (height - ones) == least
        assert height <= 62


@pytest.mark.parametrize("horizon", [1, 3, 30, 200])
def test_smooth_leaves_ascend_and_have_as_many_ones(horizon: int) -> None:
    smooth = SmoothBinary(horizon=horizon, multiplier=1.0)
    height, ones = smallest_code(horizon)
    leaves = [smooth.first_leaf()]
    for _ in range(horizon):
        leaves.append(smooth.leaf_after(leaves[-1]))
    assert all(leaf.bit_count() == ones and leaf < 1 << height for leaf in leaves)
    # All of them, none left out.
    assert leaves == [n for n in range(leaves[-1] + 1) if n.bit_count() == ones]


@pytest.mark.parametrize("kind", [BinaryTree, LaplaceTree, SmoothBinary])
@pytest.mark.parametrize("horizon", [16, 50])
def test_every_node_has_noise_of_its_own_drawn_once(
    kind: type[BinaryTree | SmoothBinary], horizon: int
) -> None:
    """Name every draw by the node it is for, as it is drawn, and look for a name given twice."""
    sums = kind(horizon=horizon, multiplier=1.0)
    state, nodes = sums.start(), Counter[tuple[int, int]]()
    entered = [0] * horizon
    leaves: list[int] = []
    for _ in range(horizon):
        leaves.append(state.leaf)
        listener = Impulse()
        following = sums.observe(state=state, value=0.0, noise=listener)
        changed = (following.leaf ^ state.leaf).bit_length()
        fresh = [bit for bit in range(changed) if following.leaf >> bit & 1]
        assert len(listener.scales) == len(fresh)
        for bit in fresh:
            node = (bit, following.leaf >> bit ^ 1)  # the left sibling
            nodes[node] += 1
            for step, leaf in enumerate(leaves):
                entered[step] += leaf >> bit == node[1]
        state = following
    assert set(nodes.values()) == {1}
    assert max(entered) <= sums.most_nodes


def test_memory_is_logarithmic() -> None:
    for kind in (BinaryTree, SmoothBinary):
        sums = kind(horizon=2**20, multiplier=1.0, dimension=3)
        assert len(sums.encode(sums.start())) <= 2 + 3 * 25


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedNoise(BinaryTree):
    """Planted: one noise for all coordinates."""

    def _draw(self, noise: NoiseSource, size: int) -> npt.NDArray[np.int64]:
        return np.full(
            size, noise.discrete_gaussian(scale=self.scale / self.granularity, size=1)[0]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptNoise(BinaryTree):
    """Planted: a level draws its noise once, and every node of the level uses it."""

    def observe(
        self, *, state: DyadicState, value: npt.ArrayLike, noise: NoiseSource
    ) -> DyadicState:
        leaf = state.leaf + 1
        kept = state.noise.copy()
        if leaf & (leaf - 1) == 0:  # a power of two: its level is used for the first time
            kept[leaf.bit_length() - 1] = self._draw(noise, self.dimension)
        total = state.total + np.asarray(value, dtype=np.int64)
        return DyadicState(state.step + 1, leaf, total, kept)

    def release(self, *, state: DyadicState) -> Released[npt.NDArray[np.float64]]:
        used = [bit for bit in range(self.height) if state.leaf >> bit & 1]
        noisy = state.total + state.noise[used].sum(axis=0)
        return Released(noisy * self.granularity, self.event)


@dataclass(frozen=True, slots=True, kw_only=True)
class HalvedNoise(BinaryTree):
    """Planted: half the scale that is claimed."""

    def _draw(self, noise: NoiseSource, size: int) -> npt.NDArray[np.int64]:
        return noise.discrete_gaussian(scale=self.scale / self.granularity / 2, size=size)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneLevelShort(BinaryTree):
    """Planted: one level forgotten in the sensitivity."""

    @property
    def most_nodes(self) -> int:
        return self.height - 1


@pytest.mark.parametrize("fault", [HalvedNoise, OneLevelShort, KeptNoise])
def test_a_fault_shows_in_the_loss(fault: type[BinaryTree]) -> None:
    """The measure that the contract suite relies on rejects each of them."""
    assert max(losses(BinaryTree(horizon=15, multiplier=1.0), 15)) <= 1.0
    assert max(losses(fault(horizon=15, multiplier=1.0), 15)) > 1.05


def test_noise_shared_by_two_coordinates_shows_in_the_loss() -> None:
    sums = SharedNoise(horizon=4, multiplier=1.0, dimension=2)
    assert max(losses(sums, 4)) == math.inf


def test_large_streams_run() -> None:
    sums = SmoothBinary(horizon=3000, multiplier=1.0)
    told = releases(sums, np.ones((3000, 1)), SeededNoise(3))[:, 0]
    error = told - np.arange(1, 3001)
    # Errors are correlated in time; six deviations anywhere has probability below 3000 * 2e-9.
    assert np.abs(error).max() < 6 * math.sqrt(sums.variance(1))
    assert all(a != b for a, b in pairwise(error.tolist()))
