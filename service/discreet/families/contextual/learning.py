"""From feedback to sums, and from sums to the next model.

A record is in one release, whose noise covers the replacement of one record. In cells that is
Laplace noise at the document's epsilon, and n records of one client cost n times epsilon, in one
release or in several. In a linear space it is Gaussian noise at the document's (epsilon, delta): a
record costs the zCDP of that, and n of one client in one release cost n**2 times as much. The store
charges both. `spaces` has how far a record moves the sums.

Why not one kind of noise for both. A record moves four sums in cells, and as many as there are
features in a linear space. Laplace noise goes with the sum of absolute values, Gaussian noise with
the length; at epsilon 1 the first has a deviation of 2.8 where the second has 6.4, and that is what
four sums gain by it. With many sums it is the other way round.
"""

import io
import math
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.families.contextual.blocks import gathered_sums
from discreet.families.contextual.cells import CellSpace
from discreet.families.contextual.estimates import Estimates
from discreet.families.contextual.fit_cells import fit_cells
from discreet.families.contextual.fit_linear import fit_linear
from discreet.families.contextual.spaces import LinearSpace
from discreet.families.contextual.sums import ContextualSums, FreshSums
from discreet.families.contract import REWARD_STEPS
from discreet.privacy.calibration import laplace_scale, zcdp_gaussian_scale
from discreet.privacy.events import GaussianRelease, LaplaceRelease
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import Vector

_LAPLACE = math.sqrt(2.0)
"""The deviation of Laplace noise of scale 1."""


@dataclass(frozen=True, slots=True)
class ReleaseNoise:
    """The noise of one release, in records' units; without an event there is none at all."""

    event: LaplaceRelease | GaussianRelease | None = None

    @classmethod
    def pure(cls, *, epsilon: float, sensitivity: float) -> "ReleaseNoise":
        """Return the least noise that covers the replacement of a record at epsilon."""
        scale = laplace_scale(epsilon=epsilon, sensitivity=sensitivity)
        return cls(LaplaceRelease(scale, sensitivity))

    @classmethod
    def concentrated(cls, *, epsilon: float, delta: float, sensitivity: float) -> "ReleaseNoise":
        """Return the least noise that covers the replacement of a record at (epsilon, delta)."""
        scale = zcdp_gaussian_scale(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
        return cls(GaussianRelease(scale, sensitivity))

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        if self.event is None:
            return 0.0
        return self.event.scale * (_LAPLACE if isinstance(self.event, LaplaceRelease) else 1.0)

    def draw(self, noise: NoiseSource, size: int) -> Vector:
        """Return so many draws, in steps of a record."""
        if self.event is None:
            return np.zeros(size, dtype=np.int64)
        scale = self.event.scale * REWARD_STEPS
        if isinstance(self.event, LaplaceRelease):
            return noise.discrete_laplace(scale=scale, size=size)
        return noise.discrete_gaussian(scale=scale, size=size)


def noise_for(space: CellSpace | LinearSpace, epsilon: float, delta: float) -> ReleaseNoise:
    """Return the noise that covers a record of this space at (epsilon, delta), or less delta."""
    if isinstance(space, CellSpace):
        return ReleaseNoise.pure(epsilon=epsilon, sensitivity=space.sensitivity)
    return ReleaseNoise.concentrated(epsilon=epsilon, delta=delta, sensitivity=space.sensitivity)


def fresh_sums(
    space: CellSpace | LinearSpace,
    gathered: Mapping[bytes, Vector],
    *,
    slots: npt.NDArray[np.intp],
    hidden_by: ReleaseNoise,
    noise: NoiseSource,
) -> FreshSums:
    """Return what has gathered, with this release's noise on every entry.

    `slots` are those of items that exist: about others nothing is released. The products are
    everybody's, so they have their noise also if no item is left.
    """
    if hidden_by.event and space.own:
        raise ValueError("what items keep of their own records cannot be released with noise")
    items, products, own = gathered_sums(space, gathered, slots.tolist())
    drawn = hidden_by.draw(noise, items.size + products.size)
    items = items + drawn[: items.size].reshape(items.shape)
    products = products + drawn[items.size :]
    rows = space.summed(items / REWARD_STEPS)
    whole = REWARD_STEPS * space.products_length
    return FreshSums(
        slots=slots,
        liked=rows[:, :, 0],
        disliked=rows[:, :, 1],
        products=(products + own[:, 1:].sum(axis=0) if own.size else products) / whole,
        own=own / REWARD_STEPS,
        variance=(hidden_by.deviation * space.unit) ** 2,
        product_variance=(hidden_by.deviation / space.products_length) ** 2,
    )


def fit(
    space: CellSpace | LinearSpace, sums: ContextualSums, slots: npt.NDArray[np.intp]
) -> Estimates | None:
    """Return what the sums say about these items; None if there is nothing to say."""
    if not len(slots) or sums.seen <= 0:
        return None
    if isinstance(space, CellSpace):
        return fit_cells(space, sums, slots)
    return fit_linear(space, sums, slots)


def encode(sums: ContextualSums) -> bytes:
    """Return the sums as bytes; everything else follows from them."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **sums.arrays())  # type: ignore[arg-type]
    return buffer.getvalue()


def decode(content: bytes) -> ContextualSums:
    """Return what `encode` wrote, or raise `ValueError`. Nothing in it is ever executed."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as held:
            return ContextualSums.of(dict(held))
    except (ValueError, KeyError, OSError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise ValueError("a model of contextual cannot be read") from error
