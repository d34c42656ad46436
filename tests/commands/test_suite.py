"""`discreet simulate --suite` as people type it."""

import json
from pathlib import Path

import pytest

from discreet.cli import main
from discreet.commands import suite
from discreet.research.suite import plan as planning
from discreet.research.suite.served import judged
from tests.research.suite.test_film_ratings import write_large

COLUMNS = {
    *("world", "dimensions", "items", "learner", "answers_epsilon", "feedback_epsilon"),
    *("rounds", "reward_late", "share_late", "share_fixed", "seconds"),
}


def judge(*arguments: str) -> int:
    common = ("--suite", "--quick", "--rounds", "1000", "--processes", "1")
    return main(["simulate", *common, *arguments])


def test_rows_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert judge("--worlds", "bumps", "--json", "--seed", "4") == 0
    shown = capsys.readouterr()
    report = json.loads(shown.out)
    assert (report["suite"], report["seed"], report["visits_per_second"]) == ("quick", 4, 200.0)
    assert shown.err == ""
    learners = set()
    for row in report["rows"]:
        assert set(row) == COLUMNS
        assert (row["world"], row["dimensions"], row["items"]) == ("bumps", 2, 16)
        assert 0 < row["share_late"] < 1.2
        assert 0 < row["share_fixed"] <= 1
        assert row["rounds"] == 1_000
        learners.add(row["learner"])
    assert learners == {*judged(), "linucb", "vw", "popular", "chance"}
    ours = [row for row in report["rows"] if row["learner"] == "p-dap"]
    assert [(row["answers_epsilon"], row["feedback_epsilon"]) for row in ours] == [
        (None, None),
        (None, 1.0),
        (2.0, None),
        (2.0, 1.0),
    ]


def test_a_table_pictures_and_recorded_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_large(tmp_path / "ml-1m")
    out = tmp_path / "out"
    few = ("--learners", "p-dap,popular,chance")
    assert judge("--worlds", "ml-1m", "--data", str(data), "--save", str(out), *few) == 0
    shown = capsys.readouterr().out
    assert "quick: fewer worlds" in shown
    assert "ml-1m: 3 items, 26 numbers" in shown
    assert "share late" in shown
    written = {path.name for path in out.iterdir()}
    assert written == {"suite.json", "suite-private-1.png", "suite-unprotected-1.png"}
    assert json.loads((out / "suite.json").read_text())["suite"] == "quick"


def test_a_learner_is_judged_again_beside_earlier_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ("--worlds", "bumps", "--json")
    assert judge(*common, "--learners", "popular,chance", "--save", str(tmp_path)) == 0
    earlier = json.loads(capsys.readouterr().out)
    report = tmp_path / "suite.json"
    assert judge(*common, "--learners", "p-dap", "--beside", str(report)) == 0
    both = json.loads(capsys.readouterr().out)
    assert {row["learner"] for row in both["rows"]} == {"p-dap", "popular", "chance"}
    assert all(row in both["rows"] for row in earlier["rows"])


def test_a_file_that_cannot_be_used_is_named_by_whichever_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "random" / "all").mkdir(parents=True)
    assert judge("--data", str(tmp_path), "--worlds", "open-bandit-all") == 2
    assert "all.csv.gz cannot be read" in capsys.readouterr().err


def test_missing_rivals_are_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (suite, planning):
        monkeypatch.setattr(module, "missing_rivals", lambda: ["mabwiser", "vowpalwabbit"])
    assert judge("--worlds", "popularity", "--json") == 0
    shown = capsys.readouterr()
    assert (
        "left out without mabwiser and vowpalwabbit: pip install 'discreet[research]'" in shown.err
    )
    assert {row["learner"] for row in json.loads(shown.out)["rows"]} == {
        *judged(),
        "popular",
        "chance",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--beside", "nowhere.json"], "--beside: nowhere.json is not the suite.json of a suite"),
        (["--worlds", "flat"], "--worlds: 'flat' is not there"),
        (["--rounds", "1500"], "--rounds: must be a multiple of 1,000"),
        (["--data", "nowhere"], "--data: nowhere has neither"),
        (["--processes", "0"], "--processes"),
        (["--rate", "0"], "rate"),
    ],
)
def test_what_cannot_be_used_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judge(*arguments) == 2
    assert message in capsys.readouterr().err
