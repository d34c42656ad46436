"""`discreet simulate --config`: from a serve configuration to a curve."""

import json
from pathlib import Path

import pytest

from discreet.cli import main

CONFIG = """\
server: {port: 8000}
recommenders:
  films:
    algorithm: p-dap
    items: [a, b, c]
    context: {dimensions: 2}
    privacy: {answers: {budget: {epsilon: 2, delta: 0}}, feedback: {epsilon: 2}}
  songs:
    algorithm: p-dap
    items: [x, y]
    context: {dimensions: 1}
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "discreet.yaml").write_text(CONFIG)
    return "discreet.yaml"


def simulate(config: str, *arguments: str) -> int:
    return main(["simulate", "--config", config, "--processes", "1", *arguments])


def test_every_recommender_gets_a_curve(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(config, "--epsilons", "1,0.1", "--rounds", "80", "--seeds", "1", "--json") == 0
    shown = capsys.readouterr()
    report = json.loads(shown.out)
    assert [one["recommender"] for one in report["recommenders"]] == ["films", "songs"]
    films = report["recommenders"][0]
    assert (films["stream"], films["rounds"], films["seeds"]) == ("synthetic", 80, 1)
    assert films["feedback_epsilon"] == 2.0
    assert [row["epsilon"] for row in films["results"]] == [None, 0.1, 1.0]
    assert [row["requests_per_budget"] for row in films["results"]] == [None, 20, 2]
    for row in films["results"]:
        assert 0 <= row["reward_low"] <= row["reward_mean"] <= row["reward_high"]
        assert 0 < row["regret_mean"] < 1
        assert 0 < row["share_of_optimal"] < 1
    written = sorted(path.name for path in Path("out", "simulate").iterdir())
    assert written == ["epsilon-films.png", "epsilon-songs.png", "simulate.json"]
    assert json.loads(Path("out", "simulate", "simulate.json").read_text()) == report


def test_both_dials_are_tried(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--recommender", "songs", "--rounds", "60", "--seeds", "1", "--epsilons", "1")
    assert simulate(config, *arguments, "--feedback-epsilons", "2,exact", "--json") == 0
    (songs,) = json.loads(capsys.readouterr().out)["recommenders"]
    tried = [(row["epsilon"], row["feedback_epsilon"]) for row in songs["results"]]
    assert tried == [(None, None), (1.0, None), (1.0, 2.0)]
    assert simulate(config, *arguments, "--feedback-epsilons", "2") == 0
    assert "feedback" in capsys.readouterr().out


def test_a_log_is_replayed(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{i % 7 / 7:.3f},{'xy'[i % 2]},{int(i % 2 == 0)}" for i in range(160)]
    Path("log.csv").write_text("context_0,item,reward\n" + "\n".join(rows) + "\n")
    arguments = ("--data", "log.csv", "--recommender", "songs", "--epsilons", "8", "--seeds", "1")
    assert simulate(config, *arguments, "--out", "here", "--json") == 0
    (songs,) = json.loads(capsys.readouterr().out)["recommenders"]
    assert (songs["stream"], songs["evaluation"], songs["rounds"]) == ("logged", "rejection", 160)
    free, private = songs["results"]
    assert 0 < private["answers_counted"] < 160
    assert private["regret_mean"] == pytest.approx(free["reward_mean"] - private["reward_mean"])
    assert simulate(config, *arguments, "--out", "here", "--rounds", "40") == 0
    assert "By rejection" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--recommender", "books"], "it has films, songs"),
        (["--data", "log.csv"], "say which one the log is of: films, songs"),
        (["--data", "none.csv", "--recommender", "films"], "none.csv cannot be read"),
        (["--epsilons", "1,two"], "--epsilons"),
        (["--epsilons", "0"], "--epsilons"),
        (["--epsilons", "51"], "--epsilons"),
        (["--feedback-epsilons", "exact,some"], "--feedback-epsilons"),
        (["--rounds", "0"], "--rounds"),
        (["--seeds", "0"], "--seeds"),
    ],
)
def test_mistakes_are_named(
    config: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate(config, *arguments) == 2
    assert message in capsys.readouterr().err


def test_traffic_and_config_exclude_each_other(config: str) -> None:
    with pytest.raises(SystemExit):
        simulate(config, "--traffic")
