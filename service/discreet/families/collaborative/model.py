"""The released model: which items go together, and how popular each is; and the order it gives."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from discreet.families.collaborative.similarities import (
    SIMILARITY_FIELDS,
    Floats,
    Ints,
    ItemSimilarities,
    Slots,
    pack,
    unpack,
)
from discreet.families.contract import REWARD_STEPS
from discreet.families.questions import Question

_NOTHING: Slots = np.zeros(0, dtype=np.intp)
_MOST_SCORES = 2**21
"""Numbers that are worked out at once: 16 MiB."""
_FIELDS = (*SIMILARITY_FIELDS, "rewards", "variances", "recipe")


class TrainingRecipe(NamedTuple):
    """What a training was made from: if it is the same, training again would find the same.

    `changes` is how often profiles had changed by then.
    """

    changes: int
    neighbours: int
    most_profiles: int


NOT_TRAINED = TrainingRecipe(0, 0, 0)


@dataclass(slots=True, eq=False)
class ProfileQuestion(Question):
    """A question, with the slots that may be answered, ascending."""

    available: Slots


@dataclass(frozen=True, slots=True, eq=False)
class CollaborativeModel:
    """What answers are made from, beside the client's own profile.

    `rewards` is what feedback added up to, by slot, with the noise that was added to it at each
    release; `variances` is the variance of that noise, 0 where there is none.
    """

    similarities: ItemSimilarities
    rewards: Floats
    variances: Floats
    recipe: TrainingRecipe = NOT_TRAINED
    places: Slots = field(init=False)
    """Each slot's place by popularity, 0 for the most popular."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", self._places())

    @classmethod
    def blank(cls, size: int) -> "CollaborativeModel":
        """Return what is known of so many items at first: nothing."""
        return cls(ItemSimilarities.untrained(size), np.zeros(size), np.zeros(size))

    def grown(self, size: int) -> "CollaborativeModel":
        """Return the model with room for at least so many slots."""
        size = max(size, self.similarities.size)
        if len(self.rewards) >= size:
            return self
        return CollaborativeModel(
            self.similarities, padded(self.rewards, size), padded(self.variances, size), self.recipe
        )

    def popularity(self) -> Floats:
        """Return how popular each slot is: the profiles that hold it, and the rewards it earned.

        Of noisy rewards only what stands out counts: what is left above sqrt(2 ln n) deviations of
        the noise, which the largest of n draws seldom exceeds (soft thresholding, Donoho and
        Johnstone 1994). So noise alone never turns what profiles say upside down.
        """
        counts = padded(self.similarities.counts.astype(np.float64), len(self.rewards))
        threshold: Floats = np.sqrt(2.0 * np.log(max(len(counts), 1)) * self.variances)
        popularity: Floats = counts + np.maximum(self.rewards - threshold, 0.0)
        return popularity

    def _places(self) -> Slots:
        # Stable: of two that are equally popular, the older one goes first.
        order = np.argsort(-self.popularity(), kind="stable")
        places = np.empty(len(order), dtype=np.intp)
        places[order] = np.arange(len(order))
        return places

    def rank(self, questions: Sequence[ProfileQuestion], profiles: Sequence[Slots]) -> list[Slots]:
        """Return the best available slots for each question, without what the profile has.

        What goes with the profile stands first, the rest follows by popularity. A client that
        asks for many categories at once has its profile scored once.
        """
        ranked: list[Slots] = [
            self._popular(one.available, one.limit) if not len(profile) else _NOTHING
            for one, profile in zip(questions, profiles, strict=True)
        ]
        by_client: dict[bytes, list[int]] = {}
        for row, (question, profile) in enumerate(zip(questions, profiles, strict=True)):
            if len(profile):
                by_client.setdefault(question.client, []).append(row)
        groups, size = list(by_client.values()), len(self.places)
        at_once = max(1, _MOST_SCORES // max(size, 1))
        for start in range(0, len(groups), at_once):
            some = groups[start : start + at_once]
            scores = self.similarities.scores([profiles[rows[0]] for rows in some], size=size)
            for rows, each in zip(some, scores, strict=True):
                for row in rows:
                    question, profile = questions[row], profiles[row]
                    ranked[row] = self._unseen(question, profile, each)
        return ranked

    def _unseen(self, question: ProfileQuestion, profile: Slots, scores: Floats) -> Slots:
        """Return the best of what is available and not in the profile."""
        if question.limit > 1:
            unseen = np.setdiff1d(question.available, profile, assume_unique=True)
            return self._by_score(unseen, scores[unseen], question.limit)
        # One item: the best score, and of equals the most popular. What no score speaks for counts
        # as nothing, and what the profile has as less.
        left = np.maximum(scores, 0.0)
        left[profile[profile < len(left)]] = -1.0
        offered = left[question.available]
        if not len(offered) or (best := offered.max()) < 0:
            return _NOTHING
        equals = question.available[offered == best]
        first: Slots = equals[[self.places[equals].argmin()]]
        return first

    def _by_score(self, slots: Slots, scores: Floats, limit: int) -> Slots:
        liked = np.flatnonzero(scores > 0)
        if len(liked) > limit:
            # Sorting a whole catalogue would cost most of the answer: what cannot win is left out.
            least = np.partition(scores[liked], -limit)[-limit]
            liked = liked[scores[liked] >= least]
        order = np.lexsort((self.places[slots[liked]], -scores[liked]))[:limit]
        first = slots[liked[order]]
        return np.concatenate([first, self._popular(slots[scores <= 0], limit - len(first))])

    def _popular(self, slots: Slots, count: int) -> Slots:
        """Return the `count` most popular of these slots, in their order."""
        count = min(count, len(slots))
        if not count:
            return slots[:0]
        places = self.places[slots]
        few = np.argpartition(places, count - 1)[:count]
        return slots[few[np.argsort(places[few])]]

    def encode(self) -> bytes:
        """Return compressed arrays, for the store."""
        steps: Ints = np.rint(self.rewards * REWARD_STEPS).astype("<i8")
        return pack(
            {
                **self.similarities.arrays(),
                "rewards": steps,
                "variances": self.variances.astype("<f8"),
                "recipe": np.array(self.recipe, dtype="<i8"),
            }
        )

    @classmethod
    def decode(cls, content: bytes) -> "CollaborativeModel":
        """Return what `encode` wrote, or raise `ValueError`."""
        held = unpack(content, _FIELDS)
        similarities = ItemSimilarities.of(held)
        rewards, variances = held["rewards"] / REWARD_STEPS, held["variances"].astype(np.float64)
        if not similarities.size <= len(rewards) == len(variances):
            raise ValueError("the model contradicts itself")
        return cls(similarities, rewards, variances, TrainingRecipe(*map(int, held["recipe"])))


def padded(values: Floats, size: int) -> Floats:
    """Return the values with zeros behind them."""
    return np.concatenate([values, np.zeros(max(0, size - len(values)))])
