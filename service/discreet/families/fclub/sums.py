"""What is added up for a user, and noisy updates about those sums.

A user's sums are one vector of 64-bit integers, in steps of 2**-20:

    [count, the upper triangle of sum x x^T row by row, weight * sum (y - baseline) x]

with |x| <= 1 and y in [0, 1] (`own_rows` says how the store keeps it). A noisy update is a sum of
such vectors, with discrete Gaussian noise on everything but the count, which `Privatizer` takes to
be public. (`by_person` does not, and has noise of its own.)

How far can one observation move an update? Replace (x, y) by (x', y'), and write u = y - baseline,
|u| <= h = max(baseline, 1 - baseline), w = `weight`, r = |x.x'|. The upper triangle of a symmetric
matrix is no longer than the matrix itself, so the squared distance is at most

    |x x^T - x' x'^T|^2 + w^2 |u x - u' x'|^2
        <= |x|^4 + |x'|^4 - 2 r^2 + w^2 (u^2 |x|^2 + u'^2 |x'|^2 + 2 |u u'| r).

For a given r this grows with |x|, |x'|, |u| and |u'|, and r <= |x||x'| stays possible while they
grow; so its maximum has |x| = |x'| = 1 and |u| = |u'| = h, where with a = (w h)^2 it is

    2 - 2 r^2 + 2 a + 2 a r  <=  2 + 2 a + a^2 / 2  =  (2 + a)^2 / 2,      at r = a / 2.

So the sensitivity is (2 + a)/sqrt(2). Taking rewards relative to a baseline, and leaving out the
sum of squared rewards, which nobody needs, makes this less than the 3/sqrt(2) of the whole matrix
of (x, y): 1.81 with a = 9/16, while the noise on the moments, divided by the weight again, is two
thirds of that on the matrix. a was chosen to make the error of (V theta - b), in which both meet,
the least for preference vectors of length 1/sqrt(2); that minimum is flat.

Rounding an observation to the grid moves each of k numbers by half a step at most, hence two
observations apart by at most sqrt(k) steps more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument, StateOverflow
from discreet.privacy.calibration import gaussian_scale
from discreet.privacy.events import ExactRelease, GaussianRelease, PrivacyEvent, Released
from discreet.privacy.matrices import half_size
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import Vector

Floats = npt.NDArray[np.float64]

STEPS = 2**20
"""Steps of the grid in 1.0. A 64-bit field holds 10**12 observations."""

COUNT = 0

BALANCE = 0.75
"""weight * h: the a of the proof is its square."""

ONE_REPLACED = (2 + BALANCE**2) / math.sqrt(2)
"""How far one observation moves a sum when another takes its place."""

_UP = 1 + 2.0**-50
_MOST = 2**62
_SLACK = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class LinearSums:
    """V, b and the number of observations, of one user or, with leading axes, of many."""

    gram: Floats
    moment: Floats
    count: Floats


@dataclass(frozen=True, slots=True, eq=False)
class NoisyUpdate:
    """Noisy sums about `members`: `steps` as above, with noise of `deviation` on entries of V.

    Members are numbers that the local server gave, to its users or to its kinds of users.
    """

    members: tuple[int, ...]
    steps: Vector
    deviation: float

    @property
    def count(self) -> int:
        """How many observations it is about."""
        return int(self.steps[COUNT])


@dataclass(frozen=True, slots=True, kw_only=True)
class SumsEncoding:
    """What is added up, for features of so many dimensions and rewards around a baseline."""

    dimensions: int
    baseline: float = 0.5

    def __post_init__(self) -> None:
        if not 1 <= self.dimensions <= 256:
            raise InvalidArgument("dimensions", "must lie between 1 and 256")
        if not 0 <= self.baseline <= 1:
            raise InvalidArgument("baseline", "must lie in [0, 1]")

    @property
    def fields(self) -> int:
        """Length of a user's vector."""
        return 1 + half_size(self.dimensions) + self.dimensions

    @property
    def weight(self) -> float:
        """By how much moments are stretched before noise is added."""
        return BALANCE / max(self.baseline, 1 - self.baseline)

    def observation(self, *, x: npt.ArrayLike, reward: float) -> Vector:
        """Return what one observation adds to its user's vector."""
        features = checked_features(x, self.dimensions)
        if not (math.isfinite(reward) and 0 <= reward <= 1):
            raise InvalidArgument("reward", "must be a number from 0 to 1")
        added: Vector = self.observations(features[None], np.array([reward]))[0]
        return added

    def observations(self, features: Floats, rewards: Floats) -> Vector:
        """Return what observations add, a row each; features and rewards are known to be fine."""
        rows, columns = triangle(self.dimensions)
        half = len(rows)
        added = np.ones((len(features), self.fields), dtype=np.int64)
        added[:, 1 : 1 + half] = np.rint(features[:, rows] * features[:, columns] * STEPS)
        liked = self.weight * (rewards - self.baseline)
        added[:, 1 + half :] = np.rint(liked[:, None] * features * STEPS)
        return added

    def sums(self, steps: npt.ArrayLike) -> LinearSums:
        """Read V, b and the count from a vector, or from a row each; exact or noisy."""
        rows = np.asarray(steps, dtype=np.int64)
        if rows.ndim == 0 or rows.shape[-1] != self.fields:
            raise InvalidArgument("steps", f"must be vectors of {self.fields} integers")
        entries = rows[..., 1:] / STEPS
        half = half_size(self.dimensions)
        return LinearSums(
            gram=unfolded(entries[..., :half], self.dimensions),
            moment=entries[..., half:] / self.weight,
            count=rows[..., COUNT].astype(np.float64),
        )

    def read_update(
        self, *, members: Sequence[int], steps: npt.ArrayLike, deviation: float
    ) -> NoisyUpdate:
        """Return an update that came over the wire, or raise `InvalidArgument`."""
        vector = np.asarray(steps)
        if vector.shape != (self.fields,) or vector.dtype.kind not in "iu":
            raise InvalidArgument("steps", f"must be a vector of {self.fields} integers")
        vector = vector.astype(np.int64)
        if len(members) < 1 or len(set(members)) < len(members) or min(members) < 0:
            raise InvalidArgument("members", "must be distinct numbers, at least one")
        if not (math.isfinite(deviation) and deviation >= 0):
            raise InvalidArgument("deviation", "must be a number, at least 0")
        if vector[COUNT] < 1:
            raise InvalidArgument("steps", "must be about at least one observation")
        # Nothing that |x| <= 1 and any plausible noise could have produced lies beyond this.
        most = (float(vector[COUNT]) + 64 * deviation + 1) * STEPS
        if float(np.abs(vector[1:].astype(np.float64)).max()) > most:
            raise InvalidArgument("steps", "must be sums over so many observations")
        vector.flags.writeable = False
        return NoisyUpdate(tuple(sorted(int(member) for member in members)), vector, deviation)


@lru_cache(maxsize=8)
def triangle(dimensions: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the rows and columns of the upper triangle, row by row."""
    rows, columns = np.triu_indices(dimensions)
    return rows, columns


@lru_cache(maxsize=8)
def _places(dimensions: int) -> npt.NDArray[np.intp]:
    """Return where in the upper triangle each entry of the whole matrix is."""
    rows, columns = triangle(dimensions)
    places = np.zeros((dimensions, dimensions), dtype=np.intp)
    places[rows, columns] = places[columns, rows] = np.arange(len(rows))
    return places


@dataclass(frozen=True, slots=True, kw_only=True)
class Privatizer(SumsEncoding):
    """Writes noisy updates that protect one observation; `epsilon` None writes exact ones."""

    epsilon: float | None = 1.0
    delta: float = 1e-6

    def __post_init__(self) -> None:
        # Named because `super()` needs the class that slots replace.
        SumsEncoding.__post_init__(self)
        if self.epsilon is not None:
            _scale(self.dimensions, self.epsilon, self.delta)

    @property
    def sensitivity(self) -> float:
        """How far one observation moves an update, rounding included."""
        return _sensitivity(self.dimensions)

    @property
    def gram_scale(self) -> float:
        """Standard deviation of the noise on every entry of V; 0 for exact updates."""
        if self.epsilon is None:
            return 0.0
        return _scale(self.dimensions, self.epsilon, self.delta)

    @property
    def moment_scale(self) -> float:
        """Standard deviation of the noise on every entry of b."""
        return self.gram_scale / self.weight

    @property
    def event(self) -> PrivacyEvent:
        """What one update is."""
        if self.epsilon is None:
            return ExactRelease()
        return GaussianRelease(scale=self.gram_scale, sensitivity=self.sensitivity)

    def write(
        self, *, members: Sequence[int], pending: npt.ArrayLike, noise: NoiseSource
    ) -> Released[NoisyUpdate]:
        """Return the update about the sum of the members' observations that were in none before.

        Keep the update, and what it covered, in one step before it is sent: the same observations
        must never be written with other noise.
        """
        exact = np.asarray(pending, dtype=np.int64)
        if exact.shape != (self.fields,):
            raise InvalidArgument("pending", f"must be a vector of {self.fields} integers")
        if exact[COUNT] < 1 or len(members) < 1:
            raise InvalidArgument("pending", "must hold at least one observation of somebody")
        steps = exact.copy()
        if self.epsilon is not None:
            if int(np.abs(exact).max()) >= _MOST:
                raise StateOverflow("the sums of an update would leave 64 bits")
            drawn = noise.discrete_gaussian(scale=self.gram_scale * STEPS, size=self.fields - 1)
            steps[1:] += drawn
        steps.flags.writeable = False
        return Released(NoisyUpdate(tuple(members), steps, self.gram_scale), self.event)


def unfolded(halves: Floats, dimensions: int) -> Floats:
    """Return symmetric matrices from their upper triangles, row by row."""
    whole: Floats = halves.take(_places(dimensions), axis=-1)
    return whole


def folded(matrices: Floats) -> Floats:
    """Return the upper triangles of symmetric matrices, row by row."""
    rows, columns = triangle(matrices.shape[-1])
    halves: Floats = matrices[..., rows, columns]
    return halves


def checked_features(x: npt.ArrayLike, dimensions: int) -> Floats:
    """Return one item's features, refusing a norm above 1."""
    try:
        features = np.array(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgument("x", "must be numbers") from error
    if features.shape != (dimensions,) or not np.isfinite(features).all():
        raise InvalidArgument("x", f"must be {dimensions} finite numbers")
    norm = float(np.linalg.norm(features))
    if norm > 1 + _SLACK:
        raise InvalidArgument("x", "must have a Euclidean norm of at most 1")
    if norm > 1 - 2.0**-40:
        features /= norm * (1 + 2.0**-40)
    return features


@lru_cache(maxsize=64)
def _sensitivity(dimensions: int) -> float:
    entries = half_size(dimensions) + dimensions
    return (ONE_REPLACED + math.sqrt(entries) / STEPS) * _UP


@lru_cache(maxsize=64)
def _scale(dimensions: int, epsilon: float, delta: float) -> float:
    return gaussian_scale(
        epsilon=epsilon,
        delta=delta,
        sensitivity=_sensitivity(dimensions),
        dimension=half_size(dimensions) + dimensions,
        granularity=1 / STEPS,
    ).scale
