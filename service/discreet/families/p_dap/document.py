"""What a recommender by adaptive partition is told, beside what all of them are."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from discreet.families.documents import (
    MOST_DIMENSIONS,
    NAME_PATTERN,
    BudgetDocument,
    Document,
    Number,
    PeerUrl,
    RecommenderDocument,
)

MOST_VENDORS = 16
VENDOR = "\0vendor/"
"""Begins the name under which a vendor owns its slot. No item's id can: ids are printable."""


class ContextDocument(Document):
    """The shape of what callers tell about a client."""

    dimensions: int = Field(
        ge=1, le=MOST_DIMENSIONS, strict=True, description="Numbers in [0, 1] per request."
    )


class PartitionDocument(Document):
    """How the context space is divided into cells.

    A cell of level l splits into segments**dimensions smaller ones once it has seen
    base * segments**(growth * l) observations.
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


class VendorPrivacyDocument(Document):
    """What other vendors may learn about the rewards that our items earned with their users."""

    epsilon: Number = Field(
        default=1.0, ge=0.001, le=50, description="For one reward, over all running sums."
    )
    budget: Number = Field(
        default=4.0,
        gt=0,
        le=1e6,
        description="For one reward, over all changes of epsilon. Once it is spent no sums are "
        "told any more.",
    )


class PrivacyDocument(Document):
    """What each answer may tell about a context, and all of them together about a client."""

    epsilon: Number = Field(default=1.0, gt=0, le=50, description="For one recommended item.")
    mode: Literal["uniform", "geometric", "none"] = Field(
        default="uniform",
        description="geometric: finer cells get a larger epsilon, and the largest is charged; "
        "none: no protection at all, said aloud.",
    )
    vendor_share: Number = Field(
        default=0.5,
        gt=0,
        lt=1,
        description="The part of epsilon that a vendor's own choice may use; only when there are "
        "vendors to ask.",
    )
    budget: BudgetDocument = BudgetDocument(epsilon=20.0, delta=1e-6)
    accounting: Literal["basic", "zcdp"] = "basic"
    on_exhausted: Literal["degrade", "refuse"] = Field(
        default="degrade",
        description="degrade: keep answering, from a distribution that ignores the client; "
        "refuse: answer 403.",
    )

    @model_validator(mode="after")
    def _zcdp_needs_delta(self) -> Self:
        if self.accounting == "zcdp" and self.budget.delta == 0:
            raise ValueError(
                "budget.delta must be greater than 0 with zcdp accounting: "
                "it proves (epsilon, delta) guarantees only"
            )
        return self


class AdaptivePartitionDocument(RecommenderDocument):
    """Learns by region of the context space; protects each client's context."""

    algorithm: Literal["p-dap"]
    context: ContextDocument
    partition: PartitionDocument = PartitionDocument()
    exploration: ExplorationDocument = ExplorationDocument()
    privacy: PrivacyDocument = PrivacyDocument()
    vendors: list[VendorDocument] = Field(
        default_factory=list,
        max_length=MOST_VENDORS,
        description="Other instances that are asked for items, when they promise more than ours.",
    )
    vendor_privacy: VendorPrivacyDocument = VendorPrivacyDocument()

    def fixed(self) -> Mapping[str, object]:
        """Cells of another shape cannot be carried over."""
        return {
            **super().fixed(),
            "context.dimensions": self.context.dimensions,
            "partition.segments": self.partition.segments,
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
