"""What a person writes for a recommender by adaptive partition."""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from discreet.families.contexts import ContextDocument
from discreet.families.documents import (
    NAME_PATTERN,
    AnswersPrivacyDocument,
    BudgetDocument,
    Document,
    FeedbackPrivacy,
    FeedbackPrivacyDocument,
    Number,
    OrExact,
    PeerUrl,
    ReleasesDocument,
    protection,
)
from discreet.families.rewards import RewardedDocument

MOST_VENDORS = 16
VENDOR = "\0vendor/"
"""Begins the name under which a vendor owns its slot. No item's id can: ids are printable."""


class PartitionDocument(Document):
    """How the context space is divided into cells.

    A cell splits into `segments` parts along one dimension after the other. One of depth k, which
    is level k / dimensions, splits once it has seen base * segments**(growth * k / dimensions)
    pieces of feedback, as far as the noise lets one tell.
    """

    segments: int = Field(default=2, ge=2, le=16, strict=True)
    base: Number = Field(default=100.0, ge=1, le=1e12)
    growth: Number = Field(default=1.0, gt=0, le=16)
    similarity: Number = Field(
        default=0.5,
        gt=0,
        le=4,
        description="In geometric mode epsilon grows with depth l as segments**(similarity * l).",
    )


class ExplorationDocument(Document):
    """Answers drawn without looking at the context, so that new items get a chance. Free."""

    rate: Number = Field(default=0.02, ge=0, le=1)


class VendorDocument(Document):
    """Another instance whose items may be recommended here.

    The key for it is a secret, and therefore no part of this document.
    """

    name: str = Field(pattern=NAME_PATTERN, strict=True)
    url: PeerUrl


class GuestPrivacyDocument(Document):
    """What anybody may learn about a reward that our items earned with another vendor's user."""

    epsilon: Number = Field(
        default=1.0, ge=0.001, le=50, description="For one reward, over all released models."
    )
    delta: Number = Field(default=1e-6, gt=1e-12, le=0.1)
    most_epsilon: Number = Field(
        default=4.0,
        ge=0.001,
        le=50,
        description="The most that one draw for another vendor's user may use. A vendor that asks "
        "for more gets a draw with this.",
    )
    budget: BudgetDocument | None = Field(
        default=None,
        description="What all draws for one asking vendor may cost together; every draw is booked "
        "either way. When it is spent, its users get what most guests like.",
    )


class PartitionAnswersDocument(AnswersPrivacyDocument):
    """What an answer may reveal about the context it was given."""

    mode: Literal["uniform", "geometric"] = Field(
        default="uniform",
        description="geometric: finer cells get a larger epsilon, and the largest is charged.",
    )
    vendor_share: Number = Field(
        default=0.5,
        gt=0,
        lt=1,
        description="The part of epsilon that a vendor's own choice may use; only when there are "
        "vendors to ask.",
    )


class PartitionPrivacyDocument(Document):
    """Two dials: what answers reveal about contexts, and what models reveal about feedback."""

    answers: OrExact[PartitionAnswersDocument] = PartitionAnswersDocument()
    feedback: FeedbackPrivacy = FeedbackPrivacyDocument()
    guests: GuestPrivacyDocument = GuestPrivacyDocument()


class AdaptivePartitionDocument(RewardedDocument):
    """Learns by region of the context space; protects each client's context."""

    why_few_items: ClassVar[str] = "every cell keeps sums, with their noise, for each of them"

    algorithm: Literal["p-dap"]
    context: ContextDocument
    partition: PartitionDocument = PartitionDocument()
    exploration: ExplorationDocument = ExplorationDocument()
    privacy: PartitionPrivacyDocument = PartitionPrivacyDocument()
    releases: ReleasesDocument = ReleasesDocument()
    vendors: list[VendorDocument] = Field(
        default_factory=list,
        max_length=MOST_VENDORS,
        description="Other instances that are asked for items, when they promise more than ours.",
    )

    def fixed(self) -> Mapping[str, object]:
        """Cells of another shape cannot be carried over, nor records be worth another noise."""
        return {
            **super().fixed(),
            **self.context.fixed(),
            "partition.segments": self.partition.segments,
            "privacy.feedback": protection(self.privacy.feedback),
            "privacy.guests": (self.privacy.guests.epsilon, self.privacy.guests.delta),
        }

    def owners(self) -> list[str]:
        """For the learner a vendor is an arm."""
        return super().owners() + [VENDOR + vendor.name for vendor in self.vendors]

    @model_validator(mode="after")
    def _distinct_vendors(self) -> Self:
        names = [vendor.name for vendor in self.vendors]
        if len(set(names)) != len(names):
            raise ValueError("vendors must have distinct names")
        return self
