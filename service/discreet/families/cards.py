"""The guarantee card: what a recommender promises, as data.

There is no second place where a promise is worded. The API answers with it, the page and the hub
show it, docs/privacy.md is checked against it, and the audit examines it.
"""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PriceCard:
    """One dial: what is protected by it, how, and what one use costs.

    `epsilon` None means exact: nothing is protected by this dial, and `mechanism` says why.
    """

    protects: str
    mechanism: str
    epsilon: float | None
    delta: float = 0.0
    budget_epsilon: float | None = None
    budget_delta: float | None = None
    unit: str = "one use"


@dataclass(frozen=True, slots=True)
class GuaranteeCard:
    """Who is protected against whom, between which neighbouring inputs, at what price.

    `closed_loop` says whether the promise covers everything that follows from a person's data with
    feedback on (True), or one release with all else held fixed (False). `release` is the number
    of the released model that answers are made from at this moment.
    """

    algorithm: str
    protected: str
    against: str
    neighbours: str
    unit: str
    closed_loop: bool
    answers: PriceCard
    feedback: PriceCard
    not_covered: tuple[str, ...]
    release: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the card as the API answers it."""
        return asdict(self)
