"""From feedback to sums, and from sums to the next model.

A record is one item in one cell, and how it was received: two entries of one block of sums, the
cell's (`statistics`). It is in one release, whose noise covers the replacement of one record at
the document's (epsilon, delta); what it costs is the zCDP of that. n records of one client in one
release cost n**2 times as much, which the store charges.
"""

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.families.contract import REWARD_STEPS
from discreet.families.p_dap.statistics import SENSITIVITY, CellStatistics
from discreet.privacy.calibration import zcdp_gaussian_scale
from discreet.privacy.events import GaussianRelease
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import Vector

OWN_USERS, GUESTS = b"o", b"g"
MOST_CELLS = 1_024
MOST_ENTRIES = 400_000
"""Cells times items: bounds the noise that one release has to draw."""


@dataclass(frozen=True, slots=True)
class FeedbackNoise:
    """The noise of one release, for records of one (epsilon, delta); None is no noise at all."""

    deviation: float
    event: GaussianRelease | None

    @classmethod
    def exact(cls) -> "FeedbackNoise":
        """Return no noise."""
        return cls(0.0, None)

    @classmethod
    def calibrated(cls, *, epsilon: float, delta: float) -> "FeedbackNoise":
        """Return the least noise that covers the replacement of a record at (epsilon, delta)."""
        deviation = zcdp_gaussian_scale(epsilon=epsilon, delta=delta, sensitivity=SENSITIVITY)
        return cls(deviation, GaussianRelease(deviation, SENSITIVITY))


def increments(slot: int, reward: float) -> list[tuple[int, int]]:
    """Return what a reward for an item adds to its cell's block: liked, and not."""
    steps = round(reward * REWARD_STEPS)
    return [(2 * slot, steps), (2 * slot + 1, REWARD_STEPS - steps)]


def block(population: bytes, cell: int) -> bytes:
    """Return the name of a cell's block."""
    return population + cell.to_bytes(4, "little")


@dataclass(frozen=True, slots=True)
class Growth:
    """How a population's cells grow from one release to the next."""

    dimensions: int
    base: float
    growth: float
    noise: FeedbackNoise

    def next_statistics(
        self,
        statistics: CellStatistics,
        gathered: Mapping[bytes, Vector],
        *,
        population: bytes,
        live: npt.NDArray[np.intp],
        noise: NoiseSource,
    ) -> CellStatistics:
        """Return the released sums with what has gathered, and cells split that saw enough."""
        blocks = {
            int.from_bytes(name[1:], "little"): vector
            for name, vector in gathered.items()
            if name[:1] == population
        }
        grown = statistics.grown(blocks, live=live, deviation=self.noise.deviation, noise=noise)
        return grown.divided(
            dimensions=self.dimensions,
            base=self.base,
            growth=self.growth,
            most_cells=min(MOST_CELLS, max(1, MOST_ENTRIES // max(1, len(live)))),
        )


def encode(own: CellStatistics, guests: CellStatistics) -> bytes:
    """Return both populations' statistics as bytes."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **own.arrays("own_"), **guests.arrays("guests_"))  # type: ignore[arg-type]
    return buffer.getvalue()


def decode(content: bytes, *, segments: int) -> tuple[CellStatistics, CellStatistics]:
    """Return what `encode` wrote, or raise `ValueError`. Nothing in it is ever executed."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as held:
            arrays = dict(held)
        return (
            CellStatistics.of(segments, arrays, "own_"),
            CellStatistics.of(segments, arrays, "guests_"),
        )
    except (KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError("a model of p-dap cannot be read") from error
