"""What a collaborative recommender is told, beside what all of them are."""

from typing import ClassVar, Literal

from pydantic import Field

from discreet.families.documents import Document, Number, RecommenderDocument

MOST_NEIGHBOURS = 500


class TrainingDocument(Document):
    """How the model is made, beside the answers, in a process of its own."""

    seconds: Number = Field(
        default=60.0,
        ge=1,
        le=86_400,
        description="At least so long between the beginnings of two trainings. Nothing is trained "
        "while no profile changes.",
    )
    neighbours: int = Field(
        default=100,
        ge=1,
        le=MOST_NEIGHBOURS,
        strict=True,
        description="How many items each item is compared with: its most similar ones.",
    )
    most_profiles: int = Field(
        default=100_000,
        ge=1,
        le=1_000_000,
        strict=True,
        description="If there are more, a random sample of about so many is trained on.",
    )


class UnprotectedDocument(Document):
    """There is no other mode here: whoever wants protection perturbs the profile before sending."""

    mode: Literal["none"] = Field(
        default="none",
        description="none: profiles are used exactly as they were sent. Protection happens before, "
        "on the user's own device.",
    )


class CollaborativeDocument(RecommenderDocument):
    """Recommends what goes with a client's profile. Knows nothing of privacy, and says so."""

    item_fields: ClassVar[frozenset[str]] = frozenset({"title", "categories"})

    algorithm: Literal["collaborative"]
    training: TrainingDocument = TrainingDocument()
    privacy: UnprotectedDocument = UnprotectedDocument()
