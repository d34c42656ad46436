"""What a person lets out: one control overall, or one for each category.

Changing a control changes nothing outside this device and costs nothing. A choice takes effect in
the next list.
"""

import sqlite3
from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from discreet.families.collaborative.on_device.catalogue import Concerns, Level
from discreet.hub.catalogue import MOST_CATEGORIES, CategoryName, PublicCatalogue
from discreet.hub.database import get_value, set_value

EPSILON_LEAST, EPSILON_MOST = 0.01, 10.0

OwnEpsilon = Annotated[float, Field(strict=True, ge=EPSILON_LEAST, le=EPSILON_MOST)]


class Choices(BaseModel):
    """The controls' positions. `levels` count only with `by_category`, below "perturbed".

    A category that `levels` does not name was not there when its owner chose: it is "no".

    `epsilon` is the strength of the noise where its owner set it themselves; None leaves it to the
    quantification, which knows the catalogue and the other controls and nothing else.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    overall: Level = Level.PERTURBED
    by_category: bool = Field(default=False, strict=True)
    levels: dict[CategoryName, Level] = Field(default_factory=dict, max_length=MOST_CATEGORIES)
    epsilon: OwnEpsilon | None = None

    def concerns(self, catalogue: PublicCatalogue) -> Concerns:
        """Return what they mean for a catalogue, pinned categories included."""
        if self.overall is not Level.PERTURBED or not self.by_category:
            return Concerns(self.overall)
        return Concerns.choose(
            {name: self.levels.get(name, Level.NO) for name in catalogue.compiled.categories}
        )

    def completed(self, before: "Choices", names: Iterable[str]) -> "Choices":
        """Return this with a level for every category that its owner could see when choosing.

        One that is not named is "perturbed", unless it came after the choice `before` and was
        never chosen for: then it stays "no" until it is.
        """
        if not self.by_category:
            return self
        new = Level.NO if before.by_category else Level.PERTURBED
        levels = {
            name: Level.PERTURBED if name in before.levels else new
            for name in names
            if name not in self.levels
        }
        return self.model_copy(update={"levels": {**self.levels, **levels}})


def load(work: sqlite3.Connection) -> Choices:
    """Return the controls' positions; at first nothing may leave."""
    return Choices.model_validate(get_value(work, "choices", {"overall": "no"}))


def keep(work: sqlite3.Connection, choices: Choices) -> None:
    """Keep the controls' positions."""
    set_value(work, "choices", choices.model_dump(mode="json"))
