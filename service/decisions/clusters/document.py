"""What a recommender by federated clusters is told, beside what all of them are."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from service.decisions.documents import (
    NAME_PATTERN,
    Document,
    Number,
    PeerUrl,
    RecommenderDocument,
)

MOST_DIMENSIONS = 64
MOST_MEMBERS = 256

_LOCAL_ONLY = ("items", "norms", "learning", "global_server", "sharing")
_GLOBAL_ONLY = ("members",)

MemberName = Annotated[str, Field(pattern=NAME_PATTERN, strict=True)]


class LearningDocument(Document):
    """How items are judged: ridge regression, and a bonus for what is not known well."""

    ridge: Number = Field(default=1.0, gt=0, le=1e6)
    width: Number = Field(
        default=0.5,
        ge=0,
        le=1e3,
        description="Standard errors that are added to an item's estimate: larger explores more.",
    )


class GlobalServerDocument(Document):
    """The instance that merges. The key for it is a secret, and so no part of this document."""

    name: str = Field(pattern=NAME_PATTERN, strict=True)
    url: PeerUrl


class SharingDocument(Document):
    """What leaves this server, and when."""

    epsilon: Number = Field(
        default=1.0, ge=0.001, le=50, description="For one observation, over all uploads."
    )
    delta: Number = Field(default=1e-6, gt=0, le=0.1)
    growth: Number = Field(
        default=2.0,
        gt=1,
        le=16,
        description="Upload when a stream has this many times the observations of its last upload.",
    )


class FederatedClustersDocument(RecommenderDocument):
    """Learns linear preferences per cluster of users, with other servers' noisy sums."""

    item_fields: ClassVar[frozenset[str]] = frozenset({"features"})

    algorithm: Literal["fclub"]
    role: Literal["local", "global"] = Field(
        description="local: serves users and may upload noisy sums; global: merges them."
    )
    dimensions: int = Field(
        ge=1, le=MOST_DIMENSIONS, strict=True, description="Numbers in an item's features."
    )
    norms: Literal["refuse", "scale"] = Field(
        default="refuse",
        description="What to do with features of Euclidean norm above 1 (local).",
    )
    learning: LearningDocument = LearningDocument()
    global_server: GlobalServerDocument | None = Field(
        default=None, description="Whom to share with (local); nobody if left out."
    )
    sharing: SharingDocument = SharingDocument()
    members: list[MemberName] = Field(
        default_factory=list,
        max_length=MOST_MEMBERS,
        description="Labels of the keys that may upload (global); every peer's if left out.",
    )

    def fixed(self) -> Mapping[str, object]:
        """Sums of another size, or on the other side, cannot be carried over."""
        return {**super().fixed(), "role": self.role, "dimensions": self.dimensions}

    @model_validator(mode="after")
    def _one_role(self) -> Self:
        strangers = _GLOBAL_ONLY if self.role == "local" else _LOCAL_ONLY
        for name in strangers:
            if name in self.model_fields_set and getattr(self, name):
                raise ValueError(f"{name} means nothing in the role {self.role}; leave it out")
        return self
