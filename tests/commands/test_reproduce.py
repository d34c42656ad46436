"""`discreet reproduce` as people and programs use it, with few rounds."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from discreet.cli import main

SMALL = ("reproduce", "p-dap", "--quick", "--seeds", "1", "--rounds", "60")
WANTED = {
    *(("dap", None, None), ("cap", None, None), ("dup", None, None), ("gp-dap", 0.01, None)),
    *(("p-dap", epsilon, None) for epsilon in (0.01, 0.1, 1.0)),
    *(("served", 0.01, None), ("served", 1.0, None), ("served", 1.0, 1.0)),
}


@pytest.fixture(scope="module", autouse=True)
def no_data() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.delenv("DISCREET_DATA", raising=False)
        yield


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, no_data: None) -> tuple[str, Path]:
    """Reproduce in this process alone; return what was shown, and the folder that was written."""
    folder = tmp_path_factory.mktemp("alone")
    with redirect_stdout(StringIO()) as shown:
        assert main([*SMALL, "--processes", "1", "--json", "--out", str(folder)]) == 0
    return shown.getvalue(), folder


def test_one_json_object_and_nothing_else(alone: tuple[str, Path]) -> None:
    shown, folder = alone
    found = json.loads(shown)
    assert shown.count("\n") == 1
    assert set(found) == {"name", "seeds", "quick", "claims", "results", "published"}
    assert (found["name"], found["seeds"]) == ("p-dap", 1)
    rows = found["results"]
    names = ("algorithm", "epsilon", "feedback_epsilon")
    assert {tuple(row[name] for name in names) for row in rows} >= WANTED
    for row in rows:
        assert set(row) == {*names, "regret_mean", "regret_std", "accuracy"}
        assert 0 < row["regret_mean"] < 60
        assert 0 <= row["accuracy"] <= 1
    assert found["published"]["table_2"]["dap"][-1] == 0.9217
    assert found["published"]["gp_dap_regret_below_p_dap"] == 0.32
    written = {path.name for path in folder.iterdir()}
    assert written == {"p-dap.json", "figure-6.png", "figure-7.png", "figure-8.png", "served.png"}
    kept = json.loads((folder / "p-dap.json").read_text())
    assert kept["results"] == rows
    assert kept["rounds"] == 60
    curve = kept["environments"]["default"][0]["curve"]
    assert curve["regret"][-1] == pytest.approx(rows[0]["regret_mean"])


def test_several_processes_find_the_same(alone: tuple[str, Path], tmp_path: Path) -> None:
    """In a process of its own, which takes its helpers with it when it ends."""
    done = subprocess.run(
        [
            *(str(Path(sys.executable).parent / "discreet"), *SMALL, "--json"),
            *("--processes", "2", "--out", str(tmp_path)),
        ],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0
    assert done.stdout == alone[0]
    assert done.stderr == ""


def test_tables_show_published_numbers_beside_ours(
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


def test_a_folder_that_cannot_be_created_is_an_error_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main([*SMALL, "--out", str(tmp_path / "file" / "x")]) == 2
    assert "--out" in capsys.readouterr().err
