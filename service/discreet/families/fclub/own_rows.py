"""A user's own sums as the store keeps them: added up, but for the last observations.

An observation adds to d (d + 3) / 2 + 1 numbers: 861 for 40 dimensions, which would keep the store
busy for a quarter of a millisecond. So feedback puts an observation behind the sums as it came, in
a few numbers, and whoever reads them adds it up. Once there are `MOST` of them the reader folds
them into the sums, at a time when nobody waits for it. Both ways are exact, in any order: the sums
are the same, bit for bit.

    [the sums of `sums`; two numbers of `by_person`; then rows]

A row is the item's features in steps, four of 16 bits in a number, and the reward's 64 bits.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.families.fclub.features import FEATURE_STEPS
from discreet.families.fclub.sums import COUNT, STEPS, Floats, LinearSums, SumsEncoding, triangle
from discreet.state.stores import OwnRow, Store, Vector

Integers = npt.NDArray[np.int64]

MOST = 16
"""Rows behind a user's sums; those who read as many or more fold them."""
NOTED = 2
"""Numbers that `by_person` keeps between the sums and the rows."""
_IN_A_NUMBER = 4
_AT_ONCE = 1_024
"""Rows that are added up together, of those who told much since they last asked."""


@dataclass(frozen=True)
class OwnEncoding:
    """How observations are kept behind sums, and read with them."""

    encoding: SumsEncoding

    @cached_property
    def head(self) -> int:
        """How many numbers come before the rows."""
        return self.encoding.fields + NOTED

    @cached_property
    def full(self) -> int:
        """How long sums are behind which `MOST` rows wait."""
        return self.head + MOST * (self._words + 1)

    @cached_property
    def _words(self) -> int:
        """How many numbers the features of a row take."""
        return -(-self.encoding.dimensions // _IN_A_NUMBER)

    def rows(
        self, steps: npt.NDArray[np.int16], rewards: Floats, moments: Sequence[int]
    ) -> list[OwnRow]:
        """Return observations of what was shown at these moments, as they are put behind their
        users' sums."""
        features = np.zeros((len(steps), _IN_A_NUMBER * self._words), dtype="<i2")
        features[:, : self.encoding.dimensions] = steps
        numbers = np.empty((len(steps), self._words + 1), dtype=np.int64)
        numbers[:, :-1] = features.view("<i8")
        numbers[:, -1] = np.asarray(rewards, dtype=np.float64).view(np.int64)
        head = self.head
        return [OwnRow(head, row, moment) for row, moment in zip(numbers, moments, strict=True)]

    def waiting(self, own: Vector) -> int:
        """Return how many rows wait behind sums."""
        return max(0, len(own) - self.head) // (self._words + 1)

    def count(self, own: Vector) -> int:
        """Return how many observations there are, added up and behind the sums."""
        return int(own[COUNT] if len(own) else 0) + self.waiting(own)

    def steps(self, own: Sequence[Vector]) -> Integers:
        """Return everybody's sums with their rows added up, and what `by_person` noted."""
        heads, behind = self._read(own)
        added = heads.copy()
        self._add(added, behind)
        return added

    def sums(self, own: Sequence[Vector]) -> LinearSums:
        """Return V, b and the count of everybody, rows and all."""
        heads, behind = self._read(own)
        gram, moment = self._added(behind)
        known = self.encoding.sums(heads[:, : self.encoding.fields])
        return LinearSums(
            known.gram + gram / STEPS,
            known.moment + moment / STEPS / self.encoding.weight,
            known.count + behind.count,
        )

    def folded(self, own: Vector) -> Vector:
        """Return sums with their rows added up and no rows behind them."""
        folded: Vector = self.steps([own])[0]
        return folded

    def _read(self, own: Sequence[Vector]) -> tuple[Integers, "_Behind"]:
        """Return what lies before the rows, and the last `MOST` rows; older ones are added up.

        There are places for as many rows as there usually are at the most, so that how many of them
        somebody has makes no difference to how long this takes.
        """
        width, head = self._words + 1, self.head
        counts = [self.waiting(vector) for vector in own]
        if max(map(len, own), default=0) > self.full:
            own = [self._shortened(vector) for vector in own]
        # Whoever has fewer rows, or no sums, has zeros there: filling bytes up is the quickest way.
        filled = b"".join([vector.tobytes().ljust(8 * self.full, b"\0") for vector in own])
        whole = np.frombuffer(filled, dtype=np.int64).reshape(len(own), self.full)
        rows = whole[:, head:].reshape(len(own), MOST, width)
        return whole[:, :head], self._behind(rows, [min(count, MOST) for count in counts])

    def _shortened(self, own: Vector) -> Vector:
        """Return sums to which all rows but the last `MOST` are added, and these rows."""
        width, head = self._words + 1, self.head
        count = self.waiting(own)
        if count <= MOST:
            return own[: self.full]
        theirs = own[head : head + count * width].reshape(1, count, width)
        sums = own[None, :head].copy()
        for start in range(0, count - MOST, _AT_ONCE):
            some = theirs[:, start : min(count - MOST, start + _AT_ONCE)]
            self._add(sums, self._behind(some, [some.shape[1]]))
        return np.concatenate([sums[0], theirs[0, -MOST:].ravel()])

    def _behind(self, rows: Integers, counts: Sequence[int]) -> "_Behind":
        features = rows[..., :-1].astype("<i8").view("<i2")[..., : self.encoding.dimensions]
        rewards = np.ascontiguousarray(rows[..., -1]).view(np.float64)
        return _Behind(features, rewards, np.array(counts, dtype=np.int64))

    def _add(self, heads: Integers, behind: "_Behind") -> None:
        """Add rows to sums."""
        gram, moment = self._added(behind)
        rows, columns = triangle(self.encoding.dimensions)
        end = 1 + len(rows)
        heads[:, COUNT] += behind.count
        heads[:, 1:end] += gram[:, rows, columns].astype(np.int64)
        heads[:, end : self.encoding.fields] += moment

    def _added(self, behind: "_Behind") -> tuple[Floats, Integers]:
        """Return what rows add to V and b, in steps. Features are whole steps of 2**-10, so that
        their products are whole steps of 2**-20: exactly what `observations` adds."""
        features = behind.features.astype(np.float64)
        gram: Floats = np.swapaxes(features, -1, -2) @ features
        liked = self.encoding.weight * (behind.rewards - self.encoding.baseline)
        each = np.rint(liked[..., None] * (features / FEATURE_STEPS) * STEPS)
        return gram, np.add.reduce(each, axis=1).astype(np.int64)


class FoldingRead:
    """Users' own sums, asked for when this is made. Those behind which many rows wait are folded
    once they are there; nobody waits for that, and if it fails the next reader does it. What
    is not awaited is not counted on /metrics either, where it would tell of the feedback."""

    def __init__(
        self, own: OwnEncoding, store: Store, generation: bytes, principals: Sequence[bytes]
    ) -> None:
        self._own = own
        self._store = store
        self._generation = generation
        self._principals = principals
        self._found = store.own(generation=generation, principals=principals)

    def __await__(self) -> Generator[Any, None, Sequence[Vector]]:
        found = yield from self._found.__await__()
        full = self._own.full
        long = [place for place, before in enumerate(found) if len(before) >= full]
        for principal, before in {self._principals[place]: found[place] for place in long}.items():
            after = self._own.folded(before)
            self._store.fold_own(
                generation=self._generation, principal=principal, before=before, after=after
            )
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Behind:
    """Rows of many users, filled up with features of 0, which add nothing."""

    features: npt.NDArray[np.int16]
    rewards: Floats
    count: Integers
