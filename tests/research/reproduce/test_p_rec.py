"""The reproduction of p-REC: rows keep both bounds, Polis conversations make their own."""

import json
from pathlib import Path

import pytest

from discreet.cli import main
from discreet.research.reproduce.p_rec import QUICK, READINGS, reproduce
from discreet.research.reproduce.papers import ReproductionOptions
from discreet.research.worlds.electorates import PATTERNS
from tests.research.worlds.polis_files import write_conversation

ROW = {
    *("reading", "n", "m", "T", "D", "R", "P"),
    *("loss_mean", "loss_bound", "epsilon_exact", "epsilon_bound"),
}


def watch(done: int, total: int, what: str) -> None:
    assert 0 <= done <= total
    assert what


def test_quick_rows_keep_both_bounds() -> None:
    # Seeds 0 and 1, so the outcome is always the same.
    found = reproduce(ReproductionOptions(quick=True, seeds=1, processes=1, rounds=60), watch)
    assert len(found.results) == 2 * len(QUICK)
    for row in found.results:
        assert set(row) == ROW
        assert row["reading"] in READINGS
        assert 0 <= row["loss_mean"] <= row["loss_bound"]
        assert 0 < row["epsilon_exact"] <= row["epsilon_bound"]


def test_the_command_writes_rows_and_pictures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISCREET_DATA", raising=False)
    arguments = ["reproduce", "p-rec", "--quick", "--seeds", "1", "--rounds", "40"]
    assert main([*arguments, "--processes", "1", "--json", "--out", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["name"] == "p-rec"
    assert {row["reading"] for row in found["results"]} == set(READINGS)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"p-rec.json", "loss-and-epsilon.png", "learning.png"}
    kept = json.loads((tmp_path / "p-rec.json").read_text())
    assert any(case["every_run"] for case in kept["cases"])
    assert set(kept["cases"][0]["loss_by_pattern"]) == set(PATTERNS)


def test_conversations_make_rows_of_their_own(tmp_path: Path) -> None:
    write_conversation(tmp_path / "talk", people=320, statements=30, packed=True)
    write_conversation(tmp_path / "small", people=40, statements=30, packed=True)
    options = ReproductionOptions(quick=True, seeds=1, processes=1, rounds=20, data=tmp_path)
    found = reproduce(options, watch)
    talks = found.results[2 * len(QUICK) :]
    assert len(talks) == 10
    for row in talks:
        assert set(row) == ROW
        assert row["n"] > 200
        assert row["loss_mean"] <= row["loss_bound"]
        assert row["epsilon_exact"] <= row["epsilon_bound"]
    assert {name["conversation"] for name in found.details["polis"]} == {"talk"}
