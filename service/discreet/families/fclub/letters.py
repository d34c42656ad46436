"""Letters: the only thing that leaves a local server, and what an observation in one costs.

A user's statistics are one vector of 64-bit integers, in steps of 2**-20:

    [count, the upper triangle of sum x x^T row by row, weight * sum (y - baseline) x]

with |x| <= 1 and y in [0, 1]. A letter is the sum of such vectors over its members' observations
that were in no letter before, with discrete Gaussian noise on everything but the count.

How far can one observation move a letter? Replace (x, y) by (x', y'), and write u = y - baseline,
|u| <= h = max(baseline, 1 - baseline), w = `weight`, r = |x.x'|. The upper triangle of a symmetric
matrix is no longer than the matrix itself, so the squared distance is at most

    |x x^T - x' x'^T|^2 + w^2 |u x - u' x'|^2
        <= |x|^4 + |x'|^4 - 2 r^2 + w^2 (u^2 |x|^2 + u'^2 |x'|^2 + 2 |u u'| r).

For a given r this grows with |x|, |x'|, |u| and |u'|, and r <= |x||x'| stays possible while they
grow; so its maximum has |x| = |x'| = 1 and |u| = |u'| = h, where with a = (w h)^2 it is

    2 - 2 r^2 + 2 a + 2 a r  <=  2 + 2 a + a^2 / 2  =  (2 + a)^2 / 2,      at r = a / 2.

So the sensitivity is (2 + a)/sqrt(2). Taking rewards relative to a baseline, and not sending the
sum of squared rewards, which nobody needs, is what makes this less than the 3/sqrt(2) of the whole
matrix of (x, y): 1.81 with a = 9/16, while the noise on the moments, divided by the weight again,
is two thirds of that on the matrix. a was chosen to make the error of (V theta - b), in which both
meet, the least for preference vectors of length 1/sqrt(2); that minimum is flat.

Rounding an observation to the grid moves each of k numbers by half a step at most, hence two
observations apart by at most sqrt(k) steps more.

Each observation is in exactly one letter, and which one depends on counts and on letters that were
sent before, never on other observations (`discreet.families.fclub.clusters` says how). So the
cost of an observation is that of one Gaussian release, however many letters are sent.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from discreet.families.p_dap.contract import Vector
from discreet.errors import InvalidArgument, StateOverflow
from discreet.privacy.calibration import gaussian_scale
from discreet.privacy.charges import NANO, PICO, Charge, round_up
from discreet.privacy.events import ExactRelease, GaussianRelease, PrivacyEvent, Released
from discreet.privacy.matrices import half_size
from discreet.privacy.noise import NoiseSource
from discreet.privacy.pricing import cost_of

Floats = npt.NDArray[np.float64]

STEPS = 2**20
"""Steps of the grid in 1.0. A 64-bit field holds 10**12 observations."""

COUNT = 0

_BALANCE = 0.75
"""weight * h: the a of the proof is its square."""

_UP = 1 + 2.0**-50
_MOST = 2**62
_SLACK = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """What is known of one user, or of several together: V, b and how many observations."""

    gram: Floats
    moment: Floats
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Letter:
    """Noisy sums about `members`; `steps` is a vector as above, whose count is exact.

    Members are the numbers that the local server gave its users. They and the count are public.
    """

    members: tuple[int, ...]
    steps: Vector

    @property
    def count(self) -> int:
        """How many observations it is about."""
        return int(self.steps[COUNT])


@dataclass(frozen=True, slots=True, kw_only=True)
class Privatizer:
    """What is added up, and the noise of a letter. `epsilon` None sends exact letters."""

    dimensions: int
    epsilon: float | None = 1.0
    delta: float = 1e-6
    baseline: float = 0.5

    def __post_init__(self) -> None:
        if not 1 <= self.dimensions <= 256:
            raise InvalidArgument("dimensions", "must lie between 1 and 256")
        if not 0 <= self.baseline <= 1:
            raise InvalidArgument("baseline", "must lie in [0, 1]")
        if self.epsilon is not None:
            _scale(self.dimensions, self.epsilon, self.delta)

    @property
    def fields(self) -> int:
        """Length of a user's vector."""
        return 1 + half_size(self.dimensions) + self.dimensions

    @property
    def weight(self) -> float:
        """By how much moments are stretched before noise is added."""
        return _BALANCE / max(self.baseline, 1 - self.baseline)

    @property
    def sensitivity(self) -> float:
        """How far one observation moves a letter, rounding included."""
        return _sensitivity(self.dimensions)

    @property
    def gram_scale(self) -> float:
        """Standard deviation of the noise on every entry of V; 0 for exact letters."""
        if self.epsilon is None:
            return 0.0
        return _scale(self.dimensions, self.epsilon, self.delta)

    @property
    def moment_scale(self) -> float:
        """Standard deviation of the noise on every entry of b."""
        return self.gram_scale / self.weight

    @property
    def event(self) -> PrivacyEvent:
        """What one letter is."""
        if self.epsilon is None:
            return ExactRelease()
        return GaussianRelease(scale=self.gram_scale, sensitivity=self.sensitivity)

    @property
    def charge(self) -> Charge:
        """What one letter costs in every column.

        The noise was calibrated to (epsilon, delta) by the exact curve of Gaussian noise, so these
        are what the basic columns are charged; the rho column has the release's own zCDP.
        """
        if self.epsilon is None:
            return Charge(nano_epsilon=round_up(math.inf, NANO), nano_rho=round_up(math.inf, NANO))
        return Charge(
            nano_epsilon=round_up(self.epsilon, NANO),
            nano_rho=round_up(cost_of(self.event, None).rho, NANO),
            pico_delta=round_up(self.delta, PICO),
        )

    def observation(self, *, x: npt.ArrayLike, reward: float) -> Vector:
        """Return what one observation adds to its user's vector."""
        features = checked_features(x, self.dimensions)
        if not (math.isfinite(reward) and 0 <= reward <= 1):
            raise InvalidArgument("reward", "must be a number from 0 to 1")
        entries = np.concatenate(
            [
                np.outer(features, features)[np.triu_indices(self.dimensions)],
                self.weight * (reward - self.baseline) * features,
            ]
        )
        return np.concatenate([[1], np.rint(entries * STEPS).astype(np.int64)])

    def sums(self, steps: npt.ArrayLike) -> Sums:
        """Read V, b and the count back from a vector, exact or noisy; an empty one is nothing."""
        vector = np.asarray(steps, dtype=np.int64)
        if vector.size == 0:
            vector = np.zeros(self.fields, dtype=np.int64)
        if vector.shape != (self.fields,):
            raise InvalidArgument("steps", f"must be a vector of {self.fields} integers")
        entries = vector[1:] / STEPS
        half = half_size(self.dimensions)
        gram = np.zeros((self.dimensions, self.dimensions))
        gram[np.triu_indices(self.dimensions)] = entries[:half]
        return Sums(
            gram=gram + np.triu(gram, 1).T,
            moment=entries[half:] / self.weight,
            count=int(vector[COUNT]),
        )

    def write(
        self, *, members: Sequence[int], pending: npt.ArrayLike, noise: NoiseSource
    ) -> Released[Letter]:
        """Return the letter about the sum of the members' observations that were in none before.

        Charge `charge` first. Keep the letter, and what it covered, before it is sent: the same
        observations must never be written with other noise.
        """
        exact = np.asarray(pending, dtype=np.int64)
        if exact.shape != (self.fields,):
            raise InvalidArgument("pending", f"must be a vector of {self.fields} integers")
        if exact[COUNT] < 1 or len(members) < 1:
            raise InvalidArgument("pending", "must hold at least one observation of somebody")
        steps = exact.copy()
        if self.epsilon is not None:
            if int(np.abs(exact).max()) >= _MOST:
                raise StateOverflow("the sums of a letter would leave 64 bits")
            drawn = noise.discrete_gaussian(scale=self.gram_scale * STEPS, size=self.fields - 1)
            steps[1:] += drawn
        steps.flags.writeable = False
        return Released(Letter(tuple(members), steps), self.event)

    def read(self, *, members: Sequence[int], steps: npt.ArrayLike) -> Letter:
        """Return a letter that came over the wire, refusing what cannot be one."""
        vector = np.asarray(steps)
        if vector.shape != (self.fields,) or vector.dtype.kind not in "iu":
            raise InvalidArgument("steps", f"must be a vector of {self.fields} integers")
        vector = vector.astype(np.int64)
        if len(members) < 1 or len(set(members)) < len(members) or min(members) < 0:
            raise InvalidArgument("members", "must be distinct numbers, at least one")
        if vector[COUNT] < 1:
            raise InvalidArgument("steps", "must be about at least one observation")
        # Nothing that |x| <= 1 and any plausible noise could have produced lies beyond this.
        most = (float(vector[COUNT]) + 64 * self.gram_scale + 1) * STEPS
        if float(np.abs(vector[1:].astype(np.float64)).max()) > most:
            raise InvalidArgument("steps", "must be sums over so many observations")
        vector.flags.writeable = False
        return Letter(tuple(int(member) for member in members), vector)


def checked_features(x: npt.ArrayLike, dimensions: int, *, scale: bool = False) -> Floats:
    """Return one item's features, refusing (or with `scale` shortening) a norm above 1."""
    try:
        features = np.array(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgument("x", "must be numbers") from error
    if features.shape != (dimensions,) or not np.isfinite(features).all():
        raise InvalidArgument("x", f"must be {dimensions} finite numbers")
    norm = float(np.linalg.norm(features))
    if norm > 1 + _SLACK and not scale:
        raise InvalidArgument("x", "must have a Euclidean norm of at most 1")
    if norm > 1 - 2.0**-40:
        features /= norm * (1 + 2.0**-40)
    return features


@lru_cache(maxsize=64)
def _sensitivity(dimensions: int) -> float:
    entries = half_size(dimensions) + dimensions
    exact = (2 + _BALANCE**2) / math.sqrt(2)
    return (exact + math.sqrt(entries) / STEPS) * _UP


@lru_cache(maxsize=64)
def _scale(dimensions: int, epsilon: float, delta: float) -> float:
    return gaussian_scale(
        epsilon=epsilon,
        delta=delta,
        sensitivity=_sensitivity(dimensions),
        dimension=half_size(dimensions) + dimensions,
        granularity=1 / STEPS,
    ).scale
