"""What anybody is shown who has no profile: by the released model, for everybody alike.

A device asks for it without a client id, so it is counted for nobody and leaves nothing behind.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

import numpy as np

from discreet.families.collaborative.model import CollaborativeModel, ProfileQuestion
from discreet.families.collaborative.profiles import NO_PROFILE
from discreet.families.collaborative.similarities import Slots


class PopularRow(NamedTuple):
    """The most popular items of a category, or of all where `category` is None."""

    category: str | None
    items: tuple[str, ...]


class PopularItems:
    """The same for everybody."""

    PURPOSE: ClassVar[str] = "popular items by category"

    def __init__(
        self,
        *,
        model: Callable[[], CollaborativeModel],
        visible: Slots,
        slots_in: Mapping[str, Slots],
        id_of: Mapping[int, str],
    ) -> None:
        self._model = model
        self._id_of = id_of
        self._rows: list[tuple[str | None, Slots]] = [(None, visible)]
        for category, slots in slots_in.items():
            shown = np.intersect1d(visible, slots, assume_unique=True)
            self._rows.append((category, shown))

    def rows(self, limit: int) -> list[PopularRow]:
        """Return a row over all items, and one for each category in the catalogue's order."""
        questions = [ProfileQuestion(b"", limit, slots) for _, slots in self._rows]
        ranked = self._model().rank(questions, [NO_PROFILE] * len(questions))
        return [
            PopularRow(category, tuple(self._id_of[slot] for slot in slots.tolist()))
            for (category, _), slots in zip(self._rows, ranked, strict=True)
        ]
