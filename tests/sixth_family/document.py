"""What a person writes for the best item overall."""

from typing import Literal

from discreet.families.documents import (
    Document,
    FeedbackPrivacyDocument,
    RecommenderDocument,
    ReleasesDocument,
)


class OverallPrivacyDocument(Document):
    """Answers are the same for everybody, so only feedback has a dial."""

    feedback: FeedbackPrivacyDocument = FeedbackPrivacyDocument()


class OverallDocument(RecommenderDocument):
    """Recommends what most people like."""

    algorithm: Literal["best-overall"]
    privacy: OverallPrivacyDocument = OverallPrivacyDocument()
    releases: ReleasesDocument = ReleasesDocument()
