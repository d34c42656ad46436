"""A map of what a released model would recommend first, where a context is a vector of two numbers.

It is drawn from the released model and from nothing else, so it tells nothing that the model does
not: whoever may see answers may see it, and nobody is charged. It is drawn once for each model that
a worker adopts, at a number of points that shrinks as the catalogue grows, so that no caller can
make it expensive.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from discreet.families.answering import DecidingRecommender
from discreet.families.contexts import ContextDocument, VectorContextDocument
from discreet.families.stored import Slots

DIMENSIONS = 2
FINEST = 32
COARSEST = 4
_MOST_UTILITIES = 200_000
"""Points times items: a few milliseconds of any model's time."""

M = TypeVar("M")
FirstChoices = Callable[[M, npt.NDArray[np.float64]], Slots]
"""Returns, for each context, the slot of the item that an answer is most likely to be."""


@dataclass(frozen=True, slots=True)
class DrawnMap:
    """`first[row][column]` is the position in `items` of the first choice at the middle of a field.

    Columns divide the first number of the context, rows the second, both from 0 to 1. `release` is
    the number of the model that it was drawn from; 0 has learned nothing, and there is no map.
    """

    release: int
    items: tuple[str, ...]
    first: tuple[tuple[int, ...], ...]


class ModelMap:
    """What the page colours the square of contexts by."""

    PURPOSE: ClassVar[str] = "a map of first choices"

    def __init__(
        self, recommender: DecidingRecommender[Any], first_choices: FirstChoices[Any]
    ) -> None:
        self._recommender = recommender
        self._first_choices = first_choices
        self._drawn = DrawnMap(0, (), ())

    def drawn(self) -> DrawnMap:
        """Return the map of the model that answers are made from now."""
        current = self._recommender.current
        if current.number and self._drawn.release != current.number:
            self._drawn = self._draw(current.number, current.model)
        return self._drawn

    def _draw(self, release: int, model: Any) -> DrawnMap:
        recommender = self._recommender
        count = len(recommender.visible)
        if not count:
            return DrawnMap(release, (), ())
        size = fields_across(count)
        middles = (np.arange(size) + 0.5) / size
        points = np.stack([np.tile(middles, size), np.repeat(middles, size)], axis=1)  # row by row
        slots = self._first_choices(model, points).reshape(size, size)
        chosen = np.unique(slots)
        return DrawnMap(
            release,
            tuple(recommender.id_of[int(slot)] for slot in chosen),
            tuple(tuple(row) for row in np.searchsorted(chosen, slots).tolist()),
        )


def drawable(context: ContextDocument) -> bool:
    """Tell whether contexts are points of a square: named fields become numbers that are not, such
    as a number's place in its range and whether it is missing."""
    return isinstance(context, VectorContextDocument) and context.size == DIMENSIONS


def fields_across(items: int) -> int:
    """Return how fine a map is with so many items."""
    return max(COARSEST, min(FINEST, isqrt(_MOST_UTILITIES // max(items, 1))))
