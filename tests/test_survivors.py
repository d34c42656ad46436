"""A process that outlives the tests is found by any of its three marks, and killed."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.house import ROOT
from tests.survivors import processes_of, wait_for_none

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.needs("procfs")

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start processes that wait for their input to end; none of them outlives the test."""
    with ExitStack() as stack:

        def run(*arguments: str, **options: Any) -> "subprocess.Popen[str]":
            program = "import sys; print('up', flush=True); sys.stdin.read()"
            process = subprocess.Popen(
                [sys.executable, "-c", program, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                **({"cwd": "/", "env": {}} | options),
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            return process

        yield run


@pytest.mark.parametrize("mark", ["command line", "working directory", "environment"])
def test_each_mark_betrays_a_process(start: Start, tmp_path: Path, mark: str) -> None:
    below = tmp_path / "data"
    below.mkdir()
    stranger = start()
    process = {
        "command line": lambda: start(f"--data={below}/x"),
        "working directory": lambda: start(cwd=below),
        "environment": lambda: start(env={"TMPDIR": f"{below}/x"}),
    }[mark]()
    assert [survivor.pid for survivor in processes_of(tmp_path)] == [process.pid]
    assert [survivor.pid for survivor in wait_for_none(tmp_path, grace=0.0)] == [process.pid]
    assert process.wait(timeout=600) == -9
    assert processes_of(tmp_path) == []
    assert stranger.poll() is None


def test_a_folder_whose_name_only_begins_alike_is_another(start: Start, tmp_path: Path) -> None:
    (tmp_path / "run-1").mkdir()
    (tmp_path / "run-12").mkdir()
    start(cwd=tmp_path / "run-12")
    assert processes_of(tmp_path / "run-1") == []


def test_a_process_on_its_way_out_is_waited_for(start: Start, tmp_path: Path) -> None:
    process = start(cwd=tmp_path)
    assert processes_of(tmp_path) != []
    assert process.stdin is not None
    process.stdin.close()
    assert wait_for_none(tmp_path) == []
    assert process.wait(timeout=600) == 0


@pytest.mark.parametrize("forgets", [True, False])
def test_a_run_that_leaves_a_process_behind_fails(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, forgets: bool
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest(
        """
        from tests import survivors
        survivors.GRACE_SECONDS = 0.0
        from tests.conftest import no_survivors
        """
    )
    pytester.makepyfile(
        f"""
        import subprocess, sys, tempfile

        def test_starts_a_server():
            server = subprocess.Popen(
                [sys.executable, "-c", "import time; time.sleep(600)"],
                cwd=tempfile.mkdtemp(), env={{}}, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
            if not {forgets}:
                server.kill()
                server.wait()
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", timeout=600)
    result.assert_outcomes(passed=1, errors=1 if forgets else 0)
    if forgets:
        result.stdout.fnmatch_lines(["processes outlived*", "*time.sleep(600)*"])
