"""What is popular, as the server shows it to anybody: the same noisy counts make a better list.

The hub asks for it together with the catalogue, under an id that is made up for this one question,
overall and for every category in the catalogue's order. The question depends on nothing private.
So reading noisy counts with the answer costs no privacy, whether or not the server is honest
(`discreet.families.collaborative.on_device.expectation`).

Rows are ranks, not numbers. An item of the overall row has its place there. Any other item is
placed by its category: if the first t of a category's row are among the A items of the overall row,
its p-th is taken to be about the (A p / t)-th of all; the mean over its categories counts, and an
item of no row comes last. Attention is taken to fall with the place r of n as exp(-6 r / n), which
is how it falls in MovieLens-1M, up to scale and within a factor of 2, over the first three quarters
of its films.

Where nothing is known yet, servers list items in the order of the catalogue. The end of a row that
is merely in that order says nothing, and is left out.
"""

import json
import math
import sqlite3
from collections.abc import Mapping, Sequence
from functools import lru_cache

from discreet.families.collaborative.on_device.catalogue import Catalogue
from discreet.families.collaborative.on_device.expectation import Expectation
from discreet.hub.catalogue import PublicCatalogue
from discreet.hub.database import get_value, set_value
from discreet.hub.server import RecommendedRow

FALL = 6.0
LONGEST_ACCIDENT = 12
"""So many items in the catalogue's order are no accident: one in 12! if they were shuffled."""


def informative_part(row: Sequence[str], catalogue: PublicCatalogue) -> list[str]:
    """Return a row without an end that is merely in the catalogue's order."""
    known = [item for item in row if item in catalogue.positions]
    places = [catalogue.positions[item] for item in known]
    begin = len(places)
    while begin > 0 and (begin == len(places) or places[begin - 1] < places[begin]):
        begin -= 1
    return known if len(places) - begin < LONGEST_ACCIDENT else known[:begin]


def ranks(rows: Sequence[RecommendedRow], catalogue: PublicCatalogue) -> dict[str, float]:
    """Return each listed item's place among all, 0 for the most popular; nothing if none is known.

    Rows that depended on who asked are passed over.
    """
    lists = {
        row.category: informative_part(row.items, catalogue) for row in rows if not row.personalised
    }
    overall = {item: place for place, item in enumerate(lists.pop(None, []))}
    if not overall:
        return {}
    guesses: dict[str, list[float]] = {}
    for listed in lists.values():
        shared = max(sum(item in overall for item in listed), 1)
        for place, item in enumerate(listed, start=1):
            if item not in overall:
                guesses.setdefault(item, []).append(len(overall) * place / shared)
    guessed = {item: sum(found) / len(found) for item, found in guesses.items()}
    return {**{item: float(place) for item, place in overall.items()}, **guessed}


def keep(work: sqlite3.Connection, places: Mapping[str, float], catalogue: PublicCatalogue) -> None:
    """Keep the places beside the catalogue that they belong to."""
    set_value(work, "popularity", {"catalogue": catalogue.digest, "places": dict(places)})


def load(work: sqlite3.Connection, catalogue: PublicCatalogue) -> dict[str, float]:
    """Return the places that were kept for this very catalogue; nothing for another one."""
    kept = get_value(work, "popularity")
    return kept["places"] if kept and kept["catalogue"] == catalogue.digest else {}


def attention(place: float | None, *, size: int) -> float:
    """Return the attention that an item at this place of so many gets; None is the last one."""
    return math.exp(-FALL * min(size if place is None else place, size) / size)


def expectation(
    catalogue: Catalogue, places: Mapping[str, float], *, typical: int
) -> Expectation | None:
    """Return how noisy counts shall be read; None reads them as the paper does."""
    return _expectation(catalogue, json.dumps(places, sort_keys=True), typical) if places else None


@lru_cache(maxsize=2)
def _expectation(catalogue: Catalogue, places: str, typical: int) -> Expectation:
    known, size = json.loads(places), len(catalogue.items)
    popularity = {item: attention(known.get(item), size=size) for item in catalogue.items}
    return Expectation.of(catalogue=catalogue, popularity=popularity, typical=typical)
