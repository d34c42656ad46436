"""What the page sends to its own server. Unknown fields are refused."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from discreet.families.collaborative.on_device.catalogue import Level
from discreet.hub.catalogue import LONGEST_NAME, MOST_CATEGORIES
from discreet.hub.choices import Choices

LevelName = Literal["no", "perturbed", "all"]
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]


class Body(BaseModel):
    """A request's body."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SeenBody(Body):
    """An item was seen, or was not after all."""

    item: Name
    seen: bool = Field(strict=True)


class ChoicesBody(Body):
    """The controls' positions."""

    overall: LevelName
    by_category: bool = Field(strict=True)
    levels: dict[Name, LevelName] = Field(default_factory=dict, max_length=MOST_CATEGORIES)
    epsilon: Annotated[float, Field(strict=True, allow_inf_nan=False)] | None = None

    def choices(self) -> Choices:
        """Return them as the hub knows them."""
        levels = {name: Level(level) for name, level in self.levels.items()}
        return Choices(Level(self.overall), self.by_category, levels, self.epsilon)


class LimitsBody(Body):
    """The total's limit, and the number of changed items before another drawing is offered."""

    limit: float = Field(strict=True, allow_inf_nan=False)
    threshold: int = Field(strict=True)


class DrawBody(Body):
    """An agreement: the last drawing known, the price shown, and whether earlier than stated."""

    after: int = Field(strict=True, ge=0)
    nano_epsilon: int = Field(strict=True, ge=0)
    early: bool = Field(default=False, strict=True)
