"""What a person writes for a recommender that learns from a vector of numbers."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from discreet.families.contexts import ContextDocument
from discreet.families.documents import (
    FEW_ITEMS,
    MOST_ITEMS,
    AnswersPrivacy,
    AnswersPrivacyDocument,
    Document,
    FeedbackPrivacy,
    FeedbackPrivacyDocument,
    Number,
    ReleasesDocument,
    protection,
)
from discreet.families.rewards import RewardedDocument

EXACT_RELEASES = ReleasesDocument(seconds=0.25, growth=0.0025)
"""Releases of exact sums cost time alone, and an optimistic model that is stale shows the same new
item to everybody until the next one."""
_RELEASES_OF_A_HALF_LIFE = 10
"""At least, where they cost time alone."""
PRIVATE_RELEASES = ReleasesDocument(seconds=10.0, growth=0.2, longest=86_400.0)
"""Noise is drawn for every release, so with private feedback there should be few of them. A day is
the longest because several records of a client in one release cost more than in several."""


class ContextualExplorationDocument(Document):
    """Answers drawn without looking at the context, so that every item gets a chance. Free."""

    rate: Number = Field(
        default=0.02,
        ge=0,
        le=1,
        description="The least share of answers that explore. While little is known it is more; "
        "none is the least if both dials are off and all items were tried.",
    )


class ContextualLearningDocument(Document):
    """How long feedback counts."""

    half_life_days: Number = Field(
        default=30.0,
        ge=0.0001,
        le=36_500,
        description="Feedback this old counts half. Shorter follows change sooner and is noisier.",
    )


class ContextualPrivacyDocument(Document):
    """Two dials: what answers reveal about contexts, and what models reveal about feedback."""

    answers: AnswersPrivacy = AnswersPrivacyDocument()
    feedback: FeedbackPrivacy = FeedbackPrivacyDocument()


class ContextualDocument(RewardedDocument):
    """Learns what people with such a context like; protects each client's context and feedback."""

    why_few_items: ClassVar[str] = (
        "every release draws noise for each of them, unless privacy.feedback is exact"
    )

    algorithm: Literal["contextual"]
    context: ContextDocument
    exploration: ContextualExplorationDocument = ContextualExplorationDocument()
    learning: ContextualLearningDocument = ContextualLearningDocument()
    privacy: ContextualPrivacyDocument = ContextualPrivacyDocument()
    releases: ReleasesDocument | None = Field(
        default=None,
        description="When models are released. By default every quarter second at first and "
        "then every 400th of the recommender's age if feedback is exact; every 10 seconds and then "
        "every fifth of its age if it is private.",
    )

    def pace(self) -> ReleasesDocument:
        """Return when models are released, as written or by default."""
        if self.releases is not None:
            return self.releases
        if self.privacy.feedback != "exact":
            return PRIVATE_RELEASES
        # Feedback fades with releases: models that are rarer than that would follow nothing.
        fading = self.learning.half_life_days * 86_400.0 / _RELEASES_OF_A_HALF_LIFE
        longest = min(EXACT_RELEASES.longest, max(EXACT_RELEASES.seconds, fading))
        return EXACT_RELEASES.model_copy(update={"longest": longest})

    def most_items(self) -> int:
        """Noise is what takes time."""
        return MOST_ITEMS if self.privacy.feedback == "exact" else FEW_ITEMS

    def fixed(self) -> Mapping[str, object]:
        """Sums of other features cannot be carried over, nor records be worth another noise."""
        return {
            **super().fixed(),
            **self.context.fixed(),
            "privacy.feedback": protection(self.privacy.feedback),
        }
