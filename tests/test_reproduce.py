"""`discreet reproduce` as people and programs use it, in small."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.cli import main
from discreet.research import papers, pictures
from discreet.research.reproduce.papers import Figure, Line, Panel

SMALL = ("reproduce", "p-dap", "--quick", "--seeds", "1", "--rounds", "60")
WANTED = {
    *(("dap", None), ("cap", None), ("dup", None)),
    *(("p-dap", 0.01), ("p-dap", 0.1), ("p-dap", 1.0), ("gp-dap", 0.01)),
    *(("served", 0.01), ("served", 0.1), ("served", 1.0), ("served", 4.0)),
}


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISCREET_DATA", raising=False)


def test_one_json_object_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SMALL, "--processes", "1", "--json", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert shown.out.count("\n") == 1
    assert set(found) == {"name", "seeds", "results", "published"}
    assert (found["name"], found["seeds"]) == ("p-dap", 1)
    rows = found["results"]
    assert {(row["algorithm"], row["epsilon"]) for row in rows} >= WANTED
    for row in rows:
        assert set(row) == {"algorithm", "epsilon", "regret_mean", "regret_std", "accuracy"}
        assert 0 < row["regret_mean"] < 60
        assert 0 <= row["accuracy"] <= 1
    assert found["published"]["table_2"]["dap"][-1] == 0.9217
    assert found["published"]["gp_dap_regret_below_p_dap"] == 0.32
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"p-dap.json", "figure-6.png", "figure-7.png", "figure-8.png", "served.png"}
    kept = json.loads((tmp_path / "p-dap.json").read_text())
    assert kept["results"] == rows
    assert kept["rounds"] == 60
    curve = kept["environments"]["default"][0]["curve"]
    assert curve["regret"][-1] == pytest.approx(rows[0]["regret_mean"])


def test_several_processes_find_the_same(tmp_path: Path) -> None:
    """In a process of its own, which takes its helpers with it when it ends."""
    outputs = [
        subprocess.run(
            [
                *(str(Path(sys.executable).parent / "discreet"), *SMALL, "--json"),
                *("--processes", processes, "--out", str(tmp_path / processes)),
            ],
            capture_output=True,
            text=True,
            timeout=110,
        )
        for processes in ("1", "2")
    ]
    assert [done.returncode for done in outputs] == [0, 0]
    assert outputs[0].stdout == outputs[1].stdout
    assert outputs[0].stderr == outputs[1].stderr == ""


def test_tables_for_people_show_published_numbers_beside_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr("discreet.commands.reproduce.can_draw", lambda: False)
    assert main([*SMALL, "--processes", "1"]) == 0
    shown = capsys.readouterr()
    assert "Table II: accuracy after N arrivals, published / ours" in shown.out
    assert "92.2% / –" in shown.out  # 50,000 arrivals were not played
    assert "times less regret than P-DAP" in shown.out
    assert "pip install 'discreet[plots]'" in shown.err
    assert [path.name for path in (tmp_path / "out" / "p-dap").iterdir()] == ["p-dap.json"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce"], "p-dap"),
        (["reproduce", "p-rap"], "no paper is called 'p-rap'"),
        (["reproduce", "p-dap", "--seeds", "0"], "--seeds"),
        (["reproduce", "p-dap", "--rounds", "-1"], "--rounds"),
        (["reproduce", "p-dap", "--data", "nowhere"], "users.dat"),
    ],
)
def test_mistakes_are_named(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_told_before_anything_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main([*SMALL, "--out", str(tmp_path / "file" / "x")]) == 2
    assert "--out" in capsys.readouterr().err


def test_every_listed_paper_has_a_program() -> None:
    for name in papers.PAPERS:
        assert callable(papers.reproduction_of(name))


def test_pictures_are_small_png_files(tmp_path: Path) -> None:
    line = Line("a", [1, 2, 3], [1.0, 4.0, 9.0], [0.1, 0.2, 0.3])
    panels = [Panel("p", "x", "y", [line] * 9, log_x=True), Panel("q", "x", "y", [line])]
    (path,) = pictures.draw([Figure("f", "title", panels)], tmp_path)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) < 200_000
