"""Sparse mirror descent over data centres, as served: noisy running sums, mixed by neighbours.

After C. Li, P. Zhou, Y. Zhou, K. Bian, T. Jiang, S. Rahardja: Distributed Private Online Learning
for Social Big Data Computing over Data Center Networks, 2016. The nodes, the hinge loss, the
mixing and the lasso are theirs. The noise is not: theirs drowns every model of a useful size, and
their predictions use a parameter that has none (`mirror_descent_published` is their own reading).

| paper's symbol | name here | range |
|---|---|---|
| n | `dimension` | 1 .. 2^24 |
| x | `rows`, one a record, clipped to an L2 norm of `clip` | sparse |
| y | `labels`: a reward of 1 is +1, of 0 is -1 | -1, +1 |
| g = -y x [margin < 1] | `gradients` returns -g, summed, in grid steps | integers |
| theta^i | `theta`: the node's mixed, noisy sum of -g | R^n |
| t | `count`: records behind theta, a node's share | >= 0 |
| phi_t | (scale_t / 2) * |w|^2, see `model` | |
| lambda_t | `truncation` deviations of theta's irrelevant coordinates | >= 0 |
| w | `Model.weights` | R^n, mostly 0 |
| epsilon | `epsilon`, with `delta`, of one record | (0, 50], (0, 1) |
| a_ij | `discreet.families.mirror_descent.mixing` | doubly stochastic |

Guarantee card
- Who is protected: whoever gave a record (the features of one recommended item, and whether it was
  liked), against everybody who sees models, broadcasts and recommendations, of any node, for ever.
- Neighbouring inputs: streams of records that differ in one record of one node, in any way. That a
  record came, when, and at which node, is public.
- Mechanism: every node sums its records' clipped gradients; the sum is released at broadcasts
  through a continual sum (`privacy.continual.SquareRoot`, in `Epochs` of `length` broadcasts).
- Sensitivity: 2 * `clip` in L2, whatever the dimension: both records' gradients are integer
  vectors of norm at most `clip`, exactly (`sparse.on_grid`).
- Cost: one `event` a record, whether it is ever broadcast or not, charged before it is added. A
  client pays for each of its records.
- Assumptions: noise from the operating system. A state of the sum is continued once only. Not
  covered: what an answer tells about the features that its own request contained, which are ranked
  by a public model without noise; the time that an answer takes; who reads a node's store.

Why it holds. A record's gradient is evaluated at the model that the node had published by then.
That model is a function of earlier releases (all nodes'), so the record changes the stream of its
own node at the one step whose batch it is in, by at most 2 * `clip`, and changes other records'
gradients only through releases: this is the adaptive setting in which `SquareRoot` proves the cost
of the whole stream. Mixing, truncating, ranking and everything that other nodes do with a
broadcast is post-processing. So is a node's own prediction: it never looks at its exact sums.

Coordinates may be released in slices, each by a sum of its own. Slices have the same noise; a
record v enters slice s at some step t_s with its part v_s, and moves what is released by
sum_s |C e_(t_s)|^2 |v_s|^2 <= (largest column of C)^2 |v|^2, as if there were one.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discreet.families.mirror_descent.sparse import MOST_BOUND, MOST_DIMENSION, STEPS, GridRows, SparseRows
from discreet.errors import InvalidArgument
from discreet.privacy.calibration import zcdp_gaussian_scale
from discreet.privacy.continual.contract import ContinualSum
from discreet.privacy.continual.epochs import Epochs
from discreet.privacy.continual.square_root import SquareRoot
from discreet.privacy.events import ExactRelease, GaussianRelease, PrivacyEvent

Floats = npt.NDArray[np.float64]
Weights = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int64]

GRANULARITY = 1 / STEPS

MOST_LENGTH = 256

_MEDIAN = 0.6744897501960817
"""The median of |z| for a standard normal z."""


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """What a node has published and predicts from. Nothing in it is private.

    `deviation` is what was taken for theta's noise; `count` and the rest say how it was made.
    """

    weights: Weights
    deviation: float = 0.0
    count: float = 0.0
    nonzeros: int = field(init=False)
    """How many features count. Known once, for nobody should look at a million at every request."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "nonzeros", int(np.count_nonzero(self.weights)))

    def margins(self, rows: SparseRows) -> Floats:
        """Return w.x of every row: work for the entries of the rows, whatever the dimension."""
        return rows.sums(self.weights[rows.indices] * rows.values)


@dataclass(frozen=True, kw_only=True)
class MirrorDescent:
    """A node's learner. Pure: what it knows is passed in and returned."""

    dimension: int
    epsilon: float = 1.0
    delta: float = 1e-6
    mode: Literal["record", "none"] = "record"
    clip: float = 1.0
    truncation: float = 2.0
    ridge: float = 1e-3
    length: int = 16
    multiplier: float = field(init=False)
    """Noise divided by sensitivity, for the whole stream; 0 in mode none."""

    def __post_init__(self) -> None:
        if not 1 <= self.dimension <= MOST_DIMENSION:
            raise InvalidArgument("dimension", f"must be from 1 to {MOST_DIMENSION}")
        if not 2.0**-10 <= self.clip <= MOST_BOUND:
            raise InvalidArgument("clip", f"must be from 2**-10 to {MOST_BOUND:g}")
        if not 0 <= self.truncation <= 100:
            raise InvalidArgument("truncation", "must be from 0 to 100 deviations")
        if not 0 < self.ridge <= 1:
            raise InvalidArgument("ridge", "must be above 0 and at most 1")
        if not 1 <= self.length <= MOST_LENGTH:
            raise InvalidArgument("length", f"must be from 1 to {MOST_LENGTH} broadcasts")
        if self.mode not in ("record", "none"):
            raise InvalidArgument("mode", "must be 'record' or 'none'")
        if not (math.isfinite(self.epsilon) and 0 < self.epsilon <= 50):
            raise InvalidArgument("epsilon", "must be above 0 and at most 50")
        private = self.mode == "record"
        scale = (
            zcdp_gaussian_scale(epsilon=self.epsilon, delta=self.delta, sensitivity=1.0)
            if private
            else 0.0
        )
        object.__setattr__(self, "multiplier", scale)

    @cached_property
    def event(self) -> PrivacyEvent:
        """What one record costs: everything that is ever released about it."""
        if self.mode == "none":
            return ExactRelease()
        return GaussianRelease(scale=self.multiplier, sensitivity=1.0)

    def sums(self, dimension: int | None = None) -> ContinualSum[Any]:
        """Return the continual sum for all coordinates, or for a slice of so many."""
        if self.mode == "none":
            raise InvalidArgument("mode", "none has no noise: release the exact sums")
        return Epochs(
            family=SquareRoot,
            length=self.length,
            multiplier=self.multiplier,
            dimension=dimension or self.dimension,
            step_sensitivity=2 * self.clip,
            granularity=GRANULARITY,
        )

    def start(self) -> Model:
        """Return the model before the first broadcast: it prefers nothing."""
        return Model(np.zeros(self.dimension, dtype=np.float32))

    def gradients(
        self, *, model: Model, rows: GridRows, labels: Labels
    ) -> tuple[npt.NDArray[np.bool_], Integers]:
        """Return which records the model does not get right by a margin, and their y x in steps.

        The second has an entry for every entry of `rows`, 0 where a record teaches nothing. Line 9
        and the subgradient of line 10.
        """
        if not np.isin(labels, (-1, 1)).all():
            raise InvalidArgument("labels", "must be -1 or 1")
        teaches = labels * model.margins(rows) < 1
        return teaches, rows.steps * (labels * teaches)[rows.row_of]

    def summed(self, *, rows: GridRows, amounts: Integers) -> Integers:
        """Return the amounts added up by feature."""
        # Sums of integers below 2**53 in all are exact in doubles, whatever their order.
        if float(np.abs(amounts).sum(dtype=np.float64)) >= 2.0**53:
            raise InvalidArgument("rows", "must be fewer at a time")
        return np.bincount(rows.indices, weights=amounts, minlength=self.dimension).astype(np.int64)

    def model(self, *, theta: Floats, count: float) -> Model:
        """Return the lasso-truncated model (lines 6 and 7).

        p = theta / scale, with phi_t(w) = scale |w|^2 / 2 and
        scale = clip * (clip + deviation + ridge * clip * count). The last term makes the steps of
        a descent whose batches grow with `count` shrink as they must: w tends to the minimum of
        the mean hinge loss plus ridge |w|^2 / 2. The others keep a model of few records, or of
        mere noise, small.

        The deviation is estimated from theta itself, as the median of |theta| would be for noise:
        most features are irrelevant. So nobody has to know how much noise the mixing has averaged
        away by now, and looking costs nothing: theta is public.
        """
        deviation = float(np.median(np.abs(theta))) / _MEDIAN
        scale = self.clip * (self.clip + deviation + self.ridge * self.clip * count)
        kept = np.maximum(np.abs(theta) - self.truncation * deviation, 0.0)
        weights = (np.copysign(kept, theta) / scale).astype(np.float32)
        return Model(weights, deviation=deviation, count=count)


def label_of(reward: float) -> int:
    """Return the hinge label of a reward in {0, 1}."""
    if reward not in (0, 1):
        raise InvalidArgument("reward", "must be 0 or 1")
    return 1 if reward else -1


def batch_due(*, fresh: int, counted: int, records: int, growth: float) -> bool:
    """Tell whether the records since the last broadcast are worth another.

    Noise is paid per broadcast, so batches grow with what was learned before: at least `records`,
    and at least the share `growth` of the `counted` records of earlier broadcasts.
    """
    return fresh >= max(records, math.ceil(growth * counted))
