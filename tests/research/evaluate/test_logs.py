"""Logs: read as they are, or refused with the line and the column."""

import json
from pathlib import Path

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.evaluate.logs import EvaluationLog, LogOptions, read_log
from tests.research.evaluate.recorded import document, log_of, read, rows, write

HEAD = "context_0,item,reward,propensity"


def written(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def from_lines(tmp_path: Path, *lines: str, **options: object) -> EvaluationLog:
    return read(written(tmp_path, *lines), **options)  # type: ignore[arg-type]


def test_rows_become_columns(tmp_path: Path) -> None:
    lines = (HEAD + ",candidates", "0,a,0.5,0.25,", "1,c,1,0.5,c|b", "1,b,0,0.5,b|c|c")
    log = from_lines(tmp_path, *lines)
    assert log.actions.tolist() == [0, 2, 1]
    assert log.rewards.tolist() == [0.5, 1, 0]
    assert log.propensities.tolist() == [0.25, 0.5, 0.5]
    assert log.choices(slice(None)).tolist() == [4, 2, 2]
    assert log.available(slice(1, 2)).tolist() == [[False, True, True, False]]
    assert log.features(slice(0, 2)).tolist() == [[0], [1]]
    assert log.clients is None
    asked = log.ask("films", 1)
    assert (asked.context, asked.candidates) == ((1.0,), ["b", "c"])
    assert log.ask("films", 0).candidates is None
    assert log.ask("films", 0, only_logged=True).candidates == ["a"]
    assert log.ask("films", 0).client != log.ask("films", 1).client


def test_an_action_is_an_item_and_other_columns_are_said(tmp_path: Path) -> None:
    log = from_lines(tmp_path, "colour,context_0,action,reward,propensity", "red,0,b,1,0.5")
    assert log.actions.tolist() == [1]
    assert log.notes == ("columns that were not used: colour",)


def test_rows_are_put_in_the_order_of_their_times(tmp_path: Path) -> None:
    lines = (HEAD + ",time,client", "0,a,1,1,2026-01-02T00:00:00Z,x", "0,b,0,1,1767225600,y")
    log = from_lines(tmp_path, *lines)
    assert log.actions.tolist() == [1, 0]
    assert log.times is not None
    assert np.diff(log.times).tolist() == [86_400]
    assert log.clients is not None
    assert log.ask("films", 0).client == f"client {log.clients[0]}"
    assert "order of their times" in log.notes[0]


def test_a_uniform_log_needs_no_propensities(tmp_path: Path) -> None:
    log = from_lines(tmp_path, "context_0,item,reward", "0,a,1", uniform=True)
    assert log.propensities.tolist() == [0.25]
    with pytest.raises(InvalidArgument, match="line 2, column propensity: is not 1/4"):
        from_lines(tmp_path, HEAD, "0,a,1,0.5", uniform=True)


def test_rows_without_a_reward_are_never_guessed(tmp_path: Path) -> None:
    lines = (HEAD, "0,a,,0.25", "0,a,1,0.25")
    with pytest.raises(InvalidArgument, match="line 2, column reward: is missing"):
        from_lines(tmp_path, *lines)
    assert from_lines(tmp_path, *lines, missing=0.0).rewards.tolist() == [0, 1]
    left = from_lines(tmp_path, *lines, missing=float("nan"))
    assert left.rewards.tolist() == [1]
    assert left.notes == ("1 rows without a reward were left out",)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([HEAD], "no rows"),
        (["context_0,reward", "0,1"], "item is missing; there are: context_0, reward"),
        (["item,reward,propensity", "a,1,1"], "context_0 is missing"),
        (["context_0,item,action,reward", "0,a,a,1"], "both item and action"),
        ([HEAD, "2,a,1,1"], "line 2, column context_0"),
        ([HEAD, ",a,1,1"], "line 2, column context_0: is missing"),
        ([HEAD, "0,a,1,1", "0,z,1,1"], "line 3, column item: 'z' is not an item"),
        ([HEAD, "0,a,2,1"], "line 2, column reward: must be a number from 0 to 1"),
        ([HEAD, "0,a,1,0"], "line 2, column propensity: must be greater than 0"),
        ([HEAD, "0,a,1,"], "line 2, column propensity: is missing.*--uniform"),
        ([HEAD + ",candidates", "0,a,1,1,b|c"], "line 2, column candidates: do not hold"),
        ([HEAD + ",time", "0,a,1,1,noon"], "line 2, column time"),
        ([HEAD + ",time", "0,a,1,1,1e999"], "line 2, column time: must be a finite number"),
        ([HEAD + ",time", "0,a,1,1,1", "0,a,1,1,"], "some rows have no time"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        from_lines(tmp_path, *lines)


def test_whole_numbers_larger_than_any_float_are_refused(tmp_path: Path) -> None:
    cells = {"context_0": 0, "item": "a", "reward": 1, "propensity": 1}
    for column in ("time", "reward", "propensity", "context_0"):
        path = tmp_path / "log.jsonl"
        path.write_text(json.dumps({**cells, column: 10**400}) + "\n")
        with pytest.raises(InvalidArgument, match=f"line 1, column {column}: must be a"):
            read(path)


def test_some_rows_may_be_enough(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", rows(50))
    assert len(read_log(path, document(), LogOptions(most=7))) == 7


def test_equal_contexts_are_kept_once(tmp_path: Path) -> None:
    assert set(log_of(tmp_path, 200).contexts.tolist()) == {0, 1}
