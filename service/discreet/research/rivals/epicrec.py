"""The two rivals of the paper's evaluation: other noise for the counts, then the same phase 2.

- Pseudo-LPA: the plain Laplace mechanism. Every category gets the same magnitude, the largest
  number of categories that an item has, divided by epsilon (Dwork, McSherry, Nissim and Smith,
  TCC 2006).
- Pseudo-GS: grouping and smoothing (Kellaris and Papadopoulos, PVLDB 6(5), 2013). Categories of
  similar counts share their average, which is less sensitive than a count, so it needs less noise.
  Which counts are similar is found out on a sample with one category of each item, whose
  sensitivity is 1, at a quarter of epsilon; the rest of epsilon pays for the averages.

Both are epsilon-DP for the same neighbours as the mechanism that they are compared with. For GS:
for every fixed choice of categories for the common items, and each for the one that is added, the
sampled counts differ by one in one place, so a mixture over such choices is (1 / t_1)-DP with
discrete Laplace noise of scale t_1; the group sums differ by at most `widest` in total, so they
are (widest / t_2)-DP; and 1 / t_1 + widest / t_2 <= epsilon. The order, the width and the division
are computed from what is released. The original leaves the split open; the width is taken from the
sample, as the original proposes, by the least estimated error.
"""

from collections.abc import Collection
from enum import Enum
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.families.collaborative.on_device.calibration import (
    CategoryNoise,
    affordable,
    calibrate,
    check_epsilon,
    loss_of,
)
from discreet.families.collaborative.on_device.catalogue import (
    Catalogue,
    Concerns,
    Flags,
    Floats,
    Integers,
    scope_of,
)
from discreet.families.collaborative.on_device.perturbation import tally_history, with_noise
from discreet.privacy.charges import decimal
from discreet.privacy.noise import NoiseSource
from discreet.privacy.numeric import LaplaceMechanism
from discreet.privacy.pricing import float_above

SHARE_FOR_ORDER = Fraction(1, 4)


class Rival(Enum):
    """Who hides the counts."""

    OURS = "ours"
    LPA = "lpa"
    GS = "gs"


def noisy_counts(
    *,
    method: Rival,
    history: Collection[str],
    catalogue: Catalogue,
    concerns: Concerns,
    epsilon: float,
    noise: NoiseSource,
) -> Floats:
    """Return the counts of a history's protected items as one of the methods hides them."""
    check_epsilon(epsilon)
    scope = scope_of(catalogue, concerns)
    tally = tally_history(catalogue, history)[scope.protected]
    if method is Rival.GS:
        return _smoothed(tally, scope.incidence > 0, decimal(epsilon), noise)
    choose = calibrate if method is Rival.OURS else plain
    calibration = choose(catalogue=catalogue, epsilon=epsilon, concerns=concerns)
    counts = tally @ scope.incidence.astype(np.int64)
    return with_noise(counts, calibration, noise).astype(np.float64)


def plain(*, catalogue: Catalogue, epsilon: float, concerns: Concerns) -> CategoryNoise:
    """Return the magnitudes of the plain Laplace mechanism: the same for all categories."""
    check_epsilon(epsilon)
    return _plain(catalogue, epsilon, concerns)


@lru_cache(maxsize=64)
def _plain(catalogue: Catalogue, epsilon: float, concerns: Concerns) -> CategoryNoise:
    scope = scope_of(catalogue, concerns)
    widest = int(scope.rows.sum(axis=1).max(initial=0))
    same = np.full(len(scope.counted), widest / epsilon)
    magnitudes = affordable(scope.rows, same, decimal(epsilon))
    return CategoryNoise(
        categories=tuple(catalogue.categories[at] for at in scope.counted),
        magnitudes=tuple(magnitudes.tolist()),
        epsilon=epsilon,
        loss=loss_of(scope.rows, magnitudes),
        gap=float("inf"),
    )


def _smoothed(tally: Integers, patterns: Flags, epsilon: Fraction, noise: NoiseSource) -> Floats:
    """Return group averages in place of counts: grouping and smoothing."""
    widest = int(patterns.sum(axis=1).max(initial=1))
    for_order = epsilon * SHARE_FOR_ORDER
    rough = _rough_counts(tally, patterns, for_order, noise)
    scale = float_above(widest / (epsilon - for_order))
    order = np.argsort(rough, kind="stable")
    width = _width(rough[order], scale)
    sums = tally @ patterns.astype(np.int64)
    smoothed = np.empty(len(order))
    averages = LaplaceMechanism(scale=scale, sensitivity=float(widest), granularity=1.0)
    for start in range(0, len(order), width):
        group = order[start : start + width]
        smoothed[group] = averages.release(int(sums[group].sum()), noise).value / len(group)
    return smoothed


def _rough_counts(
    tally: Integers, patterns: Flags, epsilon: Fraction, noise: NoiseSource
) -> Floats:
    """Return counts of one category of each item, with noise, blown up to the size of all."""
    # Any choice of categories will do for the proof, so the choice needs no noise of its own kind.
    rng = np.random.default_rng(noise.bits(128))
    sampled = np.zeros(patterns.shape[1], dtype=np.int64)
    for row, count in zip(patterns, tally, strict=True):
        if count:
            np.add.at(sampled, rng.choice(np.flatnonzero(row), int(count)), 1)
    single = LaplaceMechanism(scale=float_above(1 / epsilon), sensitivity=1.0, granularity=1.0)
    noisy = np.array([single.release(int(count), noise).value for count in sampled])
    blow_up = float(patterns.sum(axis=1).mean())  # public: of the catalogue's patterns
    rough: Floats = np.maximum(noisy, 0.0) * blow_up
    return rough


def _width(ordered: Floats, scale: float) -> int:
    """Return the group size with the least estimated error: of smoothing, and of the noise."""

    def error(width: int) -> float:
        total = 0.0
        for start in range(0, len(ordered), width):
            group = ordered[start : start + width]
            total += float(np.abs(group - group.mean()).sum()) + scale  # len * scale / len
        return total

    return min(range(1, len(ordered) + 1), key=error)
