"""Binary trees over time: a prefix is a few noisy nodes.

Imagine the leaves of a binary tree of height h, numbered in binary, and put the t-th step of the
stream on the t-th of a chosen, increasing sequence of leaves L(0) < L(1) < ... To release the
first t steps, look at L(t), the leaf that the next step would take: for every bit of L(t) that is
1, the left sibling at that bit is a node wholly before L(t), and these nodes partition everything
before it. So the release is the exact sum plus one noise for each 1 in L(t).

- Nodes used are left children only, so the step on leaf L enters one node for each 0 in L. With
  node noise of scale sigma the whole stream is one release of sensitivity
  Delta * sqrt(zeros) (L2) or Delta * zeros (L1), the largest number of zeros counting.
- When the leaf advances, bits above the highest changed one keep their nodes and their noise; ones
  at or below it stand for nodes never used before and get noise of their own. A node that has been
  left is never returned to, because leaves increase. So noise is drawn once for each node and
  belongs to it alone, and only the noises of the current leaf need be remembered.

`BinaryTree` (Dwork, Naor, Pitassi and Rothblum 2010; Chan, Shi and Song 2011) takes every leaf:
L(t) = t, so up to `levels` = bit length of T zeros, and between 1 and log2(T + 1) ones: variance
depends on the step.

`SmoothBinary` (Andersson and Pagh 2023) takes the leaves with a fixed number k of ones, in order:
every release has k noises, every step enters h - k nodes. There must be T + 1 such leaves,
C(h, k) > T. They take k = h/2; the product k*(h - k), which is the variance at multiplier 1, is
often smaller for another pair, and we take the smallest.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument, StateOverflow
from discreet.privacy.calibration import tree_levels
from discreet.privacy.events import GaussianRelease, LaplaceRelease, Released
from discreet.privacy.noise import Integers, NoiseSource
from discreet.privacy.numeric import GRANULARITY
from discreet.research.continual import contract
from discreet.research.continual.contract import Floats

_MOST_STEPS = 2.0**48
_MOST_NOISE = 2**56
"""Noise of that scale, in steps, passes this bound with probability below exp(-255). The at most
62 noises of one release, and a sum below 2**62, then fit 64 bits together."""


@dataclass(frozen=True, slots=True, eq=False)
class DyadicState:
    """`total` is the exact sum; `noise[b]` belongs to the node of bit b of the current leaf."""

    step: int
    leaf: int
    total: Integers
    noise: Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dyadic(ABC):
    """What the trees share. Memory: (height + 1) * dimension integers, and time likewise."""

    horizon: int
    multiplier: float
    dimension: int = 1
    step_sensitivity: float = 1.0
    granularity: float = GRANULARITY

    def __post_init__(self) -> None:
        contract.check_parameters(
            horizon=self.horizon,
            dimension=self.dimension,
            multiplier=self.multiplier,
            step_sensitivity=self.step_sensitivity,
            granularity=self.granularity,
        )
        contract.check_scale(self.scale, self.granularity, _MOST_STEPS)

    @property
    @abstractmethod
    def height(self) -> int:
        """How many bits a leaf's number has."""

    @property
    @abstractmethod
    def most_nodes(self) -> int:
        """How many nodes one step can enter: the most zeros in a leaf that is used."""

    @abstractmethod
    def leaf_after(self, leaf: int) -> int:
        """Return the next leaf of the sequence."""

    @abstractmethod
    def first_leaf(self) -> int:
        """Return the leaf of the first step."""

    @abstractmethod
    def noises(self, step: int) -> int:
        """Return how many node noises a release after `step` steps contains."""

    @property
    def sensitivity(self) -> float:
        """The L2 sensitivity of all nodes: most_nodes of them move by one step's value."""
        step = contract.l2_after_rounding(self.step_sensitivity, self.dimension, self.granularity)
        return math.sqrt(self.most_nodes) * step * contract.UP

    @property
    def scale(self) -> float:
        """The scale of every node's noise."""
        return self.multiplier * self.sensitivity * contract.UP

    @property
    def event(self) -> GaussianRelease | LaplaceRelease:
        """One Gaussian release of all nodes."""
        return GaussianRelease(scale=self.scale, sensitivity=self.sensitivity)

    def _draw(self, noise: NoiseSource, size: int) -> Integers:
        return noise.discrete_gaussian(scale=self.scale / self.granularity, size=size)

    def _node_variance(self) -> float:
        return contract.gaussian_variance(self.scale / self.granularity) * self.granularity**2

    def start(self) -> DyadicState:
        """Return the state before the first step: nothing summed, no noise yet."""
        return DyadicState(
            step=0,
            leaf=self.first_leaf(),
            total=contract.frozen(np.zeros(self.dimension, dtype=np.int64)),
            noise=contract.frozen(np.zeros((self.height, self.dimension), dtype=np.int64)),
        )

    def observe(
        self, *, state: DyadicState, value: npt.ArrayLike, noise: NoiseSource
    ) -> DyadicState:
        """Add one step and draw the noise of the nodes that the next leaf is the first to use."""
        contract.check_room(state.step, self.horizon)
        steps = contract.to_steps(value, dimension=self.dimension, granularity=self.granularity)
        total = contract.add(state.total, steps)
        leaf = self.leaf_after(state.leaf)
        changed = (leaf ^ state.leaf).bit_length()
        kept = state.noise.copy()
        kept[:changed] = 0
        fresh = [bit for bit in range(changed) if leaf >> bit & 1]
        drawn = self._draw(noise, len(fresh) * self.dimension)
        if not np.abs(drawn).max() < _MOST_NOISE:
            raise StateOverflow("a draw left the range in which adding it is exact")
        kept[fresh] = drawn.reshape(len(fresh), self.dimension)
        return DyadicState(state.step + 1, leaf, total, contract.frozen(kept))

    def release(self, *, state: DyadicState) -> Released[Floats]:
        """Return the sum so far with the noises of the current leaf's nodes."""
        noisy = state.total + state.noise.sum(axis=0)
        return Released(noisy.astype(np.float64) * self.granularity, self.event)

    def variance(self, step: int) -> float:
        """Return the number of noises times the variance of one."""
        contract.check_step(step, self.horizon)
        return self.noises(step) * self._node_variance()

    def encode(self, state: DyadicState) -> Integers:
        """Return step, leaf, total and noise, one after the other."""
        return np.concatenate(
            [np.array([state.step, state.leaf]), state.total, state.noise.reshape(-1)]
        )

    def decode(self, vector: Integers) -> DyadicState:
        """Return the state, refusing a vector of another length or an impossible step."""
        size = 2 + self.dimension * (self.height + 1)
        if vector.shape != (size,) or vector.dtype != np.int64:
            raise InvalidArgument("vector", f"must hold {size} 64-bit integers")
        step, leaf = int(vector[0]), int(vector[1])
        if not (0 <= step <= self.horizon and 0 <= leaf < 1 << self.height):
            raise InvalidArgument("vector", "does not belong to a sum of these parameters")
        total, noise = np.split(vector[2:].copy(), [self.dimension])
        noise = noise.reshape(self.height, self.dimension)
        return DyadicState(step, leaf, contract.frozen(total), contract.frozen(noise))


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryTree(_Dyadic):
    """The classic binary mechanism with Gaussian noise."""

    @property
    def height(self) -> int:
        """Bits enough to number the horizon itself."""
        return tree_levels(self.horizon)

    @property
    def most_nodes(self) -> int:
        """The first step sits on leaf 0, all zeros."""
        return self.height

    def leaf_after(self, leaf: int) -> int:
        """Take every leaf."""
        return leaf + 1

    def first_leaf(self) -> int:
        """Begin on the left."""
        return 0

    def noises(self, step: int) -> int:
        """Return the ones in the binary form of the step."""
        return step.bit_count()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceTree(BinaryTree):
    """The binary mechanism with Laplace noise: epsilon = 1/multiplier, no delta."""

    @property
    def sensitivity(self) -> float:
        """The L1 sensitivity of all nodes."""
        step = contract.l1_after_rounding(self.step_sensitivity, self.dimension, self.granularity)
        return self.most_nodes * step * contract.UP

    @property
    def event(self) -> GaussianRelease | LaplaceRelease:
        """One Laplace release of all nodes."""
        return LaplaceRelease(scale=self.scale, sensitivity=self.sensitivity)

    def _draw(self, noise: NoiseSource, size: int) -> Integers:
        return noise.discrete_laplace(scale=self.scale / self.granularity, size=size)

    def _node_variance(self) -> float:
        return contract.laplace_variance(self.scale / self.granularity) * self.granularity**2


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothBinary(_Dyadic):
    """Only leaves with the same number of ones: the same variance at every step."""

    @property
    def height(self) -> int:
        """The bits of `smallest_code`."""
        return smallest_code(self.horizon)[0]

    @property
    def most_nodes(self) -> int:
        """Every leaf that is used has this many zeros."""
        height, ones = smallest_code(self.horizon)
        return height - ones

    def leaf_after(self, leaf: int) -> int:
        """Return the next larger number with as many ones.

        The lowest block of ones gives its top bit to the zero above it and drops the rest down.
        """
        lowest = leaf & -leaf
        carried = leaf + lowest
        return carried | ((leaf ^ carried) // lowest >> 2)

    def first_leaf(self) -> int:
        """Return the smallest number with that many ones."""
        return (1 << smallest_code(self.horizon)[1]) - 1

    def noises(self, step: int) -> int:
        """Return the same number at every step but none before the first."""
        return smallest_code(self.horizon)[1] if step else 0


def published_code(horizon: int) -> tuple[int, int]:
    """Return the (height, ones) of Andersson and Pagh: half of the bits are ones."""
    height = 2
    while math.comb(height, height // 2) <= horizon:
        height += 2
    return height, height // 2


@lru_cache(maxsize=1024)
def smallest_code(horizon: int) -> tuple[int, int]:
    """Return the (height, ones) with more than `horizon` leaves and the least variance.

    For each number of ones the least height is best. A code with k ones has a variance of at
    least k**2 once more than half of its bits must be ones, so the search ends early.
    """
    best = published_code(horizon)
    for ones in range(1, best[1] + 1):
        height = ones + 1
        while math.comb(height, ones) <= horizon and ones * (height - ones) < _product(best):
            height += 1
        if math.comb(height, ones) > horizon and ones * (height - ones) < _product(best):
            best = (height, ones)
    return best


def _product(code: tuple[int, int]) -> int:
    height, ones = code
    return ones * (height - ones)
