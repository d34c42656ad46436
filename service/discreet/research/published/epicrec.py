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

Many relaxed solutions fit the noisy counts equally well, and the paper does not say which one its
solver found. The rounding errs by the fractions that there are, so both ends are here: the *even*
one, which treats interchangeable items alike, as interior-point methods do, and a *sparse* one, a
corner with hardly more fractions than categories, as active-set methods find.
"""

from collections.abc import Collection
from functools import lru_cache

import numpy as np
from scipy.optimize import linprog

from discreet.families.collaborative.on_device.calibration import calibrate
from discreet.families.collaborative.on_device.catalogue import (
    Catalogue,
    Concerns,
    Floats,
    Integers,
    Level,
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
    counting = counting_of(catalogue, concerns)
    counts = tally_history(catalogue, history) @ catalogue.incidence.astype(np.int64)
    calibration = calibrate(catalogue=catalogue, epsilon=epsilon, concerns=counting)
    noisy = with_noise(counts[scope_of(catalogue, counting).counted], calibration, noise)
    drawn = phase_two(
        history=history,
        catalogue=catalogue,
        concerns=concerns,
        noisy=noisy.astype(np.float64),
        seed=noise.bits(128),
    )
    exact = any(level is Level.ALL for level in catalogue.levels(concerns))
    return ProfileRelease(
        drawn=drawn,
        open=open_items(catalogue, concerns, history),
        noisy=dict(zip(calibration.categories, map(int, noisy), strict=True)),
        epsilon=epsilon,
        event=ExactRelease() if exact else PureRelease(epsilon, NAME),
    )


@lru_cache(maxsize=64)
def counting_of(catalogue: Catalogue, concerns: Concerns) -> Concerns:
    """Return the concerns under which the paper counts: hidden items are counted too.

    So the noise has to cover them: program 5.2 has a row for each.
    """
    levels = zip(catalogue.categories, catalogue.levels(concerns), strict=True)
    return Concerns.choose(
        {name: level if level is Level.PERTURBED else Level.ALL for name, level in levels}
    )


def open_items(
    catalogue: Catalogue, concerns: Concerns, history: Collection[str]
) -> frozenset[str]:
    """Return the items of the history that are sent as they are: d_r^a."""
    groups = set(scope_of(catalogue, concerns).open.tolist())
    return frozenset(item for item in history if catalogue.group_of[item] in groups)


def phase_two(
    *,
    history: Collection[str],
    catalogue: Catalogue,
    concerns: Concerns,
    noisy: Floats,
    seed: int,
    sparse: bool = False,
) -> frozenset[str]:
    """Return the protected items that lines 5 to 10 draw for the noisy counts.

    `noisy` are those of the "perturbed" categories, whoever added the noise. The exact counts of
    the "all" categories are taken from the history: that is the leak.
    """
    rng = np.random.default_rng(seed)
    scope = scope_of(catalogue, concerns)
    tally = tally_history(catalogue, history)
    wanted: Floats = (tally @ catalogue.incidence.astype(np.int64)).astype(np.float64)
    wanted[scope_of(catalogue, counting_of(catalogue, concerns)).counted] = noisy
    reals = relaxed(catalogue, concerns, tally, wanted)
    if sparse:
        reals = _corner(catalogue, concerns, reals, rng)
    items = [item for at in scope.protected for item in catalogue.members[at]]
    group = np.repeat(np.arange(len(scope.protected)), scope.sizes)
    if sparse:
        # As many whole items of a group as there are, and one fraction.
        shuffled = np.lexsort((rng.random(len(items)), group))
        places = np.arange(len(items)) - np.repeat(np.cumsum(scope.sizes), scope.sizes)
        shares = np.empty(len(items))
        shares[shuffled] = reals[group] - (places + scope.sizes[group])
    else:
        shares = (reals / scope.sizes)[group]
    return frozenset(items[at] for at in np.flatnonzero(rng.random(len(items)) < shares))


def relaxed(catalogue: Catalogue, concerns: Concerns, tally: Integers, wanted: Floats) -> Floats:
    """Solve program 5.3 over the reals; return how many items of each protected group."""
    weights = _weights(catalogue, concerns)
    opened = scope_of(catalogue, concerns).open
    missing = wanted - tally[opened] @ catalogue.incidence[opened].astype(np.int64)
    reals, _ = _weighted(catalogue, concerns).relaxed(missing * weights)
    return reals


def _corner(
    catalogue: Catalogue, concerns: Concerns, reals: Floats, rng: np.random.Generator
) -> Floats:
    """Return a random corner of the solutions that fit as well as this one."""
    scope = scope_of(catalogue, concerns)
    incidence = catalogue.incidence[scope.protected].astype(np.float64)
    incidence = incidence[:, _weights(catalogue, concerns) > 0]
    found = linprog(
        rng.random(len(reals)),
        A_eq=incidence.T,
        b_eq=reals @ incidence,
        bounds=np.stack([np.zeros(len(reals)), scope.sizes], axis=1),
        method="highs-ds",
    )
    # A point that lies on the boundary but for rounding may have no neighbour that fits: it stays.
    corner: Floats = np.clip(found.x, 0.0, scope.sizes) if found.success else reals
    return corner


@lru_cache(maxsize=64)
def _weighted(catalogue: Catalogue, concerns: Concerns) -> Sanitiser:
    scope = scope_of(catalogue, concerns)
    incidence = catalogue.incidence[scope.protected].astype(np.float64)
    return Sanitiser.of(incidence * _weights(catalogue, concerns), scope.sizes)


def _weights(catalogue: Catalogue, concerns: Concerns) -> Floats:
    """Return how much each category's misfit weighs: what must be met exactly, a thousandfold."""
    exact = [level is Level.ALL for level in catalogue.levels(concerns)]
    weights: Floats = np.where(exact, np.sqrt(_EQUALITY), 0.0)
    weights[scope_of(catalogue, counting_of(catalogue, concerns)).counted] = 1.0
    return weights
