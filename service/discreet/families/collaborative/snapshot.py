"""What training finds: for each item, whom it speaks for. Numbers only, and nothing by client.

Row i lists the items j that have i among their neighbours, with the similarity of the two. What a
profile says about item j is the sum of the rows of its items, at j: how much of j's neighbourhood
it holds.
"""

import io
import zipfile
import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_FIELDS = ("starts", "slots", "weights", "counts", "profiles")


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A trained model. `counts` is in how many of the `profiles` each slot's item was."""

    starts: Ints
    slots: Ints
    weights: Floats
    counts: Ints
    profiles: int

    @property
    def size(self) -> int:
        """How many slots it knows; later items have none yet."""
        return len(self.counts)

    def scores(self, profile: npt.NDArray[np.intp], *, size: int) -> Floats:
        """Return what a profile says about every slot below `size`: 0 where it says nothing."""
        known = profile[profile < self.size]
        begins = self.starts[known]
        lengths = self.starts[known + 1] - begins
        # The rows' positions, one after the other: each begins where the one before has ended.
        before = np.cumsum(lengths) - lengths
        places = np.arange(int(lengths.sum())) + np.repeat(begins - before, lengths)
        width = max(size, self.size)
        sums: Floats = np.bincount(
            self.slots[places], weights=self.weights[places], minlength=width
        ).astype(np.float64, copy=False)
        return sums[:size]

    def encode(self) -> bytes:
        """Return compressed arrays, for the store."""
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            starts=self.starts.astype("<u4"),
            slots=self.slots.astype("<u4"),
            weights=self.weights.astype("<f4"),
            counts=self.counts.astype("<u4"),
            profiles=np.array(self.profiles, dtype="<u4"),
        )
        return buffer.getvalue()

    @classmethod
    def decode(cls, content: bytes) -> "Snapshot":
        """Return what `encode` wrote, or raise `ValueError`. Nothing in it is ever executed."""
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as held:
                starts, slots, weights, counts, profiles = (held[name] for name in _FIELDS)
        except (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError("a snapshot cannot be read") from error
        found = cls(
            starts=starts.astype(np.int64),
            slots=slots.astype(np.int64),
            weights=weights.astype(np.float64),
            counts=counts.astype(np.int64),
            profiles=int(profiles),
        )
        if not found._consistent():
            raise ValueError("a snapshot contradicts itself")
        return found

    def _consistent(self) -> bool:
        starts, size = self.starts, self.size
        return bool(
            len(starts) == size + 1
            and starts[0] == 0
            and starts[-1] == len(self.slots) == len(self.weights)
            and np.all(np.diff(starts) >= 0)
            and (not len(self.slots) or (self.slots.min() >= 0 and self.slots.max() < size))
            and np.all(np.isfinite(self.weights))
        )


def untaught(*, size: int = 0) -> Snapshot:
    """Return what is known before anybody sent a profile."""
    return Snapshot(
        starts=np.zeros(size + 1, np.int64),
        slots=np.zeros(0, np.int64),
        weights=np.zeros(0, np.float64),
        counts=np.zeros(size, np.int64),
        profiles=0,
    )
