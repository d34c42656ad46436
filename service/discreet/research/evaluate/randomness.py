"""Whether a log's choices were random, and as random as its propensities say.

If row i shows an item with probability p_i, then for every item and every number f of the context
the sum over the rows that show it of f / p_i has the mean of the sum of f over all rows that could
have shown it. With f = 1 this compares propensities with how often items were shown; with f a
number of the context it finds choices that looked at the visitor though the propensities say they
did not. Each such difference, divided by its standard deviation, is nearly normal. The largest of
all is looked at, against the bound that a log as it should be passes with probability 0.999.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from discreet.research.evaluate.logs import EvaluationLog

FALSE_ALARM = 0.001
FLOOR = 0.001
"""Below this propensity one row counts for more than a thousand."""
_FEWEST_SHOWN = 30
"""Items shown less often are not tested: a sum of so few is not normal."""
_TINY = 1e-9
_BLOCK = 8_192


@dataclass(frozen=True, slots=True)
class RandomnessReport:
    """`refusals` say why nothing can be estimated, `warnings` what to mind."""

    refusals: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    largest: float = 0.0
    bound: float = float("inf")


def examine(log: EvaluationLog, *, floor: float = FLOOR) -> RandomnessReport:
    """Test a log's choices."""
    refusals, warnings = [], []
    propensities = log.propensities
    choosable = log.choices(slice(None)) > 1
    certain = float((propensities[choosable] >= 1.0).mean()) if choosable.any() else 1.0
    if certain == 1.0:
        return RandomnessReport(
            (
                "every propensity is 1: what was shown was never random, so the log says nothing "
                "about other choices",
            )
        )
    if certain:
        warnings.append(
            f"{certain:.1%} of the rows have propensity 1: nothing can be learned from them about "
            "other choices"
        )
    low = propensities < floor
    if low.any():
        warnings.append(
            f"{int(low.sum()):,} rows have a propensity below {floor:g} (the smallest is "
            f"{propensities.min():.2g}): single rows weigh a lot"
        )
    shown = np.bincount(log.actions, minlength=len(log.items))
    never = int((shown == 0).sum())
    if never:
        warnings.append(
            f"{never} of {len(log.items)} items were never shown: what they would earn is guessed "
            "to be average, and policies that show them are judged too coarsely"
        )
    largest, tests, item, feature = _largest_deviation(log)
    bound = -NormalDist().inv_cdf(FALSE_ALARM / 2 / tests) if tests else float("inf")
    if largest > bound:
        about = (
            "was shown too often or too rarely for its propensities"
            if feature < 0
            else f"was shown depending on the visitor (number {feature} of the context), more than "
            "its propensities say"
        )
        refusals.append(
            f"the propensities are wrong: {log.items[item]!r} {about} ({largest:.1f} standard "
            f"deviations off; chance alone passes {bound:.1f} once in {1 / FALSE_ALARM:,.0f} logs)"
        )
    return RandomnessReport(tuple(refusals), tuple(warnings), largest, bound)


def _largest_deviation(log: EvaluationLog) -> tuple[float, int, int, int]:
    """Return the largest, how many were looked at, and of which item and feature it is."""
    items = len(log.items)
    width = 1 + log.features(slice(0, 1)).shape[1]
    # Where every candidate is said to be equally likely, variances are known, and items that were
    # hardly shown are tested as well.
    uniform = bool(np.allclose(log.propensities * log.choices(slice(None)), 1.0, rtol=1e-3))
    found, wanted, variance, support = np.zeros((4, width, items))
    for start in range(0, len(log), _BLOCK):
        rows = slice(start, min(start + _BLOCK, len(log)))
        numbers = np.hstack([np.ones((rows.stop - start, 1)), log.features(rows)])
        actions, inverse = log.actions[rows], 1.0 / log.propensities[rows]
        available = log.available(rows).astype(np.float64)
        wanted += numbers.T @ available
        if uniform:
            variance += (numbers**2).T @ (available * (inverse - 1.0)[:, None])
            support += (numbers > 0).T @ (available / inverse[:, None])
        for place in range(width):
            column = numbers[:, place]
            found[place] += np.bincount(actions, column * inverse, items)
            if not uniform:
                spread = column**2 * inverse * (inverse - 1.0)
                variance[place] += np.bincount(actions, spread, items)
                support[place] += np.bincount(actions, column > 0, items)
    if not uniform:
        # Variances are known of what was shown only: where that was little by chance they are too
        # small by as much, and a deviation would look larger than it is.
        variance *= np.maximum(1.0, wanted / np.maximum(found, _TINY))
    tested = (support >= _FEWEST_SHOWN) & (variance > 0)
    if not tested.any():
        return 0.0, 0, 0, -1
    deviations = np.zeros_like(found)
    deviations[tested] = np.abs(found - wanted)[tested] / np.sqrt(variance[tested])
    worst, item = divmod(int(deviations.argmax()), items)
    return float(deviations[worst, item]), int(tested.sum()), item, worst - 1
