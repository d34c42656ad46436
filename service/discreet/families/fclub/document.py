"""What a person writes for a recommender by federated clusters."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from discreet.errors import InvalidArgument
from discreet.families.documents import (
    NAME_PATTERN,
    AnswersPrivacy,
    Document,
    FeedbackPrivacy,
    FeedbackPrivacyDocument,
    ItemDocument,
    Number,
    PeerUrl,
    ReleasesDocument,
    UnusableItem,
    protection,
)
from discreet.families.fclub.features import coordinates
from discreet.families.rewards import RewardedDocument

MOST_DIMENSIONS = 64
MOST_MEMBERS = 256

_LOCAL_ONLY = ("items", "norms", "global_server", "sharing", "privacy")
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
    kinds: int = Field(
        default=8,
        ge=1,
        le=64,
        strict=True,
        description="Kinds of users that a local server tells apart (protects: person).",
    )


class GlobalServerDocument(Document):
    """The instance that merges. The key for it is a secret, and so no part of this document."""

    name: Name
    url: PeerUrl
    recommender: Name | None = Field(
        default=None, description="The recommender's name there, if it is another one."
    )


class SharingDocument(Document):
    """When a user's observations are shared with other users."""

    first_update: int | None = Field(
        default=None,
        ge=1,
        le=10**9,
        strict=True,
        description="Observations of a user before they are first in a noisy update. Left out: 10 "
        "(protects: person, where it is also how many observations a person counts as), or as many "
        "as exceed the noise (protects: observation).",
    )
    growth: Number | None = Field(
        default=None,
        ge=0.01,
        le=100,
        description="Again once this many times as much has come as there was the last time. "
        "Left out: 0.3 (protects: person) or 1 (protects: observation).",
    )


class ClusterPrivacyDocument(Document):
    """Whom noisy updates protect, and two dials: what answers and what updates reveal."""

    protects: Literal["person", "observation"] = Field(
        default="person",
        description="person: all that one person did, against everybody else; epsilon is for one "
        "release that the person takes part in, budget for all of them. observation: one item "
        "shown and its reward, against everybody outside this server; users of this server are "
        "served from each other's exact sums, and no budget bounds a person.",
    )
    answers: AnswersPrivacy = Field(
        default="exact",
        description="What a client's answers reveal about the client's own feedback.",
    )
    feedback: FeedbackPrivacy = FeedbackPrivacyDocument()


class FederatedClustersDocument(RewardedDocument):
    """Learns linear preferences with users alike, here and, through noisy updates, elsewhere."""

    item_fields: ClassVar[frozenset[str]] = frozenset({"features"})
    why_few_items: ClassVar[str] = "every answer compares all of them"

    algorithm: Literal["fclub"]
    role: Literal["local", "global"] = Field(
        description="local: serves users and may send noisy updates; global: merges them."
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
    privacy: ClusterPrivacyDocument = ClusterPrivacyDocument()
    releases: ReleasesDocument = Field(
        default=ReleasesDocument(),
        description="When models are released. A global server merges every `seconds` if noisy "
        "updates came.",
    )
    members: list[Name] = Field(
        default_factory=list,
        max_length=MOST_MEMBERS,
        description="Labels of the keys that may send noisy updates (global); every peer's if "
        "left out.",
    )

    def fixed(self) -> Mapping[str, object]:
        """Sums of another size or around another baseline cannot be carried over.

        Nor can observations that were given under one promise be released under another.
        """
        return {
            **super().fixed(),
            "role": self.role,
            "dimensions": self.dimensions,
            "learning.baseline": self.learning.baseline,
            "learning.kinds": self.learning.kinds,
            "privacy.protects": self.privacy.protects,
            "privacy.feedback": protection(self.privacy.feedback),
        }

    def require_usable(self, item: ItemDocument) -> None:
        """Items are judged by their features."""
        super().require_usable(item)
        if item.features is None:
            raise UnusableItem("is required: items are judged by their features", field="features")
        scale = self.norms == "scale"
        try:
            coordinates(item.features, dimensions=self.dimensions, scale=scale, field="features")
        except InvalidArgument as error:
            raise UnusableItem(error.reason, field=error.argument) from None

    @model_validator(mode="after")
    def _one_role(self) -> Self:
        strangers = _GLOBAL_ONLY if self.role == "local" else _LOCAL_ONLY
        for name in strangers:
            if getattr(self, name) != type(self).model_fields[name].get_default(
                call_default_factory=True
            ):
                raise ValueError(f"{name} means nothing in the role {self.role}; leave it out")
        return self
