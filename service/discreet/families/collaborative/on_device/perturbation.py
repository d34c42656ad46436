"""Profile perturbation on a person's own device: S-DPDP and M-DPDP, with the leak closed.

After Y. Shen, H. Jin: EpicRec: Towards Practical Differentially Private Framework for Personalized
Recommendation. CCS 2016. A history never leaves the device. What leaves is a set of items of the
public catalogue whose category counts are near to the history's, with noise. The server behind it
is an ordinary recommender and need not know.

| paper's symbol | name here | range |
|---|---|---|
| I, n | `catalogue.items` | >= 1 |
| C, c | `catalogue.incidence`, `catalogue.categories` | 0 or 1, >= 1 |
| d_r | `history` | items of the catalogue |
| d_p | `ProfileRelease.items` | items of the catalogue |
| PT, L_n, L_p, L_a | `concerns`: no, perturbed, all | overall or by category |
| d_r^a | `ProfileRelease.open` | items of the history, open ones |
| epsilon | `epsilon` | [1e-6, 50] |
| z(j) | `CategoryNoise.magnitudes` | > 0 |
| NA(j) | `ProfileRelease.noisy` | integers |

Guarantee card
- Who is protected: the person whose history it is, against the server and everybody who sees what
  is sent to it, whatever else they know.
- Neighbouring inputs: two histories that differ in the presence of one item. **The unit is one
  item**: k items together are protected k times less. A hidden item (one of its categories says
  "no") changes nothing at all about what is sent. An open item (all of its categories say "all")
  is sent as it is and is not protected; that is what "all" means.
- Mechanism: exact discrete Laplace noise on the integer count of each perturbed category, over
  protected items only; then `expectation` and `sanitisation`, which see the noisy
  counts and public facts, and nothing else.
- Sensitivity: an item changes the count of each of its perturbed categories by one.
- Cost of a call: one `PureRelease(epsilon)` if the catalogue has protected items under these
  concerns; `ExactRelease` if it has only open ones; nothing otherwise. This depends on the
  catalogue and the concerns, never on the history.
- Assumptions: noise from the operating system; catalogue, concerns and epsilon chosen without
  looking at the history. Every call costs anew, also for the same history: to send the same
  release again, keep it. Not covered: when something is sent, and that the person uses this.

Proof. Let two histories differ in one protected item i. The noisy counts are independent, and the
discrete Laplace distribution of scale z has P(x) / P(x + 1) <= exp(1/z) in both directions, for
any real z > 0. So the vector's loss is at most the sum over i's perturbed categories of 1 / z_j.
`CategoryNoise.loss` is the largest such sum over all items, computed in rationals from the very
doubles that the sampler is given (it takes a double as the rational that it is), and `perturb`
refuses to release if it were above the decimal that `epsilon` was written as: scales are rounded
upwards until it is not. The bound is attained, so nothing is given away either. Open items of the
history are a function of the other part of the history, the same for both; the drawn items are a
function of the noisy counts and of a seed drawn for the purpose. Together they are epsilon-DP, as
a set of items, by post-processing.

Where the paper's own argument fails. M-DPDP sets the target of an "all" category to its exact
count over *all* items, including those that are also in a "perturbed" category, and demands that
the solution meets it. Two histories that differ in one such item then have different targets, and
no noise lies between. Where that item is the only one in the "all" category it is sent if and only
if it is in the history: no finite epsilon holds (`discreet.research.published.epicrec` shows it).
Here a protected item is counted only where there is noise, and an "all" category shows its open
items, which are sent anyway. The paper also counts items with a "no" category in their other
categories; here they are not counted at all.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from discreet.errors import InvalidArgument, Underpaid
from discreet.families.collaborative.on_device.calibration import CategoryNoise, calibrate
from discreet.families.collaborative.on_device.catalogue import (
    Catalogue,
    Concerns,
    Integers,
    scope_of,
)
from discreet.families.collaborative.on_device.expectation import Expectation
from discreet.families.collaborative.on_device.sanitisation import sanitise
from discreet.privacy.charges import decimal
from discreet.privacy.events import ExactRelease, PrivacyEvent, PureRelease
from discreet.privacy.noise import NoiseSource
from discreet.privacy.numeric import LaplaceMechanism

NAME = "profile perturbation"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRelease:
    """What leaves the device, and what that costs.

    `items` is all of it: `drawn` ones, which say about the history only what the noisy counts say,
    and `open` ones, which are in it. `event` is None when nothing about the history is released.
    """

    drawn: frozenset[str]
    open: frozenset[str]
    noisy: Mapping[str, int]
    epsilon: float
    event: PrivacyEvent | None

    @property
    def items(self) -> frozenset[str]:
        """Return what is sent."""
        return self.drawn | self.open


def event_of(*, catalogue: Catalogue, concerns: Concerns, epsilon: float) -> PrivacyEvent | None:
    """Say what a release will be, before there is one, from public facts alone."""
    scope = scope_of(catalogue, concerns)
    if len(scope.counted):
        return PureRelease(epsilon, NAME)
    return ExactRelease() if len(scope.open) else None


def perturbs(*, catalogue: Catalogue, concerns: Concerns) -> bool:
    """Tell whether anything is released with noise, and so whether an epsilon is needed."""
    return len(scope_of(catalogue, concerns).counted) > 0


def perturb(
    *,
    history: Collection[str],
    catalogue: Catalogue,
    concerns: Concerns,
    epsilon: float,
    noise: NoiseSource,
    expectation: Expectation | None = None,
) -> ProfileRelease:
    """Return what may leave the device. Pay for its event before anything does.

    `epsilon` has no meaning, and may be 0, where nothing is released with noise. The noisy counts
    are read by what is public, at no cost: by `expectation`, or by the catalogue alone.
    """
    if isinstance(history, str):
        raise InvalidArgument("history", "must be a collection of items")
    tally = tally_history(catalogue, history)
    scope = scope_of(catalogue, concerns)
    open_groups = set(scope.open.tolist())
    kept = frozenset(item for item in history if catalogue.group_of[item] in open_groups)
    if not len(scope.counted):
        event = event_of(catalogue=catalogue, concerns=concerns, epsilon=epsilon)
        return ProfileRelease(drawn=frozenset(), open=kept, noisy={}, epsilon=0.0, event=event)
    calibration = calibrate(catalogue=catalogue, epsilon=epsilon, concerns=concerns)
    counts = tally[scope.protected] @ scope.incidence.astype(np.int64)
    noisy = with_noise(counts, calibration, noise)
    known = expectation or Expectation.of_catalogue(catalogue)
    wanted = known.read(
        noisy=noisy.astype(np.float64), magnitudes=np.array(calibration.magnitudes), scope=scope
    )
    return ProfileRelease(
        drawn=sanitise(
            catalogue=catalogue,
            concerns=concerns,
            wanted=wanted,
            seed=noise.bits(128),
            expectation=known,
        ),
        open=kept,
        noisy=dict(zip(calibration.categories, map(int, noisy), strict=True)),
        epsilon=epsilon,
        event=event_of(catalogue=catalogue, concerns=concerns, epsilon=epsilon),
    )


def with_noise(counts: Integers, calibration: CategoryNoise, noise: NoiseSource) -> Integers:
    """Return the counts with noise of the calibrated magnitudes; refuse what is not paid for."""
    if calibration.loss > decimal(calibration.epsilon):
        raise Underpaid("the noise would lose more than its epsilon")
    noisy = [
        LaplaceMechanism(scale=magnitude, sensitivity=1.0, granularity=1.0).release(count, noise)
        for count, magnitude in zip(counts, calibration.magnitudes, strict=True)
    ]
    return np.array([released.value for released in noisy], dtype=np.int64)


def tally_history(catalogue: Catalogue, history: Collection[str]) -> Integers:
    """Return how many items of the history each group has; refuse items nobody knows."""
    try:
        return catalogue.tally(history)
    except InvalidArgument:
        raise InvalidArgument("history", "has an item that is not in the catalogue") from None
