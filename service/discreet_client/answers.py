"""What the server answers, as frozen values. Fields that a newer server adds are in `raw`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Amount:
    """An epsilon and a delta; None where nothing is protected."""

    epsilon: float | None
    delta: float | None


@dataclass(frozen=True)
class PrivacyCost:
    """What an answer cost the client, and how the client's account stands after it.

    `epsilon` is None where the recommender's document turns protection off.
    """

    epsilon: float | None
    spent: Amount
    remaining: Amount


@dataclass(frozen=True)
class AnsweredItem:
    """One recommended item; `vendor` is set if another instance offered it.

    The rest is what the catalogue says about it, in answers that were asked for with
    `items="full"`.
    """

    id: str
    vendor: str | None = None
    title: str | None = None
    attributes: Mapping[str, Any] | None = None
    categories: Sequence[str] | None = None


@dataclass(frozen=True)
class RecommendedItems:
    """The answer to one question. Give it to `feedback` as it is."""

    recommendation_id: str
    items: tuple[AnsweredItem, ...]
    personalised: bool
    privacy: PrivacyCost
    expires_at: datetime
    event_id: str | None
    reason: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, answer: Mapping[str, Any], event_id: str | None) -> "RecommendedItems":
        """Read an answer. Raises `KeyError`, `TypeError` or `ValueError` if it is none."""
        privacy = answer["privacy"]
        return cls(
            recommendation_id=answer["recommendation_id"],
            items=tuple(map(_item, answer["items"])),
            personalised=answer["personalised"],
            privacy=PrivacyCost(
                privacy["epsilon"], _amount(privacy["spent"]), _amount(privacy["remaining"])
            ),
            expires_at=datetime.fromisoformat(answer["expires_at"]),
            event_id=event_id,
            reason=answer.get("reason"),
            raw=answer,
        )


@dataclass(frozen=True)
class FeedbackReceipt:
    """What became of feedback. `learned` is false if the client's budget for it is spent, and None
    if it is learned from later (`reward.wait` in the recommender's document)."""

    accepted: bool
    duplicate: bool
    learned: bool | None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> "FeedbackReceipt":
        """Read an answer. Raises `KeyError` or `TypeError` if it is none."""
        return cls(answer["accepted"], answer["duplicate"], answer["learned"])


def _item(given: Mapping[str, Any]) -> AnsweredItem:
    described = (given.get(name) for name in ("vendor", "title", "attributes", "categories"))
    return AnsweredItem(given["id"], *described)


def _amount(given: Mapping[str, Any]) -> Amount:
    return Amount(given["epsilon"], given["delta"])
