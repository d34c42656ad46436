"""What a recommender by federated clusters is told, beside what all of them are."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from discreet.families.documents import (
    NAME_PATTERN,
    Document,
    Number,
    PeerUrl,
    RecommenderDocument,
)

MOST_DIMENSIONS = 64
MOST_MEMBERS = 256

_LOCAL_ONLY = ("items", "norms", "global_server", "sharing")
_GLOBAL_ONLY = ("members",)

Name = Annotated[str, Field(pattern=NAME_PATTERN, strict=True)]


class LearningDocument(Document):
    """How rewards are modelled: baseline + preferences . features, and some noise.

    Servers that share must agree on `baseline`; the others are each server's own.
    """

    baseline: Number = Field(
        default=0.5, ge=0, le=1, description="The reward of an item without any features."
    )
    exploration: Number = Field(
        default=0.7,
        ge=0,
        le=100,
        description="Standard errors that are added to an item's estimate: larger explores more.",
    )
    reward_variance: Number = Field(
        default=0.2, gt=0, le=1, description="Of a reward around its mean; 1/4 at the most."
    )
    margin: Number = Field(
        default=1.0,
        ge=0,
        le=100,
        description="Log-odds at which two users are taken to be alike: larger joins fewer.",
    )


class GlobalServerDocument(Document):
    """The instance that merges. The key for it is a secret, and so no part of this document."""

    name: Name
    url: PeerUrl
    recommender: Name | None = Field(
        default=None, description="The recommender's name there, if it is another one."
    )


class SharingDocument(Document):
    """What leaves this server, and when."""

    mode: Literal["noise", "none"] = Field(
        default="noise", description="none: letters without any noise, said aloud."
    )
    epsilon: Number = Field(
        default=1.0, ge=0.001, le=50, description="For one observation, over all letters."
    )
    delta: Number = Field(default=1e-6, gt=1e-12, le=0.1)
    first_letter: int | None = Field(
        default=None,
        ge=1,
        le=10**9,
        strict=True,
        description="Observations of a user before the first letter; chosen to exceed the noise "
        "if left out.",
    )
    growth: Number = Field(
        default=1.0,
        ge=0.01,
        le=100,
        description="Another letter once this many times as much has come as was sent before.",
    )


class FederatedClustersDocument(RecommenderDocument):
    """Learns linear preferences with users alike, here and, through noisy letters, elsewhere."""

    item_fields: ClassVar[frozenset[str]] = frozenset({"features"})

    algorithm: Literal["fclub"]
    role: Literal["local", "global"] = Field(
        description="local: serves users and may send letters; global: merges letters."
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
    members: list[Name] = Field(
        default_factory=list,
        max_length=MOST_MEMBERS,
        description="Labels of the keys that may send letters (global); every peer's if left out.",
    )

    def fixed(self) -> Mapping[str, object]:
        """Sums of another size or around another baseline cannot be carried over.

        Nor can observations that were given under one promise be sent under another.
        """
        return {
            **super().fixed(),
            "role": self.role,
            "dimensions": self.dimensions,
            "learning.baseline": self.learning.baseline,
            "sharing.mode": self.sharing.mode,
            "sharing.epsilon": self.sharing.epsilon,
            "sharing.delta": self.sharing.delta,
        }

    @model_validator(mode="after")
    def _one_role(self) -> Self:
        strangers = _GLOBAL_ONLY if self.role == "local" else _LOCAL_ONLY
        for name in strangers:
            if getattr(self, name) != type(self).model_fields[name].get_default(
                call_default_factory=True
            ):
                raise ValueError(f"{name} means nothing in the role {self.role}; leave it out")
        return self
