"""The public half of profile perturbation: a catalogue's categories, and what a person agreed to.

Items with the same categories are interchangeable to everything that follows, so a catalogue is
compiled once into groups of them. MovieLens-1M has 3,883 films in 301 groups. Nothing in this
module has ever seen a history.

A person's agreement is one of three levels, overall or for each category. Where they disagree
about an item, the more private one decides:

- **hidden**: one of its categories says "no". The item never leaves and is not counted anywhere.
- **open**: all of its categories say "all". The item leaves as it is, if it is in the history.
- **protected**: everything else. It is counted, with noise, in its "perturbed" categories only.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


TYPICAL = 100
"""Items in a history, where nothing is known about the catalogue's users. It must be public."""


class Level(Enum):
    """What may be told: nothing, what the noise leaves of it, or everything."""

    NO = "no"
    PERTURBED = "perturbed"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Concerns:
    """The control's position: `overall`, and exceptions by category while that is "perturbed".

    `exceptions` are kept sorted, so that equal choices are equal values; `choose` makes them from
    a mapping.
    """

    overall: Level = Level.PERTURBED
    exceptions: tuple[tuple[str, Level], ...] = ()

    def __post_init__(self) -> None:
        if self.exceptions and self.overall is not Level.PERTURBED:
            raise InvalidArgument("concerns", "categories are chosen only below overall: perturbed")
        names = [name for name, _ in self.exceptions]
        if len(set(names)) < len(names):
            raise InvalidArgument("concerns", "names a category twice")
        if names != sorted(names):
            raise InvalidArgument("concerns", "exceptions must be sorted: use Concerns.choose")

    @classmethod
    def choose(cls, levels: Mapping[str, Level]) -> "Concerns":
        """Return the choice by category; a category that is not named is perturbed."""
        chosen = ((name, level) for name, level in levels.items() if level is not Level.PERTURBED)
        return cls(Level.PERTURBED, tuple(sorted(chosen, key=lambda pair: pair[0])))


PERTURBED = Concerns()
"""The overall control in its middle position: S-EpicRec."""
NOTHING = Concerns(Level.NO)
EVERYTHING = Concerns(Level.ALL)


@dataclass(frozen=True, slots=True, eq=False)
class Catalogue:
    """Items and their categories, compiled. Make one with `Catalogue.of`; it is compared by
    identity, since it is large and there is one.

    `incidence` has a row a group and a column a category; `members` says which items a group has.
    """

    items: tuple[str, ...]
    categories: tuple[str, ...]
    group_of: Mapping[str, int]
    incidence: Flags
    members: tuple[tuple[str, ...], ...]
    sizes: Integers = field(repr=False)

    @classmethod
    def of(cls, items: Mapping[str, Collection[str]]) -> "Catalogue":
        """Compile item -> its categories."""
        if not items:
            raise InvalidArgument("items", "there must be at least one item")
        patterns: dict[frozenset[str], list[str]] = {}
        for item, names in items.items():
            if isinstance(names, str):
                raise InvalidArgument("items", f"the categories of {item!r} must be a collection")
            if not names:
                raise InvalidArgument(
                    "items", f"{item!r} has no category: give it one, such as 'other'"
                )
            patterns.setdefault(frozenset(names), []).append(item)
        categories = tuple(sorted(frozenset().union(*patterns)))
        column = {name: at for at, name in enumerate(categories)}
        # Neighbours in this order share their first categories: rounding along it errs least.
        ordered = sorted(patterns, key=lambda names: sorted(column[name] for name in names))
        incidence = np.zeros((len(ordered), len(categories)), dtype=np.bool_)
        for row, names in enumerate(ordered):
            incidence[row, [column[name] for name in names]] = True
        incidence.setflags(write=False)
        members = tuple(tuple(patterns[names]) for names in ordered)
        sizes = np.array([len(group) for group in members], dtype=np.int64)
        sizes.setflags(write=False)
        return cls(
            items=tuple(items),
            categories=categories,
            group_of={item: at for at, group in enumerate(members) for item in group},
            incidence=incidence,
            members=members,
            sizes=sizes,
        )

    def tally(self, items: Iterable[str]) -> Integers:
        """Return how many of the items each group has; each counts once."""
        counts = np.zeros(len(self.members), dtype=np.int64)
        for item in set(items):
            group = self.group_of.get(item)
            if group is None:
                raise InvalidArgument("items", f"{item!r} is not in the catalogue")
            counts[group] += 1
        return counts

    def profile(self, items: Iterable[str]) -> dict[str, int]:
        """Return how many of the items each category has: the bars of a picture."""
        counts = self.tally(items) @ self.incidence
        return dict(zip(self.categories, map(int, counts), strict=True))

    def levels(self, concerns: Concerns) -> tuple[Level, ...]:
        """Return the level of every category."""
        exceptions = dict(concerns.exceptions)
        unknown = sorted(set(exceptions) - set(self.categories))
        if unknown:
            raise InvalidArgument("concerns", f"no category is called {unknown[0]!r}")
        return tuple(exceptions.get(name, concerns.overall) for name in self.categories)


@dataclass(frozen=True, slots=True, eq=False)
class ReleaseScope:
    """What an agreement makes of a catalogue: public, and computed once for both.

    `protected` and `open` are positions of groups; `counted` are positions of the categories that
    are counted with noise: those on "perturbed" with at least one protected item. `incidence` has
    a row a protected group and a column a counted category. `rows` are its maximal distinct rows.
    """

    open: Integers
    protected: Integers
    counted: Integers
    incidence: Floats
    sizes: Integers
    rows: Flags


@lru_cache(maxsize=64)
def scope_of(catalogue: Catalogue, concerns: Concerns) -> ReleaseScope:
    """Sort the catalogue's groups by the agreement."""
    levels = catalogue.levels(concerns)
    refused = np.array([level is Level.NO for level in levels])
    perturbed = np.array([level is Level.PERTURBED for level in levels])
    hidden = catalogue.incidence[:, refused].any(axis=1)
    touched = catalogue.incidence[:, perturbed].any(axis=1)
    protected = np.flatnonzero(touched & ~hidden)
    counted = np.flatnonzero(perturbed & catalogue.incidence[protected].any(axis=0))
    patterns = catalogue.incidence[np.ix_(protected, counted)]
    return ReleaseScope(
        open=np.flatnonzero(~touched & ~hidden),
        protected=protected,
        counted=counted,
        incidence=patterns.astype(np.float64),
        sizes=catalogue.sizes[protected],
        rows=maximal_rows(patterns),
    )


def maximal_rows(patterns: Flags) -> Flags:
    """Return the distinct rows that no other row contains.

    Whatever bounds the sum over a row bounds the sum over every row inside it, as long as what is
    summed is not negative.
    """
    if not patterns.size:
        return patterns
    distinct: Flags = np.unique(patterns, axis=0)
    weights = distinct.astype(np.float32)  # exact: sums of at most 2**24 ones
    lengths = weights.sum(axis=1)
    inside = weights @ weights.T == lengths[:, None]
    np.fill_diagonal(inside, False)
    maximal: Flags = distinct[~inside.any(axis=1)]
    return maximal
