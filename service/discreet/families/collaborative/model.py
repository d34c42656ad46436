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

_FIELDS = (*SIMILARITY_FIELDS, "rewards", "variances", "recipe")


class TrainingRecipe(NamedTuple):
    """What a training was made from: if it is the same, training again would find the same.

    `changes` is how often profiles had changed by then.
    """

    changes: int
    neighbours: int
    most_profiles: int


NOT_TRAINED = TrainingRecipe(0, 0, 0)


@dataclass(frozen=True, slots=True, eq=False)
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
        scores_of: dict[bytes, Floats] = {}
        ranked = []
        for question, profile in zip(questions, profiles, strict=True):
            if not len(profile):
                ranked.append(self._popular(question.available, question.limit))
                continue
            scores = scores_of.get(question.client)
            if scores is None:
                scores = self.similarities.scores(profile, size=len(self.places))
                scores_of[question.client] = scores
            unseen = np.setdiff1d(question.available, profile, assume_unique=True)
            ranked.append(self._by_score(unseen, scores[unseen], question.limit))
        return ranked

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
