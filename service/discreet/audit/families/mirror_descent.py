"""The claims of sparse mirror descent as served, for the audit.

Two facts make up its guarantee, and both are read off the shipped code: how far two records can be
apart in what they add to a node's sum, in exact integers; and what a whole stream of broadcasts
costs when one step of it moves that far, in rationals. Both are compared with what the ledger
charges for a record.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from discreet.audit.claims import AuditRun, Claim, Finding, Method, PlantedFault
from discreet.audit.mechanisms.sums import Sums, examine_stream
from discreet.audit.prices import rho_charged
from discreet.families.mirror_descent.descent import GRANULARITY, MirrorDescent
from discreet.families.mirror_descent.sparse import STEPS, GridRows, SparseRows, clip, on_grid
from discreet.privacy.conversions import zcdp_rho
from discreet.research.continual.epochs import Epochs
from discreet.research.continual.square_root import SquareRoot

_LEARNER = MirrorDescent(dimension=40, epsilon=1.0, delta=1e-6, length=3)
_STEPS = 7
"""Two closed epochs of three broadcasts, and one broadcast more."""

OnGrid = Callable[[SparseRows], GridRows]


def hard_records(count: int) -> SparseRows:
    """Return records that clipping may get wrong: tiny, huge, on the bound and just beside it."""
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


def examine_records(onto: OnGrid, *, learner: MirrorDescent, count: int) -> Finding:
    """Compare how far two records can be apart with the sensitivity of a step.

    A record's neighbour may be any other, its own negative included: the largest distance is twice
    the largest norm.
    """
    rows = onto(hard_records(count))
    _, amounts = learner.gradients(
        model=learner.start(), rows=rows, labels=np.ones(len(rows), dtype=np.int64)
    )
    largest = max(
        sum(int(step) ** 2 for step in amounts[start:stop])
        for start, stop in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)
    )
    claimed = Fraction(2 * learner.clip)
    return Finding(
        float(claimed),
        2 * math.sqrt(largest) / STEPS,
        holds=4 * Fraction(largest, STEPS**2) <= claimed**2,
    )


def examine_broadcasts(sums: Sums, *, learner: MirrorDescent) -> Finding:
    """Compare the exact cost of all broadcasts with what is debited for one record."""
    found = examine_stream(sums, steps=_STEPS, values=(-learner.clip, learner.clip))
    charged = rho_charged(learner.event)
    within = math.isfinite(found.measured) and Fraction(found.measured) <= charged
    return Finding(float(charged), found.measured, holds=within)


def examine_price(learner: MirrorDescent) -> Finding:
    """Compare what is debited for one record with what its (epsilon, delta) allows."""
    allowed = zcdp_rho(epsilon=learner.epsilon, delta=learner.delta)
    charged = rho_charged(learner.event)
    return Finding(allowed, float(charged), holds=charged <= Fraction(allowed))


def mirror_checks() -> Iterator[Claim]:
    """Yield the claims."""
    name = "mirror descent"

    def records(run: AuditRun, learner: MirrorDescent) -> Finding:
        size = run.size(quick=2_000, full=50_000)
        return examine_records(partial(on_grid, bound=learner.clip), learner=learner, count=size)

    def broadcasts(_: AuditRun, learner: MirrorDescent) -> Finding:
        return examine_broadcasts(learner.sums(1), learner=learner)

    def price(_: AuditRun, learner: MirrorDescent) -> Finding:
        return examine_price(learner)

    for bound in (1.0, 0.3):
        learner = replace(_LEARNER, clip=bound)
        yield Claim(
            f"{name}: two records, clipped to {bound:g}",
            Method.EXACT,
            partial(records, learner=learner),
        )
        yield Claim(
            f"{name}: all broadcasts, clipped to {bound:g}",
            Method.EXACT,
            partial(broadcasts, learner=learner),
        )
    for epsilon in (0.1, 1.0, 8.0):
        yield Claim(
            f"{name}: price of a record at epsilon {epsilon:g}",
            Method.EXACT,
            partial(price, learner=replace(_LEARNER, epsilon=epsilon)),
        )


def _rounded_to_nearest(rows: SparseRows) -> GridRows:
    """The nearest grid point, which may lie outside the ball."""
    short = clip(rows, bound=1.0)
    return GridRows(short.offsets, short.indices, np.rint(short.values * STEPS) / STEPS)


def _clipped_by_coordinate(rows: SparseRows) -> GridRows:
    """Every value within the bound, not the vector."""
    values = np.trunc(np.clip(rows.values, -1.0, 1.0) * STEPS) / STEPS
    return GridRows(rows.offsets, rows.indices, values)


def _broken(*, step_sensitivity: float = 2.0, share: float = 1.0) -> Sums:
    return Epochs(
        family=SquareRoot,
        length=_LEARNER.length,
        multiplier=_LEARNER.multiplier * share,
        step_sensitivity=step_sensitivity,
        granularity=GRANULARITY,
    )


def mirror_faults() -> Iterator[PlantedFault]:
    """Yield mistakes that a node can make with mechanisms that are right."""
    count = 2_000
    yield PlantedFault(
        "records rounded to the nearest grid point",
        lambda _: examine_records(_rounded_to_nearest, learner=_LEARNER, count=count),
    )
    yield PlantedFault(
        "records clipped coordinate by coordinate",
        lambda _: examine_records(_clipped_by_coordinate, learner=_LEARNER, count=count),
    )
    yield PlantedFault(
        "a record that may vanish, not turn round: half the sensitivity",
        lambda _: examine_broadcasts(_broken(step_sensitivity=1.0), learner=_LEARNER),
    )
    yield PlantedFault(
        "broadcasts with nine tenths of the noise",
        lambda _: examine_broadcasts(_broken(share=0.9), learner=_LEARNER),
    )
