"""From feedback to sums, from sums to a model: sparse mirror descent with noisy sums.

After C. Li, P. Zhou, Y. Zhou, K. Bian, T. Jiang, S. Rahardja: Distributed Private Online Learning
for Social Big Data Computing over Data Center Networks, 2016. The nodes, the hinge loss, the
mixing and the lasso are theirs. The noise is not: theirs drowns every model of a useful size, and
their predictions use a parameter that has none (`discreet.research.published.mirror_descent`).

| paper's symbol | name here | range |
|---|---|---|
| n | `dimension` | 1 .. 2^24 |
| x | `rows`, one a record, clipped to an L2 norm of `clip` | sparse |
| y | a reward of 1 is +1, of 0 is -1; one between them is a part of each | -1, +1 |
| g = -y x [margin < 1] | `gradients` returns -g in grid steps | integers |
| theta^i | `NodeSums.theta`: the node's mixed, noisy sum of -g | R^n |
| t | `NodeSums.count`: records behind theta, a node's share | about >= 0 |
| phi_t | (scale_t / 2) * |w|^2, see `model` | |
| lambda_t | `truncation` deviations of theta's noise | >= 0 |
| w | `MirrorModel.weights` | R^n, mostly 0 |
| epsilon | `epsilon`, with `delta`, of one record; None releases exact sums | (0, 50], (0, 1) |
| a_ij | `discreet.families.mirror_descent.sync` | doubly stochastic |

What a record costs. Between two releases a node gathers one vector: by feature the sum of its
records' gradients, and beside them the number of records in units of clip. A release adds discrete
Gaussian noise, drawn once and for this release only, to every entry.

- Replacing a record leaves the number, and moves the gradients by at most 2 * clip: both are
  integer vectors of norm at most clip, exactly (`sparse.on_grid`).
- Adding or removing one moves them by at most sqrt(clip^2 + clip^2) = 2 * clip / sqrt(2), which
  costs half as much. It may not cost more: feedback that is sent later is missing in one release
  and added in another, and the client's ledger is charged for one of them.

So the L2 sensitivity to any change of one record is 2 * clip, whatever the dimension, and the
number of records is released at no further cost. Every record enters one release, so it costs
`event` once; n records of one client in the same release move it n times as far and cost n^2 times
the rho, which the store charges. If a release has n records of a client in one world and m in
another, they differ by at most (n + m) * clip in the gradients and by |n - m| * clip in the number:
(n^2 + m^2) / 2 times the rho of one record, the mean of what the two worlds' ledgers are charged.

A gradient is evaluated at the model that was released before, so a record changes other records'
gradients only through releases, and releases compose adaptively.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.families.mirror_descent.model import MirrorModel, NodeSums, with_neighbours
from discreet.families.mirror_descent.sparse import STEPS, Floats, GridRows, Integers
from discreet.privacy.calibration import zcdp_gaussian_scale
from discreet.privacy.events import ExactRelease, GaussianRelease, PrivacyEvent
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import Vector

SLICE = 2**14
"""Numbers of a release that lie together in one block: first how many records there are, then the
features' sums. A block is created when one of its features is named first, and is as long as the
last of them needs; a record adds to few of them, each in one step."""
_NAMED = b"slice"
"""What names of blocks begin with; a block's number follows."""

_CHUNK = 2**14
"""Noise drawn at a time: other threads get their turn in between."""
_MEDIAN = 0.6744897501960817
"""The median of |z| for a standard normal z."""


@dataclass(frozen=True, kw_only=True)
class MirrorLearner:
    """A node's learner. Pure: what it knows is passed in and returned."""

    dimension: int
    epsilon: float | None = 1.0
    delta: float = 1e-6
    clip: float = 1.0
    truncation: float = 2.0
    ridge: float = 1e-3
    multiplier: float = field(init=False)
    """Deviation of the noise divided by the sensitivity; 0 if sums are exact."""

    def __post_init__(self) -> None:
        multiplier = 0.0
        if self.epsilon is not None:
            multiplier = zcdp_gaussian_scale(
                epsilon=self.epsilon, delta=self.delta, sensitivity=1.0
            )
        object.__setattr__(self, "multiplier", multiplier)

    @cached_property
    def event(self) -> PrivacyEvent:
        """What one record costs: everything that is ever released about it."""
        if self.epsilon is None:
            return ExactRelease()
        return GaussianRelease(scale=self.multiplier, sensitivity=1.0)

    @property
    def scale(self) -> float:
        """Return the deviation of the noise of one release."""
        return 2 * self.clip * self.multiplier

    @cached_property
    def count_steps(self) -> int:
        """Return the grid steps by which one record raises the count: at most clip."""
        return math.floor(self.clip * STEPS)

    # Feedback.

    def gradients(self, model: MirrorModel, rows: GridRows, rewards: Floats) -> Integers:
        """Return y x in steps of the records that the model does not get right by a margin.

        There is an entry for every entry of `rows`, 0 where a record teaches nothing. Line 9 and
        the subgradient of line 10. A reward r between 0 and 1 is r of a record that was liked and
        1 - r of one that was not: its factor is from -1 to 1, and rounding is towards zero, so
        that no record becomes longer.
        """
        if not (np.abs(rewards - 0.5) <= 0.5).all():  # a NaN is not at most anything
            raise InvalidArgument("reward", "must be from 0 to 1")
        margins = model.margins(rows)
        factors = rewards * (margins < 1) - (1 - rewards) * (margins > -1)
        # As whole numbers they are rounded towards zero.
        return (rows.values * STEPS * factors[rows.row_of]).astype(np.int64)

    def increments(
        self, model: MirrorModel, rows: GridRows, rewards: Floats
    ) -> list[Mapping[bytes, npt.NDArray[np.int32]]]:
        """Return what each record adds to blocks: rows of a field and its amount."""
        count = len(rows)
        if not count:
            return []
        amounts = self.gradients(model, rows, rewards)
        taught = amounts.nonzero()[0]
        # Each record adds to the count, which is the first number, and then to its features.
        record_of = rows.row_of[taught]
        at = np.arange(1, 1 + len(taught)) + record_of
        pairs = np.zeros((count + len(taught), 2), dtype=np.int32)
        pairs[:, 1] = self.count_steps
        pairs[at, 0], pairs[at, 1] = 1 + rows.indices[taught], amounts[taught]
        lengths = 1 + np.bincount(record_of, minlength=count)
        if self.dimension < SLICE:
            ends = lengths.cumsum().tolist()
            ranges = zip([0, *ends[:-1]], ends, strict=True)
            return [{_FIRST: pairs[start:end]} for start, end in ranges]
        blocks = pairs[:, 0] // SLICE
        pairs[:, 0] -= SLICE * blocks
        # Features ascend, so the numbers of a record that lie in one block are side by side.
        records = np.arange(count).repeat(lengths)
        last = (records[1:] != records[:-1]) | (blocks[1:] != blocks[:-1])
        starts = [0, *(1 + last.nonzero()[0]).tolist()]
        found: list[dict[bytes, npt.NDArray[np.int32]]] = [{} for _ in range(count)]
        for start, end, record, block in zip(
            starts,
            [*starts[1:], len(pairs)],
            records[starts].tolist(),
            blocks[starts].tolist(),
            strict=True,
        ):
            found[record][_named(block)] = pairs[start:end]
        return list(found)

    # Releases.

    def summed(self, gathered: Mapping[bytes, Vector]) -> Integers:
        """Return gathered blocks as one vector: the count, then the gradients, in steps."""
        total = np.zeros(1 + self.dimension, dtype=np.int64)
        for block, vector in gathered.items():
            start = _start_of(block)
            total[start : start + len(vector)] += vector
        return total

    def release(self, own: NodeSums, total: Integers, noise: NoiseSource) -> NodeSums:
        """Return a node's sums with another release: `total` as `summed` gives it."""
        if self.epsilon is not None:
            scale = self.scale * STEPS
            total = total + np.concatenate(
                [
                    noise.discrete_gaussian(scale=scale, size=min(_CHUNK, len(total) - start))
                    for start in range(0, len(total), _CHUNK)
                ]
            )
        records = max(float(total[0]) / self.count_steps, 0.0)
        return NodeSums(
            own.gradients + (records / STEPS) * total[1:],
            own.count + records,
            own.squares + records * records,
        )

    def model(self, own: NodeSums, neighbours: NodeSums | None = None) -> MirrorModel:
        """Return the lasso-truncated model of what is known (lines 6 and 7).

        p = theta / scale, with phi_t(w) = scale |w|^2 / 2 and
        scale = clip * (clip + deviation + ridge * clip * count). The last term makes the steps of
        a descent whose batches grow with `count` shrink as they must: w tends to the minimum of
        the mean hinge loss plus ridge |w|^2 / 2. The others keep a model of few records, or of
        mere noise, small.

        The noise in theta is at most that of one release times count / sqrt(squares), because
        mixing multiplies the noise of a release by a factor below 1, and its square in `squares`
        by that factor once. Mixing usually leaves less: as most features are irrelevant, the
        median of |theta| tells how much. Looking costs nothing, since theta is public.
        """
        sums = with_neighbours(own, neighbours)
        theta = sums.theta
        deviation = 0.0
        if self.epsilon is not None and sums.squares > 0:
            deviation = min(
                float(np.median(np.abs(theta))) / _MEDIAN,
                self.scale * sums.count / math.sqrt(sums.squares),
            )
        scale = self.clip * (self.clip + deviation + self.ridge * self.clip * max(sums.count, 0.0))
        kept = np.maximum(np.abs(theta) - self.truncation * deviation, 0.0)
        weights = (np.copysign(kept, theta) / scale).astype(np.float32)
        return MirrorModel(own, neighbours, weights, deviation, reach=self._reach(weights))

    def _reach(self, weights: npt.NDArray[np.float32]) -> float:
        """Return the margin from which on the private choice takes a candidate for the best.

        Half of the 1 that hinge loss asks for, or, for a model of few records, half of what a
        record with nothing but the strongest feature would have. Measured: with 1 in place of a
        half the choice among ten is right in 73% instead of 83% at epsilon 8.
        """
        strongest = self.clip * float(np.abs(weights).max(initial=0.0))
        return 0.5 * (min(1.0, strongest) or 1.0)


def _named(block: int) -> bytes:
    return _NAMED + block.to_bytes(2, "little")


_FIRST = _named(0)


def _start_of(block: bytes) -> int:
    """Return where a block's numbers begin in a release.

    An older layout has the count in a block by itself, and 1,024 features in each of the others.
    Whoever is in such sums has paid for them, and a worker that is about to be replaced may still
    add to them.
    """
    if block.startswith(_NAMED):
        return SLICE * int.from_bytes(block[len(_NAMED) :], "little")
    return 0 if block == b"count" else 1 + 1_024 * int.from_bytes(block, "little")
