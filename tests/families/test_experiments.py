"""What an experiment's document says, and what of it is refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from discreet.families.experiments import ExperimentDocument


def test_shares_and_holdouts() -> None:
    traffic = {"champion": 0.8, "popular": 0.1, "challenger": 0.1}
    read = ExperimentDocument.model_validate({"traffic": traffic, "holdout": ["popular"]})
    assert list(read.traffic) == ["champion", "popular", "challenger"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "traffic"),
        ({"traffic": {}}, "traffic"),
        ({"traffic": {"a": 0.5}}, "add up to 1"),
        ({"traffic": {"a": 0.5, "b": 0.6}}, "add up to 1"),
        ({"traffic": {"a": 1.0, "b": 0.0}}, "b"),
        ({"traffic": {"a": 1.5, "b": -0.5}}, "traffic"),
        ({"traffic": {"a b": 1.0}}, "traffic"),
        ({"traffic": {f"a{n}": 1 / 17 for n in range(17)}}, "traffic"),
        ({"traffic": {"a": 1.0}, "holdout": ["b"]}, "b is not in traffic"),
        ({"traffic": {"a": 1.0}, "shadow": ["a"]}, "so it is shown"),
        ({"traffic": {"a": 1.0}, "shadow": ["b", "c", "d", "e", "f"]}, "at most 4"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        ExperimentDocument.model_validate(wrong)
