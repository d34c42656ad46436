"""One record of sparse mirror descent: how far it moves a release, and what it is charged.

Read off the shipped code in exact integers, for records that clipping may get wrong: tiny, huge, on
the bound and just beside it. Replacing a record turns its gradient round at the worst; one that
comes or goes takes its count with it, and may cost half as much and no more (`closed_loop.coupled`
says why).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from discreet.audit.claims import AuditRun, Claim, Finding, Method, PlantedFault
from discreet.audit.enclosures import float_above
from discreet.audit.mechanisms.calibrations import summed_delta
from discreet.audit.prices import rho_charged
from discreet.families.mirror_descent.learning import MirrorLearner
from discreet.families.mirror_descent.model import blank_sums
from discreet.families.mirror_descent.sparse import STEPS, GridRows, SparseRows, on_grid
from discreet.privacy.noise import Integers

_LEARNER = MirrorLearner(dimension=40, epsilon=1.0, delta=1e-6)

OnGrid = Callable[[SparseRows, float], GridRows]
"""(records, clip) -> the records as they enter the sums."""


def hard_records(count: int) -> SparseRows:
    """Return records that clipping may get wrong; the same in every run."""
    rng = np.random.default_rng(count)
    lengths = rng.integers(1, 41, count)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.concatenate([np.sort(rng.permutation(40)[:length]) for length in lengths])
    values = rng.uniform(-1, 1, len(indices)) * rng.choice([1e-7, 0.1, 1.0, 1e6], len(indices))
    rows = SparseRows(offsets, indices, np.clip(values, -1e6, 1e6))
    size = np.sqrt(rows.sums(rows.values**2))
    beside = 1 + rng.choice([-(2.0**-41), -(2.0**-45), 0.0, 2.0**-52, 2.0**-41], count)
    scale = np.where(rng.random(count) < 0.5, beside / np.maximum(size, 1e-300), 1.0)
    equal = np.full(len(indices), 1.0) / np.sqrt(rows.lengths)[rows.row_of]
    flat = rng.random(count)[rows.row_of] < 0.25
    return SparseRows(offsets, indices, np.where(flat, equal, rows.values * scale[rows.row_of]))


def shipped(rows: SparseRows, clip: float) -> GridRows:
    """Clip and round as records are."""
    return on_grid(rows, bound=clip)


def longest(onto: OnGrid, learner: MirrorLearner, count: int) -> int:
    """Return the largest squared length of a record's gradient, in steps."""
    rows = onto(hard_records(count), learner.clip)
    blank = learner.model(blank_sums(learner.dimension))
    amounts: Integers = learner.gradients(blank, rows, np.ones(len(rows)))
    return max(
        sum(int(step) ** 2 for step in amounts[start:stop])
        for start, stop in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)
    )


def examine_records(onto: OnGrid, *, learner: MirrorLearner, count: int) -> Finding:
    """Compare the rho of turning a record round, and twice that of adding one, with the charge."""
    gradient = longest(onto, learner, count)
    scale = Fraction(learner.scale * STEPS)
    turned = 4 * gradient / (2 * scale**2)
    added = (gradient + learner.count_steps**2) / (2 * scale**2)
    measured = max(Fraction(turned), 2 * Fraction(added))
    claimed = rho_charged(learner.event)
    return Finding(float(claimed), float_above(measured), holds=measured <= claimed)


def examine_promise(learner: MirrorLearner) -> Finding:
    """Compare the delta that one record's noise has at its epsilon with the promise."""
    assert learner.epsilon is not None
    multiplier = learner.scale / (2 * learner.clip)
    measured = summed_delta(multiplier=multiplier, epsilon=learner.epsilon)
    return Finding(learner.delta, measured, holds=measured <= learner.delta)


def claims() -> Iterator[Claim]:
    """Yield the claims about one record."""
    for clip in (1.0, 0.3):

        def records(run: AuditRun, clip: float = clip) -> Finding:
            size = run.size(quick=2_000, full=50_000)
            return examine_records(shipped, learner=replace(_LEARNER, clip=clip), count=size)

        yield Claim(f"mirror-descent, a record clipped to {clip:g}: rho", Method.EXACT, records)
    for epsilon in (0.1, 1.0, 8.0):

        def promise(_: AuditRun, epsilon: float = epsilon) -> Finding:
            return examine_promise(replace(_LEARNER, epsilon=epsilon))

        yield Claim(
            f"mirror-descent, noise of a record at ({epsilon:g}, 1e-06): delta",
            Method.EXACT,
            promise,
        )


def _to_nearest(rows: SparseRows, clip: float) -> GridRows:
    """The nearest grid point, which may lie outside the ball."""
    length = np.sqrt(rows.sums(rows.values**2))
    factors = np.minimum(1.0, clip / np.maximum(length, 1e-300))
    values = np.rint(rows.values * factors[rows.row_of] * STEPS) / STEPS
    return GridRows(rows.offsets, rows.indices, values)


def _by_coordinate(rows: SparseRows, clip: float) -> GridRows:
    """Every value within the bound, not the vector."""
    values = np.trunc(np.clip(rows.values, -clip, clip) * STEPS) / STEPS
    return GridRows(rows.offsets, rows.indices, values)


class LargeCount(MirrorLearner):
    """Counts records in units in which adding one costs as much as turning one round."""

    @property
    def count_steps(self) -> int:
        """Return the steps of the count."""
        return math.floor(math.sqrt(3) * self.clip * STEPS)


class HalfSensitivity(MirrorLearner):
    """Noise for records that vanish, not turn round."""

    @property
    def scale(self) -> float:
        """Return half the deviation."""
        return super().scale / 2


def faults() -> Iterator[PlantedFault]:
    """Yield mistakes about one record."""
    large = LargeCount(dimension=40, epsilon=1.0, delta=1e-6)
    half = HalfSensitivity(dimension=40, epsilon=1.0, delta=1e-6)
    for name, onto, learner in (
        ("rounded to the nearest grid point", _to_nearest, _LEARNER),
        ("clipped coordinate by coordinate", _by_coordinate, _LEARNER),
        ("counted so that coming costs as much as turning round", shipped, large),
        ("with noise for one that vanishes", shipped, half),
    ):

        def look(_: AuditRun, onto: OnGrid = onto, learner: MirrorLearner = learner) -> Finding:
            return examine_records(onto, learner=learner, count=2_000)

        yield PlantedFault(f"mirror-descent, a record: {name}", look)
