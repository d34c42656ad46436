"""What a person lets out: one control overall, or one for each category.

Changing a control changes nothing outside this device and costs nothing. A choice takes effect in
the next drawing.
"""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.families.collaborative.on_device.catalogue import Concerns, Level
from discreet.errors import InvalidArgument
from discreet.hub.catalogue import PublicCatalogue
from discreet.hub.database import fact, keep_fact

EPSILON_LEAST, EPSILON_MOST = 0.01, 10.0


@dataclass(frozen=True, slots=True)
class Choices:
    """The controls' positions. `levels` count only with `by_category`, below "perturbed".

    `epsilon` is the strength of the noise where its owner set it themselves; None leaves it to the
    quantification, which knows the catalogue and the other controls and nothing else.
    """

    overall: Level = Level.PERTURBED
    by_category: bool = False
    levels: Mapping[str, Level] = field(default_factory=dict)
    epsilon: float | None = None

    def __post_init__(self) -> None:
        if self.epsilon is not None and not EPSILON_LEAST <= self.epsilon <= EPSILON_MOST:
            raise InvalidArgument("epsilon", f"must be from {EPSILON_LEAST:g} to {EPSILON_MOST:g}")

    def concerns(self, catalogue: PublicCatalogue) -> Concerns:
        """Return what they mean for a catalogue.

        A category that the catalogue no longer has, or that has no items, has nothing to say.
        """
        if self.overall is not Level.PERTURBED or not self.by_category:
            return Concerns(self.overall)
        return Concerns.choose(
            {name: level for name, level in self.levels.items() if catalogue.sizes.get(name)}
        )

    def document(self) -> dict[str, Any]:
        """Return them as JSON, always in the same order."""
        return {
            "overall": self.overall.value,
            "by_category": self.by_category,
            "levels": {name: level.value for name, level in sorted(self.levels.items())},
            "epsilon": self.epsilon,
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Choices":
        """Return what was kept as JSON."""
        return cls(
            Level(document["overall"]),
            document["by_category"],
            {name: Level(level) for name, level in document["levels"].items()},
            document["epsilon"],
        )


def load(work: sqlite3.Connection) -> Choices:
    """Return the controls' positions; the first ones are "perturbed", overall."""
    kept = fact(work, "choices")
    return Choices.of(kept) if kept else Choices()


def keep(work: sqlite3.Connection, choices: Choices) -> None:
    """Keep the controls' positions."""
    keep_fact(work, "choices", choices.document())
