"""What a reward is in a recommender's document: its range, and what silence means.

A shop that reports clicks and nothing else teaches that everything is liked: what was shown and not
clicked is never told. With `wait`, feedback is held until then, and a decision without any counts
as the `default` (`discreet.state.awaiting`). Both go the way of any feedback: claimed once,
charged, and added if the client's budget pays for it.

Feedback after `wait` is refused. To correct what was counted would take a record that takes the
default back and one that adds the reward: three records of one person instead of one, up to nine
times its rho. And it would not correct: sums age from release to release, cells divide, and a
gradient was taken at a model that has gone, so that nothing that is added later takes back what was
released. So `correct` is not offered.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from discreet.families.documents import (
    LONGEST_TTL,
    Document,
    Number,
    RecommenderDocument,
    duration_seconds,
)

LARGEST_REWARD = 1e12


def _wait(text: str) -> str:
    if duration_seconds(text) > LONGEST_TTL:
        raise ValueError("must be at most 30d")
    return text


Wait = Annotated[
    str, Field(pattern=r"^[1-9][0-9]{0,6}[smhdw]$", strict=True), AfterValidator(_wait)
]
"""A length of time: seconds, minutes, hours, days or weeks (45s, 30m, 12h), at most 30 days."""


class RewardDocument(Document):
    """What a reward may be, and what counts where none comes."""

    wait: Wait | None = Field(
        default=None,
        description="How long a decision awaits feedback (45s, 30m, 12h, 7d). Feedback is held "
        "until then; each item without any counts as `default`, once; feedback after that is 410. "
        "Left out: feedback counts at once, and silence as nothing.",
    )
    default: Number = Field(
        default=0.0, description="What counts where no feedback came in time, in the range."
    )
    range: list[Number] = Field(
        default=[0.0, 1.0],
        min_length=2,
        max_length=2,
        description="The least and the largest reward, mapped to 0 and 1. Others are refused.",
    )
    late: Literal["refuse"] = Field(
        default="refuse",
        description="What becomes of feedback after `wait`: it is refused. What was counted and "
        "released cannot be taken back at a price that is worth it.",
    )
    most_open: int = Field(
        default=1_000_000,
        ge=64,
        le=100_000_000,
        strict=True,
        description="How many decisions may await feedback at a time. One that finds no room is "
        "answered and says so (`awaiting` is false): without feedback it counts as nothing.",
    )

    @model_validator(mode="after")
    def _usable(self) -> Self:
        low, high = self.range
        if not -LARGEST_REWARD <= low < high <= LARGEST_REWARD:
            raise ValueError("range must be [low, high] with low < high, within 1e12 of 0")
        if not low <= self.default <= high:
            raise ValueError("default must lie in the range")
        return self

    @property
    def seconds(self) -> int:
        """How long a decision awaits feedback; 0 if it does not."""
        return 0 if self.wait is None else duration_seconds(self.wait)


ANY_REWARD = RewardDocument()


class RewardedDocument(RecommenderDocument):
    """What is common to the recommenders that learn from rewards."""

    reward: RewardDocument = Field(
        default=ANY_REWARD,
        description="What a reward may be, and what counts where none comes.",
    )

    def fixed(self) -> Mapping[str, object]:
        """Rewards of two ranges do not add up."""
        return {**super().fixed(), "reward.range": self.reward.range}

    @model_validator(mode="after")
    def _waits_while_feedback_is_accepted(self) -> Self:
        if self.reward.seconds > self.decision_ttl_seconds:
            raise ValueError("reward.wait must be at most decision_ttl_seconds")
        return self
