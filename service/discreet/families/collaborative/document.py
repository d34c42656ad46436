"""What a collaborative recommender is told, beside what all of them are."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from discreet.families.documents import (
    MOST_ITEMS,
    Document,
    FeedbackPrivacy,
    FeedbackPrivacyDocument,
    ReleasesDocument,
    protection,
)
from discreet.families.rewards import RewardedDocument

MOST_NEIGHBOURS = 500


class TrainingDocument(Document):
    """How items are compared. It happens with a release, in a process of its own."""

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


class CollaborativePrivacyDocument(Document):
    """Profiles are used as they were sent; feedback has a dial."""

    answers: Literal["exact", "on-device"] = Field(
        default="exact",
        description="exact: answers follow the client's profile without noise, and are booked as "
        "unlimited. on-device: the same answers, where every profile was made private on the "
        "client's device before it was sent (discreet hub): then they cost nothing more.",
    )
    feedback: FeedbackPrivacy = FeedbackPrivacyDocument()


class CollaborativeDocument(RewardedDocument):
    """Recommends what goes with a client's profile, and what is popular."""

    item_fields: ClassVar[frozenset[str]] = frozenset({"categories"})

    algorithm: Literal["collaborative"]
    training: TrainingDocument = TrainingDocument()
    releases: ReleasesDocument = ReleasesDocument()
    privacy: CollaborativePrivacyDocument = CollaborativePrivacyDocument()

    def most_items(self) -> int:
        """Answers look at a client's neighbours only, and items are compared elsewhere."""
        return MOST_ITEMS

    def fixed(self) -> Mapping[str, object]:
        """Return what cannot change: also what waiting feedback was priced for."""
        return {**super().fixed(), "privacy.feedback": protection(self.privacy.feedback)}
