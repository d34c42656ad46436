"""A collaborative recommender as the workers hold it: the catalogue, and where things are kept."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.families.questions import Ask, plain_ids, refuse_unused
from discreet.families.collaborative.document import CollaborativeDocument
from discreet.decisions.recommender import Recommender, Slots, Stored
from discreet.errors import InvalidArgument

LIBRARY = "implicit"
_USES = ("category",)


@dataclass(frozen=True, slots=True)
class Listed:
    """An item as the catalogue shows it."""

    id: str
    title: str | None
    categories: tuple[str, ...]


class CollaborativeRecommender(Recommender):
    """The catalogue by category. What was learned is the family's, by generation."""

    def __init__(self, *, name: str, stored: Stored) -> None:
        document = stored.document
        assert isinstance(document, CollaborativeDocument)
        if importlib.util.find_spec(LIBRARY) is None:
            raise InvalidArgument(
                "algorithm", "needs one more package: pip install 'discreet[collaborative]'"
            )
        super().__init__(name=name, stored=stored, terms=None)
        self.document = document
        self.size = stored.next_slot
        self.live: Slots = np.array(sorted(self.id_of), dtype=np.intp)
        self.listed = tuple(
            Listed(item.id, item.title, tuple(dict.fromkeys(item.categories or ())))
            for item in document.items
            if not item.hidden
        )
        slots: dict[str, set[int]] = {}
        for item in document.items:
            for category in item.categories or ():
                slots.setdefault(category, set()).add(self.slot_of[item.id])
        self._slots_in: dict[str, Slots] = {
            category: np.array(sorted(held), dtype=np.intp) for category, held in slots.items()
        }

    def key(self, what: bytes) -> bytes:
        """Return the name of something that is kept for this recommender, and lost with it."""
        return self.generation + b"/" + what

    @property
    def rewards(self) -> bytes:
        """The address of what feedback adds up to."""
        return self.key(b"rewards")

    @property
    def categories(self) -> tuple[str, ...]:
        """Every category of an item that may be shown, in the catalogue's order."""
        return tuple(dict.fromkeys(name for item in self.listed for name in item.categories))

    def offer(self, ask: Ask) -> Slots:
        """Return the slots of what may be answered, or say which field cannot be used."""
        refuse_unused(ask, uses=_USES)
        available = self.available(exclude=ask.exclude, candidates=plain_ids(ask))
        if ask.category is None:
            return available
        if ask.category not in self._slots_in:
            raise InvalidArgument("category", "is not a category of any item of this recommender")
        return np.intersect1d(available, self._slots_in[ask.category], assume_unique=True)

    def slots_of(self, items: Sequence[str]) -> Slots:
        """Return the slots of a profile's items, or name the first that is not known here."""
        for position, item in enumerate(items):
            if item not in self.slot_of:
                raise InvalidArgument(
                    f"items.{position}", "is not an item of this recommender; see its catalogue"
                )
        return np.unique(np.array([self.slot_of[item] for item in items], dtype=np.intp))
