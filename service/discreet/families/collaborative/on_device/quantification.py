"""From words to an epsilon: S-PBQ and M-PBQ, which never look at a history.

After Shen and Jin (CCS 2016), Algorithm 2 and program 5.4. "Perturbed release" is all that a
person says; the algorithm makes an epsilon of it: the smallest beyond which more budget no longer
buys a markedly better profile. It plays with public facts only. Some `typical` items are drawn
from the catalogue in place of a history, noise of the calibrated shape is drawn once, and for
epsilon = step, 2 step, 3 step, ... the counts with that noise, divided by epsilon, are turned into
items again. The error of the outcome plus 1/epsilon falls ever more slowly; where it no longer
does, the search stops. The answer is the mean over ten such searches.

Notes on the paper's text.
- The rule is printed twice with opposite signs. Line 7 of Algorithm 2 stops as soon as the error's
  second difference is not negative, which is so at once: 1/epsilon is convex, and every catalogue
  would get about 0.04. The sentence that explains it stops when an improvement is no smaller than
  the one before. That one is meant, and only it gives values like the published ones.
- Under that rule it is the randomness of the rounding that ends the search: a smooth error would
  never meet it. So the single search scatters widely, and its mean says an order of magnitude. It
  is a sensible default and no more; the person sees the number and may choose another.
- Program 5.4 keeps the person's "all release" items in the solution. They are history, so they do
  not enter here; they are sent as they are, and have no part in the error.

The rounding is the paper's, item by item and independent (Algorithm 1, lines 7 to 10), because the
search depends on it. What is released is rounded better (`sanitisation`).
"""

import math
from dataclasses import dataclass

import numpy as np

from discreet.errors import InvalidArgument
from discreet.families.collaborative.on_device.calibration import calibrate
from discreet.families.collaborative.on_device.catalogue import (
    TYPICAL,
    Catalogue,
    Concerns,
    Floats,
    scope_of,
)
from discreet.families.collaborative.on_device.sanitisation import sanitiser_of

STEP = 0.02
REPEATS = 10

_LONGEST = 50
"""Steps of a search, so that epsilon is at most 1 with the paper's step."""

_SEED = 20161024


@dataclass(frozen=True, slots=True)
class Quantified:
    """The epsilon, and those of the single searches that it is the mean of."""

    epsilon: float
    searches: tuple[float, ...]


def quantify(
    *, catalogue: Catalogue, concerns: Concerns, typical: int = TYPICAL, step: float = STEP
) -> float:
    """Return the epsilon for these concerns, or 0 where nothing is released with noise.

    The same catalogue, concerns and `typical` always give the same answer.
    """
    rng = np.random.default_rng(_SEED)
    return search(
        catalogue=catalogue, concerns=concerns, typical=typical, step=step, rng=rng
    ).epsilon


def search(
    *,
    catalogue: Catalogue,
    concerns: Concerns,
    typical: int,
    rng: np.random.Generator,
    step: float = STEP,
    repeats: int = REPEATS,
) -> Quantified:
    """Search `repeats` times with this randomness, which protects nobody and need not."""
    if not 1 <= typical <= len(catalogue.items):
        raise InvalidArgument("typical", "must be from 1 to the number of items")
    if not 0 < step <= 1:
        raise InvalidArgument("step", "must be above 0 and at most 1")
    if repeats < 1:
        raise InvalidArgument("repeats", "must be at least 1")
    if not len(scope_of(catalogue, concerns).counted):
        return Quantified(0.0, ())
    found = tuple(_search_once(catalogue, concerns, typical, step, rng) for _ in range(repeats))
    # A person is shown this number: two digits of it mean something.
    return Quantified(round(sum(found) / repeats, 2) or step, found)


def _search_once(
    catalogue: Catalogue, concerns: Concerns, typical: int, step: float, rng: np.random.Generator
) -> float:
    scope = scope_of(catalogue, concerns)
    sanitiser = sanitiser_of(catalogue, concerns)
    magnitudes = np.array(calibrate(catalogue=catalogue, epsilon=1.0, concerns=concerns).magnitudes)
    # RandA: a history drawn from the catalogue, without any person's.
    tally = rng.multivariate_hypergeometric(catalogue.sizes, typical)
    counts = tally[scope.protected] @ scope.incidence
    unit_noise = unit_laplace(rng, len(magnitudes)) * magnitudes  # S z'
    errors: list[float] = []
    for at in range(1, _LONGEST + 1):
        inverse = 1 / (at * step)  # epsilon_I
        wanted = counts + inverse * unit_noise
        reals, _ = sanitiser.relaxed(wanted)
        rounded = rng.binomial(scope.sizes, np.clip(reals / scope.sizes, 0.0, 1.0))
        misfit = np.abs(rounded @ scope.incidence - wanted)
        errors.append(float(misfit.sum()) / len(catalogue.categories) + inverse)
        if len(errors) >= 3 and errors[-2] - errors[-1] >= errors[-3] - errors[-2]:
            return (at - 1) * step
    return _LONGEST * step


def unit_laplace(rng: np.random.Generator, size: int) -> Floats:
    """Return draws with density exp(-|x|) / 2, on a grid of thousandths."""
    success = -math.expm1(-1 / 1_000)
    drawn: Floats = (rng.geometric(success, size) - rng.geometric(success, size)) / 1_000
    return drawn
