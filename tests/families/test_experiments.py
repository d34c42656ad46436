"""What an experiment's document says, and what of it is refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from discreet.families.experiments import ExperimentDocument, read_experiment
from discreet.families.stored import UnreadableRecord


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


def test_a_stored_experiment_of_a_newer_version_is_read_without_its_new_fields() -> None:
    content = b'{"traffic": {"a": 1.0}, "novelty": {"deep": 1}, "schema": 1}'
    assert read_experiment(content) == ExperimentDocument(traffic={"a": 1.0})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"traffic": {"a": 1.0}, "schema": 2}', "newer version"),
        (b'{"traffic": {"a": 1.0}, "schema": "x"}', "newer version"),
        (b'{"traffic": {"a": 1.0', "damaged"),
        (b'{"traffic": 5}', "damaged"),
        (b"[" * 200_000, "damaged"),
        (b"[]", "damaged"),
        (b"null", "damaged"),
        (b"\xff", "damaged"),
    ],
    ids=["newer", "odd", "torn", "number", "nested", "list", "null", "bytes"],
)
def test_a_stored_experiment_that_cannot_be_read_says_why(content: bytes, said: str) -> None:
    with pytest.raises(UnreadableRecord, match=said):
        read_experiment(content)
