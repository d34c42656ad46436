"""LaP-DAP, as published: what a vendor does for the users of other vendors.

Algorithm 2 of the paper named in `p_dap`, line by line.

| paper's symbol | name here | range |
|---|---|---|
| x_j(t) | `context`: forwarded by vendor j | [0,1]^d |
| k in M_i | `items`, the vendor's own | >= 0 |
| Tree_k | a stream of `RewardTrees` | |
| f, F | a reward, and the noisy reward that takes its place | [0,1], any |
| Delta f / epsilon | `RewardTrees.scale` | 1 / epsilon |
| G_3 | `exploration(level)` | m^(2 alpha l) * ln(T) / K |
| m, p, A, alpha, T | as in Algorithm 1 | |

How it is read where the paper is silent or contradicts itself
- Statistics and partition are apart from those of Algorithm 1: line 2 begins with fresh ones.
- The noise has three scales in the paper: Delta f / epsilon in line 9, K log(T) / epsilon in the
  text, theta log(T) / epsilon in Lemma 5. Line 9 is taken literally, with Delta f = 1, the most
  that one reward can change: the least noise of the three, and the kindest to the algorithm. It is
  too little for the claim: one reward enters log T nodes, so a tree would need log(T) / epsilon.
- Trees: line 3 and line 9 have one for every video; the proof of Theorem 5 says that "the
  algorithm only accesses the reward for its computation via the tree" and has one for every other
  vendor. So both: what line 8 compares comes from a tree a video, and what vendor j receives comes
  from a tree a vendor. Rewards of different cells are different rewards, so each cell has its own
  trees at no further cost.
- Rewards seen while exploring (line 6) are inserted as they are, without noise.

Guarantee card
- Protects: nobody. For simulations and comparison only.
- The paper claims (Theorem 5) epsilon-DP of one reward against the asking vendor. The noise of a
  tree lacks the factor log T, two trees hold the same reward, line 6 adds no noise at all, and
  which item line 8 selects is seen by the user.
"""

import math
from dataclasses import replace

import numpy as np

from discreet.errors import InvalidArgument
from discreet.privacy.noise import NoiseSource
from discreet.research.continual import LaplaceTree
from discreet.research.continual.dyadic import DyadicState
from discreet.research.published.p_dap_cells import Cell, Cells, Floats, PartitionParameters


class PublishedForOthers:
    """Algorithm 2. Line 9's noise is added by whoever reports the reward: see `RewardTrees`."""

    def __init__(self, parameters: PartitionParameters, *, dimensions: int, items: int) -> None:
        if items < 1:
            raise InvalidArgument("items", "must be at least 1")
        self._parameters = parameters
        self._items = items
        self.cells = Cells(parameters, dimensions=dimensions, slots=items)

    def decide(self, context: Floats) -> tuple[Cell, int]:
        """Return the active cell and the chosen item: lines 4 to 8."""
        cell = self.cells.active(context)
        short = np.flatnonzero(cell.counts < self.exploration(cell.level))
        if len(short):
            return cell, int(short[cell.counts[short].argmin()])
        return cell, int(cell.means().argmax())

    def exploration(self, level: int) -> float:
        """Return G_3: how often each item is tried in a cell before the best is selected."""
        return self._parameters.control(level) / self._items

    def learn(self, cell: Cell, slot: int, reward: float) -> None:
        """Line 11. `reward` is f while exploring (line 6) and F of line 9 afterwards."""
        cell.add(slot, reward)


class RewardTrees:
    """Noisy running sums of rewards, one binary tree a stream (lines 3 and 9).

    `insert` returns by how much a stream's noisy sum grows: adding up what it returned always
    gives the tree's own release, whose noise is that of at most log T nodes.
    """

    def __init__(self, *, horizon: int, noise: NoiseSource) -> None:
        if horizon < 2:
            raise InvalidArgument("horizon", "must be at least 2")
        self._horizon = horizon
        self._noise = noise
        self._trees: dict[float, LaplaceTree] = {}
        self._streams: dict[tuple[object, ...], tuple[DyadicState, float]] = {}

    def scale(self, epsilon: float) -> float:
        """Return the scale of the noise of one node."""
        return self._tree(epsilon).scale

    def insert(self, *, stream: tuple[object, ...], reward: float, epsilon: float) -> float:
        """Put a reward into a stream's tree; return the growth of its noisy sum."""
        tree = self._tree(epsilon)
        known = self._streams.get(stream)
        state, before = known if known is not None else (tree.start(), 0.0)
        state = tree.observe(state=state, value=reward, noise=self._noise)
        after = float(tree.release(state=state).value[0])
        self._streams[stream] = (state, after)
        return after - before

    def _tree(self, epsilon: float) -> LaplaceTree:
        if not (math.isfinite(epsilon) and epsilon > 0):
            raise InvalidArgument("epsilon", "must be finite and greater than 0")
        tree = self._trees.get(epsilon)
        if tree is None:
            whole = LaplaceTree(horizon=self._horizon, multiplier=1.0, granularity=2.0**-20)
            tree = replace(whole, multiplier=1.0 / (epsilon * whole.most_nodes))
            self._trees[epsilon] = tree
        return tree
