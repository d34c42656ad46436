"""S-DPDP and M-DPDP line by line, for simulations and comparison; never on a device.

Shen and Jin (CCS 2016), Algorithm 1 and programs 5.2 and 5.3. What differs from what is served
(`discreet.families.collaborative.on_device.perturbation`):

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

from discreet.families.collaborative.on_device.calibration import calibrate
from discreet.families.collaborative.on_device.catalogue import (
    Catalogue,
    Concerns,
    Floats,
    Integers,
    Level,
    ReleaseScope,
    scope_of,
)
from discreet.families.collaborative.on_device.perturbation import (
    NAME,
    ProfileRelease,
    perturb,
    tally_history,
    with_noise,
)
from discreet.families.collaborative.on_device.sanitisation import Sanitiser
from discreet.privacy.events import ExactRelease, PureRelease
from discreet.privacy.noise import NoiseSource

_EQUALITY = 1_000.0


def published(
    *,
    history: Collection[str],
    catalogue: Catalogue,
    concerns: Concerns,
    epsilon: float,
    noise: NoiseSource,
) -> ProfileRelease:
    """Return what the paper's algorithm sends: S-DPDP for the overall control, else M-DPDP."""
    scope = scope_of(catalogue, concerns)
    if not len(scope.counted):
        # "No" and "all" send nothing and everything, in the paper as here.
        return perturb(
            history=history, catalogue=catalogue, concerns=concerns, epsilon=epsilon, noise=noise
        )
    tally = tally_history(catalogue, history)
    counts = tally @ catalogue.incidence.astype(np.int64)
    levels = catalogue.levels(concerns)
    # Hidden items are counted, so the noise has to cover them: program 5.2 has a row for each.
    counting = Concerns.choose(
        {
            name: Level.PERTURBED if level is Level.PERTURBED else Level.ALL
            for name, level in zip(catalogue.categories, levels, strict=True)
        }
    )
    counted = scope_of(catalogue, counting).counted
    calibration = calibrate(catalogue=catalogue, epsilon=epsilon, concerns=counting)
    wanted = counts.astype(np.float64)
    noisy = with_noise(counts[counted], calibration, noise)
    wanted[counted] = noisy
    exact = np.array([level is Level.ALL for level in levels])
    missing = wanted - _own(catalogue, tally, scope.open)
    weights = np.where(exact, np.sqrt(_EQUALITY), 0.0)
    weights[counted] = 1.0
    shares = _relaxed(catalogue, scope, missing, weights)
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
    return ProfileRelease(
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


def _relaxed(catalogue: Catalogue, scope: ReleaseScope, missing: Floats, weights: Floats) -> Floats:
    """Solve program 5.3 over the reals; return the share of each protected group's items."""
    incidence = catalogue.incidence[scope.protected].astype(np.float64) * weights
    reals, _ = Sanitiser.of(incidence, scope.sizes).relaxed(missing * weights)
    shares: Floats = reals / scope.sizes
    return shares
