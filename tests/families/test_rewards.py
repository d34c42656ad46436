"""What a document says about rewards, and what of it is refused."""

from typing import Any, get_args

import pytest
from pydantic import ValidationError

from discreet.families.registration import FAMILIES, read_document
from discreet.families.rewards import RewardDocument, RewardedDocument
from tests.contracts.samples import SAMPLES
from tests.decisions.conftest import document


def test_without_a_word_rewards_are_as_ever() -> None:
    reward = RewardDocument()
    assert (reward.seconds, reward.default, reward.range) == (0, 0.0, [0.0, 1.0])


@pytest.mark.parametrize(
    ("wait", "seconds"),
    [("45s", 45), ("30m", 1_800), ("12h", 43_200), ("7d", 604_800), ("4w", 2_419_200)],
)
def test_a_wait_is_a_length_of_time(wait: str, seconds: int) -> None:
    assert RewardDocument(wait=wait).seconds == seconds


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"wait": "30"}, "wait"),
        ({"wait": 30}, "wait"),
        ({"wait": "0m"}, "wait"),
        ({"wait": "31d"}, "at most 30d"),
        ({"default": 1.5}, "default must lie in the range"),
        ({"default": 0, "range": [1, 2]}, "default must lie in the range"),
        ({"range": [1, 1]}, "low < high"),
        ({"range": [1, 0]}, "low < high"),
        ({"range": [0, 1e13]}, "within 1e12"),
        ({"range": [0]}, "range"),
        ({"late": "correct"}, "late"),
        ({"most_open": 1}, "most_open"),
        ({"waits": "1m"}, "waits"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        RewardDocument.model_validate(wrong)


def test_a_decision_is_not_awaited_longer_than_feedback_is_accepted() -> None:
    with pytest.raises(ValidationError, match="at most decision_ttl_seconds"):
        document(reward={"wait": "2h"}, decision_ttl_seconds=3_600)
    assert document(reward={"wait": "1h"}, decision_ttl_seconds=3_600).reward.seconds == 3_600


def test_the_range_is_fixed_with_what_was_learned() -> None:
    assert document().fixed() != document(reward={"range": [-1, 1]}).fixed()
    assert document().fixed() == document(reward={"wait": "1m", "default": 0.5}).fixed()


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_family_that_learns_from_rewards_has_them(family: str) -> None:
    kind = FAMILIES[family].document_class
    assert issubclass(kind, RewardedDocument) == (family != "p-rec")
    (name,) = get_args(kind.model_fields["algorithm"].annotation)
    written = {"algorithm": name, **SAMPLES[family].document, "reward": {"wait": "1m"}}
    if family == "p-rec":
        with pytest.raises(ValidationError):
            read_document(written)
    else:
        read_document(written)
