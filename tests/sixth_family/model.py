"""The released model: a noisy count of likes and dislikes for each item."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.families.questions import Question

Floats = npt.NDArray[np.float64]


@dataclass(slots=True, eq=False)
class OverallQuestion(Question):
    """A question for some of these slots."""

    available: npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class OverallModel:
    """Likes and dislikes by slot, noise included."""

    liked: Floats
    disliked: Floats

    def rank(self, questions: Sequence[OverallQuestion]) -> list[list[int]]:
        """Return the best slots for each question, by the share of likes, shrunk to one half."""
        seen = np.maximum(self.liked + self.disliked, 0.0) + 20.0
        shares = (self.liked + 10.0) / seen
        return [
            one.available[np.argsort(-shares[one.available], kind="stable")][: one.limit].tolist()
            for one in questions
        ]
