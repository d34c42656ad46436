"""What failed by chance passes the second time and is named; nothing else is forgiven."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import run, survivors
from tests.house import ROOT
from tests.waiting import PATIENCE

SOUND = "def test_sound():\n    pass\n"
WRONG = "def test_wrong():\n    assert 1 == 2\n"
LEFT_OUT = "import pytest\ndef test_tired():\n    pytest." + "skip('too tired')\n"
UNSTABLE = """
import pytest
from pathlib import Path

@pytest.mark.parametrize("name", ["a b", "c"])
def test_luck(name):
    seen = Path(__file__).with_name(name)
    if not seen.exists():
        seen.write_text("")
        raise AssertionError("not this time")
"""
BROKEN = "import a_module_that_nobody_has\n"
CRASHING = "import os\ndef test_crash():\n    os._exit(3)\n"
SURVIVED = f"""
import pytest

@pytest.fixture(scope="session", autouse=True)
def no_survivors():
    yield
    pytest.fail("{survivors.OUTLIVED}: one")

def test_forgets():
    pass
"""
LAST_LINE = re.compile(r"=+ .* in \d+\.\d\ds (\(.*\) )?=+")


def make_test(
    folder: Path, *arguments: str, lint: str = "true", **files: str
) -> subprocess.CompletedProcess[str]:
    """Run all of it over planted tests, as `make test` would."""
    (folder / "Makefile").write_text(f"lint:\n\t@echo linted; {lint}\n")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p xdist -p no:cacheprovider\n")
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    return subprocess.run(
        [sys.executable, "-m", "tests.run", "-n", "1", *arguments],
        cwd=folder,
        # What else is installed need not be loaded for this, a dozen times.
        env={**environment, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout.rstrip().splitlines()[-1]


def test_what_passes_is_run_once(tmp_path: Path) -> None:
    done = make_test(tmp_path, sound=SOUND)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "once more" not in done.stdout
    assert "UNSTABLE" not in done.stdout
    assert re.search(re.escape(run.CPU) + r" \d+ s$", done.stdout, re.MULTILINE)
    assert LAST_LINE.fullmatch(last_line(done))
    assert "1 passed" in last_line(done)


def test_tests_are_compiled_before_several_processes_read_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_sound.py").write_text(SOUND)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert not run.compiled(tmp_path)
    run.compile_tests([])
    assert run.compiled(tmp_path)
    assert [path.name for path in (tmp_path / "__pycache__").glob("test_sound.*-pytest-*.pyc")]
    later = (tmp_path / "test_sound.py").stat().st_mtime + 3600
    os.utime(tmp_path / "test_sound.py", (later, later))
    assert not run.compiled(tmp_path)


def test_what_failed_by_chance_passes_and_is_named(tmp_path: Path) -> None:
    done = make_test(tmp_path, sound=SOUND, luck=UNSTABLE, tired=LEFT_OUT)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("a b", "c"):
        line = f"UNSTABLE: test_luck.py::test_luck[{name}] failed first and passed when run alone"
        assert line in done.stdout.splitlines()
    assert "LEFT OUT: too tired (1 test)" in done.stdout.splitlines()[-5:]
    assert LAST_LINE.fullmatch(last_line(done))
    assert " 3 passed, 1 skipped, 2 unstable in " in last_line(done)


def test_what_fails_twice_fails(tmp_path: Path) -> None:
    done = make_test(tmp_path, sound=SOUND, luck=UNSTABLE, wrong=WRONG)
    assert done.returncode == 1
    assert "UNSTABLE: test_luck.py::test_luck[c] failed first" in done.stdout
    assert "UNSTABLE: test_wrong" not in done.stdout
    assert " 1 failed, 3 passed, 2 unstable in " in last_line(done)


@pytest.mark.parametrize("text", [BROKEN, CRASHING], ids=["not imported", "a crash"])
def test_what_ends_otherwise_fails_as_well(tmp_path: Path, text: str) -> None:
    done = make_test(tmp_path, sound=SOUND, broken=text)
    assert done.returncode not in (0, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert "UNSTABLE" not in done.stdout


def test_a_process_that_outlives_the_tests_is_not_forgiven(tmp_path: Path) -> None:
    done = make_test(tmp_path, forgets=SURVIVED)
    assert done.returncode == 1
    assert "once more" not in done.stdout


def test_lint_is_not_forgiven(tmp_path: Path) -> None:
    done = make_test(tmp_path, lint="false", sound=SOUND)
    assert done.returncode == 1
    assert "1 passed" in done.stdout
    assert "linted\n" in done.stdout
    assert last_line(done) == "Lint failed: see above. The tests passed."


def test_many_failures_are_no_chance(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[list[str]] = []
    many = {f"test_{number}": "failed" for number in range(run.MOST_REPEATED + 1)}

    def run_pytest(arguments: list[str]) -> run.RunRecord:
        calls.append(arguments)
        return run.RunRecord(1, many)

    monkeypatch.setattr(run, "run_pytest", run_pytest)
    monkeypatch.setattr(run, "compiled", lambda folder: True)
    assert run.run_tests([]) == 1
    assert len(calls) == 1
    assert "too many for chance" in capsys.readouterr().out


def test_a_call_that_pytest_does_not_understand_is_passed_on(tmp_path: Path) -> None:
    done = make_test(tmp_path, "--no-such-option", sound=SOUND)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
