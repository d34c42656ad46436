"""What one worker knows of a collaborative recommender: the newest snapshot, and the rewards."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from discreet.families.collaborative.snapshot import Ints, Snapshot, untaught
from discreet.decisions.hearing import REWARD_STEPS
from discreet.decisions.recommender import Slots
from discreet.state.stores import Vector

Places = npt.NDArray[np.intp]


@dataclass(slots=True)
class Known:
    """A cache: whatever is newer in the store replaces it as a whole, between two answers."""

    snapshot: Snapshot = field(default_factory=untaught)
    version: int = 0
    _rewards: Vector = field(default_factory=lambda: np.zeros(0, np.int64))
    _places: Places | None = None

    def adopt(self, snapshot: Snapshot, *, version: int) -> None:
        """Answer from a newer snapshot from now on; an older one changes nothing."""
        if version > self.version:
            self.snapshot, self.version, self._places = snapshot, version, None

    def hear(self, sums: Vector) -> None:
        """Take over what all feedback adds up to: field 0 is how much there was."""
        self._rewards, self._places = sums[1:], None

    def places(self, size: int) -> Places:
        """Return each slot's place by popularity, 0 for the most popular.

        An item is as popular as the profiles that hold it and the rewards that it earned; of two
        that are equally popular, the older one goes first.
        """
        if self._places is None or len(self._places) < size:
            popular = _fitted(self.snapshot.counts, size) * REWARD_STEPS
            popular += _fitted(self._rewards, size)
            order = np.argsort(-popular, kind="stable")
            self._places = np.empty(size, dtype=np.intp)
            self._places[order] = np.arange(size)
        return self._places

    def rank(self, *, profile: Slots, offer: Slots, limit: int, size: int) -> Slots:
        """Return the best `limit` of what is offered, without what the profile has.

        What goes with the profile stands first, the rest follows by popularity.
        """
        places = self.places(size)
        if not len(profile):
            return offer[_smallest(places[offer], limit)]
        fresh = np.setdiff1d(offer, profile, assume_unique=True)
        scores = self.snapshot.scores(profile, size=size)[fresh]
        liked = np.flatnonzero(scores > 0)
        if len(liked) > limit:
            # Sorting a whole catalogue would cost most of the answer: what cannot win is left out.
            least = np.partition(scores[liked], -limit)[-limit]
            liked = liked[scores[liked] >= least]
        first = fresh[liked[np.lexsort((places[fresh[liked]], -scores[liked]))][:limit]]
        rest = fresh[scores <= 0]
        return np.concatenate([first, rest[_smallest(places[rest], limit - len(first))]])


def _smallest(values: Places, count: int) -> Places:
    """Return the positions of the `count` smallest of some distinct values, in their order."""
    count = min(count, len(values))
    if not count:
        return np.zeros(0, dtype=np.intp)
    few = np.argpartition(values, count - 1)[:count]
    return few[np.argsort(values[few])]


def _fitted(values: Ints, size: int) -> Ints:
    """Return the values with zeros behind them, or without those of slots that are not known."""
    fitted = np.zeros(size, np.int64)
    held = values[:size]
    fitted[: len(held)] = held
    return fitted
