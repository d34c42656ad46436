"""What a person writes for a recommender by sparse mirror descent."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from discreet.families.documents import (
    MOST_FEATURES,
    MOST_ITEMS,
    MOST_NONZEROS,
    NAME_PATTERN,
    AnswersPrivacyDocument,
    Document,
    FeedbackPrivacy,
    FeedbackPrivacyDocument,
    ItemDocument,
    Number,
    OrExact,
    PeerUrl,
    ReleasesDocument,
    SparseFeatures,
    UnusableItem,
    protection,
)
from discreet.families.mirror_descent.sparse import MOST_VALUE
from discreet.families.nested import PersonalizerDocument
from discreet.families.rewards import RewardedDocument

MOST_NEIGHBOURS = 32

Size = Annotated[int, Field(strict=True, ge=1, le=MOST_FEATURES)]


class SparseShapeDocument(Document):
    """Either `dimension`, or `clients` and `items`, whose features are then multiplied."""

    dimension: Size | None = Field(
        default=None, description="Features that candidates and items may name."
    )
    clients: Size | None = Field(default=None, description="Features that a client may have.")
    items: Size | None = Field(default=None, description="Features that an item may have.")
    most_nonzeros: int = Field(
        default=100,
        ge=1,
        le=MOST_NONZEROS,
        strict=True,
        description="That one client, candidate or item may name.",
    )

    @model_validator(mode="after")
    def _one_shape(self) -> Self:
        crossed = self.clients is not None and self.items is not None
        plain = self.clients is None and self.items is None
        if (self.dimension is None) != crossed or not (crossed or plain):
            raise ValueError("give either dimension, or both clients and items")
        if self.size > MOST_FEATURES:
            raise ValueError(f"there may be at most {MOST_FEATURES:,} features, products included")
        return self

    @property
    def size(self) -> int:
        """How many features there are in all."""
        if self.dimension is not None:
            return self.dimension
        clients, items = self.clients or 0, self.items or 0
        return clients + items + clients * items


class MirrorLearningDocument(Document):
    """How records become a model."""

    clip: Number = Field(
        default=1.0,
        ge=2.0**-10,
        le=64,
        description="Euclidean norm to which a record's features are shortened.",
    )
    truncation: Number = Field(
        default=2.0,
        ge=0,
        le=100,
        description="Features that stand out from the noise by fewer deviations do not count.",
    )
    ridge: Number = Field(
        default=0.001,
        gt=0,
        le=1,
        description="Larger values take smaller steps: needed if most records share features.",
    )


class MirrorExplorationDocument(Document):
    """Answers in random order, so that everything gets a chance. Free."""

    rate: Number = Field(default=0.05, ge=0, le=1)


class MirrorReleasesDocument(ReleasesDocument):
    """When the next model is released: by the clock, each time after twice as long."""

    growth: Number = Field(
        default=1.0,
        ge=0,
        le=10,
        description="and at least this share of the recommender's age,",
    )
    longest: Number = Field(
        default=86_400.0, ge=0.05, le=30 * 86_400, description="but no longer than this."
    )


class NeighbourDocument(Document):
    """Another instance whose model is mixed into ours. The key for it is a secret, and not here."""

    name: str = Field(pattern=NAME_PATTERN, strict=True)
    url: PeerUrl
    recommender: str | None = Field(
        default=None, pattern=NAME_PATTERN, strict=True, description="Its name there, if another."
    )


class MirrorAnswersDocument(AnswersPrivacyDocument):
    """What an answer may reveal about the features that a request brings."""

    draw: Literal["weighted", "best"] = Field(
        default="weighted",
        description="weighted: by the exponential mechanism, so that the good ones come before "
        "the bad ones; best: the best one, or any other, by randomised response. The latter is "
        "right more often where candidates are few.",
    )


class MirrorPrivacyDocument(Document):
    """Two dials: what answers reveal about features, and what models reveal about feedback."""

    answers: OrExact[MirrorAnswersDocument] = MirrorAnswersDocument()
    feedback: FeedbackPrivacy = FeedbackPrivacyDocument()


class MirrorDescentDocument(RewardedDocument):
    """Learns one sparse linear model with its neighbours."""

    item_fields: ClassVar[frozenset[str]] = frozenset({"features"})

    algorithm: Literal["mirror-descent"]
    features: SparseShapeDocument
    learning: MirrorLearningDocument = MirrorLearningDocument()
    exploration: MirrorExplorationDocument = MirrorExplorationDocument()
    releases: MirrorReleasesDocument = MirrorReleasesDocument()
    neighbours: list[NeighbourDocument] = Field(
        default_factory=list,
        max_length=MOST_NEIGHBOURS,
        description="Whose models are mixed into ours; they should name us as well.",
    )
    mixing_seconds: Number = Field(
        default=5.0, ge=0.1, le=86_400, description="Between two mixing rounds."
    )
    privacy: MirrorPrivacyDocument = MirrorPrivacyDocument()
    personalizer: PersonalizerDocument | None = Field(
        default=None,
        description="Given: this recommender answers Personalizer's calls, whose features are "
        "hashed into `features.dimension` positions.",
    )

    def fixed(self) -> Mapping[str, object]:
        """Sums of another shape cannot be carried over; nor can records be worth another noise."""
        return {
            **super().fixed(),
            "features.dimension": self.features.dimension,
            "features.clients": self.features.clients,
            "features.items": self.features.items,
            "learning.clip": self.learning.clip,
            "privacy.feedback": protection(self.privacy.feedback),
        }

    def most_items(self) -> int:
        """Whatever the items, there is one vector to learn."""
        return MOST_ITEMS

    def require_usable(self, item: ItemDocument) -> None:
        """Items are judged by sparse features, or by none: then only callers' candidates count."""
        super().require_usable(item)
        if item.features is None:
            return
        if not isinstance(item.features, SparseFeatures):
            raise UnusableItem("must have indices and values", field="features")
        indices, shape = item.features.indices, self.features
        if len(indices) > shape.most_nonzeros:
            raise UnusableItem(
                f"must be at most {shape.most_nonzeros} non-zeros", field="features.indices"
            )
        size = shape.items or shape.size
        if indices and indices[-1] >= size:
            raise UnusableItem(f"must be from 0 to {size - 1}", field="features.indices")
        if any(abs(value) > MOST_VALUE for value in item.features.values):
            raise UnusableItem(
                f"must be from -{MOST_VALUE:g} to {MOST_VALUE:g}", field="features.values"
            )

    @model_validator(mode="after")
    def _room_to_hash(self) -> Self:
        if self.personalizer is not None and self.features.dimension is None:
            raise ValueError("personalizer: needs features.dimension, into which it hashes")
        return self

    @model_validator(mode="after")
    def _distinct_neighbours(self) -> Self:
        names = [one.name for one in self.neighbours]
        if len(set(names)) != len(names):
            raise ValueError("neighbours must have distinct names")
        return self
