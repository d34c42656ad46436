"""What a person writes for a recommender by voters' weights, beside what all documents have."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from discreet.families.documents import (
    MOST_ITEMS,
    BudgetDocument,
    Document,
    ItemDocument,
    Number,
    RecommenderDocument,
    UnusableItem,
)
from discreet.families.p_rec.credits import MOST_OBJECTS
from discreet.families.p_rec.run_parameters import MOST_VOTERS

MOST_ROUNDS = 1_000_000

Whole = Annotated[int, Field(strict=True, ge=0, le=MOST_ROUNDS)]


class VoterPrivacyDocument(Document):
    """What all clients' runs together may reveal about one voter."""

    budget: BudgetDocument = Field(
        default=BudgetDocument(epsilon=10.0, delta=1e-6),
        description="The voters': every client's run is charged to it when it begins. Half of "
        "delta is for runs that reveal more than their epsilon, half for the conversion from rho.",
    )
    run_delta: Number = Field(
        default=1e-9,
        gt=0,
        le=0.01,
        description="The probability with which one run may reveal more than its epsilon.",
    )
    on_exhausted: Literal["degrade", "refuse"] = Field(
        default="degrade",
        description="degrade: new runs are answered at random, without looking at votes; "
        "refuse: answer 403.",
    )

    @model_validator(mode="after")
    def _room_for_runs(self) -> Self:
        if self.budget.delta < 2 * self.run_delta:
            raise ValueError(
                f"budget.delta must be at least {2 * self.run_delta:g}, twice run_delta: a smaller "
                "budget pays for no run at all"
            )
        return self


class ClientRunsDocument(Document):
    """How many runs one client may begin: each is paid for by all voters together."""

    most: int = Field(
        default=1, ge=1, le=1_000_000, strict=True, description="Runs of one client in one window."
    )
    window_seconds: Number = Field(
        default=2_592_000.0,
        ge=1,
        le=3.2e9,
        description="How long a window is. Windows begin at multiples of this since 1970.",
    )


class VotersDocument(RecommenderDocument):
    """Recommends what like-minded voters vote for; protects each voter against every client."""

    algorithm: Literal["p-rec"]
    objects: int = Field(
        ge=2,
        le=MOST_OBJECTS,
        strict=True,
        description="The most objects that a round has (m). Rounds have from 2 to that many, and "
        "cost the voters the same.",
    )
    most_shown: int = Field(
        default=1,
        ge=1,
        le=MOST_OBJECTS,
        strict=True,
        description="The most objects that an answer shows, the largest `limit` of a request. "
        "Voters pay for each of them, in every run.",
    )
    horizon: int = Field(
        ge=1,
        le=MOST_ROUNDS,
        strict=True,
        description="How many rounds a client's run has (T). After it a new run begins.",
    )
    peers: int = Field(
        ge=1,
        le=MOST_VOTERS,
        strict=True,
        description="How many like-minded voters a client must have for votes to be used (P). More "
        "make a run cost less.",
    )
    radius: Whole = Field(
        default=0,
        description="How often a like-minded voter may vote for what the client dislikes (R).",
    )
    diversity: Whole = Field(
        default=0,
        description="In how many rounds a client may like more than one object (D).",
    )
    voters: int = Field(
        default=1_000_000,
        ge=1,
        le=100_000_000,
        strict=True,
        description="The most voters there will ever be (n). Votes of further ones are refused.",
    )
    voting_ends: Literal["first_answer", "when_closed"] = Field(
        default="first_answer",
        description="first_answer: a round is closed by the first answer from it; when_closed: "
        "rounds are answered from once they have been closed.",
    )
    client_runs: ClientRunsDocument = Field(
        default=ClientRunsDocument(),
        description="One client cannot spend the voters' budget alone: further runs are answered "
        "at random, or refused, as privacy.on_exhausted says.",
    )
    privacy: VoterPrivacyDocument = VoterPrivacyDocument()

    def fixed(self) -> Mapping[str, object]:
        """What a run was charged for must hold until it ends."""
        names = ("objects", "most_shown", "horizon", "peers", "radius", "diversity", "voters")
        own = {name: getattr(self, name) for name in names}
        return {**super().fixed(), **own, "privacy.run_delta": self.privacy.run_delta}

    def most_items(self) -> int:
        """Items only describe the objects of rounds."""
        return MOST_ITEMS

    def require_usable(self, item: ItemDocument) -> None:
        """Rounds bring their own objects; an item of that id says what it is called."""
        super().require_usable(item)
        if item.hidden:
            raise UnusableItem("not supported by p-rec: rounds say what is shown", field="hidden")
