"""`discreet evaluate`: figures, a page, and refusals that say what to change."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.cli import main
from tests.research.evaluate.recorded import rows, write

CONFIG = """
recommenders:
  films:
    algorithm: contextual
    items: [a, b, c, d]
    context: {dimensions: 1}
    privacy: {answers: {epsilon: 2}, feedback: {epsilon: 4}}
  votes: {algorithm: p-rec, objects: 2, horizon: 5, peers: 3}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "discreet.yaml").write_text(CONFIG)
    return tmp_path


def evaluate(folder: Path, made: list[dict[str, object]], *more: str, without: str = "") -> int:
    path = write(folder / "log.csv", made, without)
    words = ["--log", str(path), "--config", str(folder / "discreet.yaml"), "--processes", "1"]
    return main(["evaluate", *words, *more])


def test_it_finds_what_each_would_earn(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = folder / "report.html"
    words = ("--recommender", "films", "--seeds", "2", "--epsilons", "0.5")
    words += ("--feedback-epsilons", "", "--curve-rows", "300")
    code = evaluate(folder, rows(1_500), *words, "--json", "--html", str(page))
    assert code == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["log"]["rows"] == 1_500
    earned = {one["policy"]: one["dr"]["mean"] for one in found["policies"]}
    assert earned["uniform"] == pytest.approx(0.375, abs=0.05)
    assert earned["films"] > earned["uniform"]
    assert [
        (one["answers_epsilon"], one["feedback_epsilon"], one["rows"]) for one in found["curve"]
    ] == [(None, None, 300), (0.5, 4.0, 300), (None, 4.0, 300), (2.0, None, 300)]
    assert "What privacy costs" in page.read_text()


def test_it_prints_tables(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--recommender", "films", "--seeds", "1", "--epsilons", "", "--uniform")
    words += ("--no-replay",)
    assert evaluate(folder, rows(400), *words, without="propensity") == 0
    shown = capsys.readouterr().out
    for part in ("films: 400 rows, 4 items", "most popular", "SNIPS", "a visit"):
        assert part in shown


def test_a_log_that_was_not_random_is_refused_unless_it_is_insisted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = rows(300, law=np.tile([1.0, 0, 0, 0], (2, 1)))
    words = ("--recommender", "films", "--epsilons", "", "--seeds", "1")
    assert evaluate(folder, made, *words) == 2
    assert "every propensity is 1" in capsys.readouterr().err
    assert evaluate(folder, made, *words, "--anyway") == 0
    assert "warning: every propensity is 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--recommender: say which one the log is of: films, votes"),
        (("--recommender", "books"), "has no such recommender; it has films, votes"),
        (("--recommender", "votes"), "p-rec cannot be evaluated"),
        (("--recommender", "films", "--epsilons", "x"), "--epsilons: must be numbers"),
        (("--recommender", "films", "--epsilons", "99"), "at most 50"),
        (("--recommender", "films", "--seeds", "0"), "--seeds: must be at least 1"),
        (("--recommender", "films", "--rows", "0"), "--rows: must be at least 1"),
        (("--recommender", "films", "--missing-reward", "2"), "must be from 0 to 1"),
    ],
)
def test_mistakes_are_named(
    folder: Path, words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate(folder, rows(20), *words) == 2
    assert message in capsys.readouterr().err


def test_a_log_without_propensities_or_rewards_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--recommender", "films", "--epsilons", "", "--seeds", "1")
    assert evaluate(folder, rows(20), *words, without="propensity") == 2
    assert "line 2, column propensity: is missing" in capsys.readouterr().err
    assert evaluate(folder, rows(20), *words, without="reward") == 2
    assert "line 2, column reward: is missing" in capsys.readouterr().err
    assert evaluate(folder, rows(200), *words, "--missing-reward", "0", without="reward") == 0


def test_a_page_that_cannot_be_written_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--recommender", "films", "--epsilons", "", "--seeds", "1")
    assert evaluate(folder, rows(50), *words, "--html", str(folder)) == 2
    assert "--html" in capsys.readouterr().err
