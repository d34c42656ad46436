"""What training finds: for each item, the items that it speaks for. Nothing by client.

Row i lists the items j that have i among their neighbours, with the similarity of the two. What a
profile says about item j is the sum of the rows of its items, at j: how much of j's neighbourhood
it holds.
"""

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Slots = npt.NDArray[np.intp]
Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class ItemSimilarities:
    """Row i is `slots` and `weights` in [starts[i], starts[i + 1]).

    `counts` is in how many of the `profiles` each slot's item was.
    """

    starts: Ints
    slots: Ints
    weights: Floats
    counts: Ints
    profiles: int

    @classmethod
    def untrained(cls, size: int = 0) -> "ItemSimilarities":
        """Return what is known of so many items before anybody sent a profile."""
        return cls(
            starts=np.zeros(size + 1, np.int64),
            slots=np.zeros(0, np.int64),
            weights=np.zeros(0, np.float64),
            counts=np.zeros(size, np.int64),
            profiles=0,
        )

    @property
    def size(self) -> int:
        """How many slots it knows; later items have none yet."""
        return len(self.counts)

    def scores(self, profiles: Sequence[Slots], *, size: int) -> Floats:
        """Return what profiles say about every slot below `size`, a row each: 0 for nothing."""
        named = np.concatenate([np.zeros(0, dtype=np.intp), *profiles])
        whose = np.repeat(np.arange(len(profiles)), [len(profile) for profile in profiles])
        fits = named < self.size
        known, whose = named[fits], whose[fits]
        begins = self.starts[known]
        lengths = self.starts[known + 1] - begins
        # The rows' positions, one after the other: each begins where the one before has ended.
        before = np.cumsum(lengths) - lengths
        places = np.arange(int(lengths.sum())) + np.repeat(begins - before, lengths)
        width = max(size, self.size)
        sums: Floats = np.bincount(
            np.repeat(whose * width, lengths) + self.slots[places],
            weights=self.weights[places],
            minlength=width * len(profiles),
        ).astype(np.float64, copy=False)
        return sums.reshape(len(profiles), width)[:, :size]

    def arrays(self) -> Arrays:
        """Return it as arrays with names, no wider than they need to be."""
        return {
            "starts": self.starts.astype("<u4"),
            "slots": self.slots.astype("<u4"),
            "weights": self.weights.astype("<f4"),
            "counts": self.counts.astype("<u4"),
            "profiles": np.array(self.profiles, dtype="<u4"),
        }

    @classmethod
    def of(cls, arrays: Arrays) -> "ItemSimilarities":
        """Return what `arrays` gave, or raise `ValueError`."""
        found = cls(
            starts=arrays["starts"].astype(np.int64),
            slots=arrays["slots"].astype(np.int64),
            weights=arrays["weights"].astype(np.float64),
            counts=arrays["counts"].astype(np.int64),
            profiles=int(arrays["profiles"]),
        )
        starts, slots, size = found.starts, found.slots, found.size
        consistent = (
            len(starts) == size + 1
            and starts[0] == 0
            and starts[-1] == len(slots) == len(found.weights)
            and np.all(np.diff(starts) >= 0)
            and (not len(slots) or (slots.min() >= 0 and slots.max() < size))
            and np.all(np.isfinite(found.weights))
        )
        if not consistent:
            raise ValueError("the similarities contradict themselves")
        return found


SIMILARITY_FIELDS = ("starts", "slots", "weights", "counts", "profiles")


def pack(arrays: Arrays) -> bytes:
    """Return arrays compressed into one value."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def unpack(content: bytes, names: tuple[str, ...]) -> Arrays:
    """Return the arrays that `pack` wrote, or raise `ValueError`. Nothing in it is executed."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as held:
            return {name: held[name] for name in names}
    except (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError("the arrays cannot be read") from error
