"""S-PBQ and M-PBQ line by line: an epsilon from words, for comparison; never on a device.

Shen and Jin (CCS 2016), Algorithm 2 and program 5.4. For the overall control this is what a hub
does (`discreet.families.collaborative.on_device.quantification`). By category it is not: the paper
counts hidden items in their other categories, holds the "all" categories to their exact counts,
and has their items in the solution. Here the "all" items are those of the invented history.

The rule that ends a search is printed twice, with opposite signs. `text` is the sentence: stop
when an improvement is no smaller than the one before. `line 7` is that line of Algorithm 2: stop
when the error's second difference is not negative.
"""

from typing import Literal

import numpy as np

from discreet.families.collaborative.on_device.calibration import calibrate
from discreet.families.collaborative.on_device.catalogue import (
    Catalogue,
    Concerns,
    Level,
    scope_of,
)
from discreet.families.collaborative.on_device.quantification import REPEATS, STEP, unit_laplace
from discreet.research.published.epicrec import counting_of, relaxed

Rule = Literal["text", "line 7"]

_LONGEST = 50


def quantified(
    *,
    catalogue: Catalogue,
    concerns: Concerns,
    typical: int,
    rng: np.random.Generator,
    rule: Rule = "text",
    repeats: int = REPEATS,
) -> float:
    """Return the mean of some searches: the paper's epsilon for these concerns."""
    found = [_search(catalogue, concerns, typical, rng, rule) for _ in range(repeats)]
    return round(float(np.mean(found)), 2)


def _search(
    catalogue: Catalogue, concerns: Concerns, typical: int, rng: np.random.Generator, rule: Rule
) -> float:
    scope = scope_of(catalogue, concerns)
    counting = counting_of(catalogue, concerns)
    counted = scope_of(catalogue, counting).counted
    calibration = calibrate(catalogue=catalogue, epsilon=1.0, concerns=counting)
    tally = rng.multivariate_hypergeometric(catalogue.sizes, typical)
    counts = (tally @ catalogue.incidence).astype(np.float64)  # RandA
    unit_noise = unit_laplace(rng, len(counted)) * np.array(calibration.magnitudes)  # S z'
    opened = tally[scope.open] @ catalogue.incidence[scope.open]
    incidence = catalogue.incidence[scope.protected]
    released = np.array([level is not Level.NO for level in catalogue.levels(concerns)])
    errors: list[float] = []
    for at in range(1, _LONGEST + 1):
        inverse = 1 / (at * STEP)  # epsilon_I
        wanted = counts.copy()
        wanted[counted] += inverse * unit_noise
        reals = relaxed(catalogue, concerns, tally, wanted)
        rounded = rng.binomial(scope.sizes, np.clip(reals / scope.sizes, 0.0, 1.0))
        misfit = np.abs(rounded @ incidence + opened - wanted)[released]
        errors.append(float(misfit.sum()) / len(catalogue.categories) + inverse)
        if len(errors) >= 3:
            before, latest = errors[-3] - errors[-2], errors[-2] - errors[-1]
            if latest >= before if rule == "text" else latest <= before:
                return (at - 1) * STEP
    return _LONGEST * STEP
