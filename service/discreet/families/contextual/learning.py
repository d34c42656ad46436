"""From feedback to sums, and from sums to the next model.

A record is in one release, whose noise covers the replacement of one record at the document's
(epsilon, delta); what it costs is the zCDP of that. n records of one client in one release cost
n**2 times as much, which the store charges. `spaces` has how far a record moves the sums.
"""

import io
import math
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.families.contextual.estimates import Estimates
from discreet.families.contextual.fit_cells import fit_cells
from discreet.families.contextual.fit_linear import fit_linear
from discreet.families.contextual.spaces import CellSpace, LinearSpace, gathered_sums
from discreet.families.contextual.sums import ContextualSums, FreshSums
from discreet.families.contract import REWARD_STEPS
from discreet.privacy.conversions import zcdp_rho
from discreet.privacy.events import GaussianRelease
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import Vector


@dataclass(frozen=True, slots=True)
class ReleaseNoise:
    """The noise of one release, in records' units; None is no noise at all."""

    deviation: float
    event: GaussianRelease | None

    @classmethod
    def exact(cls) -> "ReleaseNoise":
        """Return no noise."""
        return cls(0.0, None)

    @classmethod
    def calibrated(cls, *, epsilon: float, delta: float, sensitivity: float) -> "ReleaseNoise":
        """Return the least noise that covers the replacement of a record at (epsilon, delta)."""
        rho = zcdp_rho(epsilon=epsilon, delta=delta)
        deviation = math.nextafter(sensitivity / math.sqrt(2.0 * rho), math.inf)
        return cls(deviation, GaussianRelease(deviation, sensitivity))


def fresh_sums(
    space: CellSpace | LinearSpace,
    gathered: Mapping[bytes, Vector],
    *,
    slots: npt.NDArray[np.intp],
    deviation: float,
    noise: NoiseSource,
) -> FreshSums:
    """Return what has gathered, with this release's noise on every entry.

    `slots` are those of items that exist: about others nothing is released. The products are
    everybody's, so they have their noise also if no item is left.
    """
    if deviation and space.own:
        raise ValueError("what items keep of their own records cannot be released with noise")
    items, products, own = gathered_sums(space, gathered, slots.tolist())
    if deviation:
        drawn = noise.discrete_gaussian(
            scale=deviation * REWARD_STEPS, size=items.size + products.size
        )
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
        variance=(deviation * space.unit) ** 2,
        product_variance=(deviation / space.products_length) ** 2,
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
