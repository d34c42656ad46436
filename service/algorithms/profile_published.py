"""S-DPDP and M-DPDP line by line, for simulations and comparison; never on a device.

Shen and Jin (CCS 2016), Algorithm 1 and programs 5.2 and 5.3. What differs from what is served
(`profile_perturbation`):

- The relaxed solution is rounded item by item, independently (lines 7 to 10), so that the counts
  scatter around the noisy ones once more.
- M-DPDP counts *all* items of the history in every category that is not "no", hidden ones too.
- M-DPDP demands of the solution that it meets the **exact** count of every "all" category, over
  all items of the history that are in it. That is the leak. Let a protected item be the only one
  in an "all" category: the solution has it if and only if the history has it, and so has what is
  sent, with certainty. Theorem 4 claims epsilon; no finite one holds. The event says so.

The noise is discrete, as everywhere here; the paper's is continuous. Equalities are held by
weighing their residuals a thousandfold.
"""

from collections.abc import Collection

import numpy as np

from service.algorithms.profile_calibration import calibrate
from service.algorithms.profile_catalogue import (
    Catalogue,
    Concerns,
    Flags,
    Floats,
    Integers,
    Level,
    scope_of,
)
from service.algorithms.profile_perturbation import (
    NAME,
    Release,
    perturb,
    tally_history,
    with_noise,
)
from service.algorithms.profile_sanitisation import Sanitiser
from service.privacy.events import ExactRelease, PureRelease
from service.privacy.noise import NoiseSource

_EQUALITY = 1_000.0


def published(
    *,
    history: Collection[str],
    catalogue: Catalogue,
    concerns: Concerns,
    epsilon: float,
    noise: NoiseSource,
) -> Release:
    """Return what the paper's algorithm sends: S-DPDP for the overall control, else M-DPDP."""
    scope = scope_of(catalogue, concerns)
    if not len(scope.counted):
        # "No" and "all" send nothing and everything, in the paper as here.
        return perturb(
            history=history, catalogue=catalogue, concerns=concerns, epsilon=epsilon, noise=noise
        )
    tally = tally_history(catalogue, history)
    counts = tally @ catalogue.incidence.astype(np.int64)
    calibration = calibrate(catalogue=catalogue, epsilon=epsilon, concerns=concerns)
    wanted = counts.astype(np.float64)
    noisy = with_noise(counts[scope.counted], calibration, noise)
    wanted[scope.counted] = noisy
    exact = np.array([level is Level.ALL for level in catalogue.levels(concerns)])
    shares = _relaxed(catalogue, concerns, wanted - _own(catalogue, tally, scope.open), exact)
    rng = np.random.default_rng(noise.bits(128))
    open_groups = set(scope.open.tolist())
    opened = frozenset(item for item in history if catalogue.group_of[item] in open_groups)
    drawn = frozenset(
        item
        for group, share in zip(scope.protected, shares, strict=True)
        for item, luck in zip(
            catalogue.members[group], rng.random(len(catalogue.members[group])), strict=True
        )
        if luck < share
    )
    return Release(
        drawn=drawn,
        open=opened,
        noisy=dict(zip(calibration.categories, map(int, noisy), strict=True)),
        epsilon=epsilon,
        event=ExactRelease() if exact.any() else PureRelease(epsilon, NAME),
    )


def _own(catalogue: Catalogue, tally: Integers, groups: Integers) -> Integers:
    """Return the counts of what is sent as it is."""
    counts: Integers = tally[groups] @ catalogue.incidence[groups].astype(np.int64)
    return counts


def _relaxed(catalogue: Catalogue, concerns: Concerns, wanted: Floats, exact: Flags) -> Floats:
    """Solve program 5.3 over the reals; return the share of each protected group's items."""
    scope = scope_of(catalogue, concerns)
    heeded = exact.copy()
    heeded[scope.counted] = True
    weights = np.where(exact, np.sqrt(_EQUALITY), 1.0)[heeded]
    patterns = catalogue.incidence[np.ix_(scope.protected, heeded)]
    incidence = patterns.astype(np.float64) * weights
    reals, _ = Sanitiser.of(incidence, scope.sizes).relaxed(wanted[heeded] * weights)
    shares: Floats = reals / scope.sizes
    return shares
