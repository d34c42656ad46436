"""What `make test` runs: lint beside the tests, and what failed once more.

    python -m tests.run [pytest's arguments]

The tests run side by side, in several processes. Whoever fails there runs once more when nothing
else does, one after another. Whoever passes then is named as UNSTABLE at the end: it leans on time
or luck, which has to be mended, but need not stop everybody's work.

The exit code is 0 only if every test passed, the first or the second time, and lint passed. Lint
has no second chance. Neither has a process that outlives the tests, nor a run in which more tests
fail than chance explains.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.requirements import left_out, reasons
from tests.side_by_side import processes
from tests.survivors import OUTLIVED

SIDE_BY_SIDE = (
    *("-n", str(processes())),
    # A file's tests share servers; which files come first is said in tests/side_by_side.py.
    *("--dist", "loadfile", "--no-loadscope-reorder"),
    # A crash of the interpreter is no chance, and the work of one that crashed is not taken over.
    *("--max-worker-restart", "0"),
)
MOST_REPEATED = 25
LINT = ("make", "--no-print-directory", "lint")
RECORD = "DISCREET_TEST_RECORD"
"""Names the file into which a run of pytest writes its record."""
CPU = "CPU of all processes, to be held against the clock and the cores:"
CATEGORIES = ("failed", "error", "passed", "skipped")
"""What becomes of a test, the worst first."""


@dataclass(frozen=True)
class RunRecord:
    """How one run of pytest ended: its exit code, and what became of each test."""

    code: int = 0
    outcomes: dict[str, str] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    """Why tests were left out."""
    outlived: bool = False
    """Whether a process outlived the tests, which running one of them again does not mend."""

    @property
    def failed(self) -> list[str]:
        return [name for name, outcome in self.outcomes.items() if outcome in ("failed", "error")]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
    """Write the record of this run, where somebody wants it: pytest calls this in its process."""
    path = os.environ.get(RECORD)
    if path is None:
        return
    outcomes: dict[str, str] = {}
    for category in CATEGORIES:
        for report in terminalreporter.stats.get(category, []):
            outcomes.setdefault(report.nodeid, category)
    errors = terminalreporter.stats.get("error", [])
    record = {
        "code": int(exitstatus),
        "outcomes": outcomes,
        "reasons": reasons(terminalreporter),
        "outlived": any(OUTLIVED in report.longreprtext for report in errors),
    }
    Path(path).write_text(json.dumps(record))
    terminalreporter.write_line(f"{CPU} {_cpu_seconds():.0f} s")


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of everything that it began and that has ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def run_pytest(arguments: Sequence[str]) -> RunRecord:
    """Run pytest in a process of its own; its output is ours."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "record.json")
        environment = {**os.environ, RECORD: str(path)}
        # Every process imports all tests, and servers start by the hundred: compile once.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-m", "pytest", "-p", "tests.run", *arguments]
        code = subprocess.run(command, env=environment, check=False).returncode
        if not path.exists():
            return RunRecord(code or 1)
        return RunRecord(**{**json.loads(path.read_text()), "code": code})


def compiled(folder: Path) -> bool:
    """Tell whether every test file below was compiled, by this Python, after it was written."""
    tag = sys.implementation.cache_tag
    for path in folder.rglob("test_*.py"):
        made = path.parent.glob(f"__pycache__/{path.stem}.{tag}-pytest-*.pyc")
        if not any(each.stat().st_mtime >= path.stat().st_mtime for each in made):
            return False
    return True


def compile_tests(arguments: Sequence[str]) -> None:
    """Let one process read and compile all tests: each of several would do it for itself, at once.

    Whatever is wrong with them is for the run itself to say.
    """
    environment = os.environ.copy()
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", *arguments]
    subprocess.run(
        command,
        env=environment,
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def run_tests(arguments: Sequence[str]) -> int:
    """Run the tests side by side, then once more what failed; return the exit code."""
    began = time.monotonic()
    if not compiled(Path("tests")):
        compile_tests(arguments)
    first = run_pytest([*SIDE_BY_SIDE, *arguments])
    failed = first.failed
    if first.code != pytest.ExitCode.TESTS_FAILED or first.outlived or not failed:
        return first.code
    if len(failed) > MOST_REPEATED:
        print(f"{len(failed)} tests failed, too many for chance: none was run again", flush=True)
        return first.code
    print(f"\nWhat failed is run once more, one after another: {len(failed)}\n", flush=True)
    second = run_pytest(failed)
    unstable = [name for name in failed if second.outcomes.get(name) == "passed"]
    print(*closing(first, second, unstable, time.monotonic() - began), sep="\n", flush=True)
    return 0 if second.code == 0 and unstable == failed else 1


def closing(
    first: RunRecord, second: RunRecord, unstable: Sequence[str], seconds: float
) -> list[str]:
    """Return the last lines about both runs; the very last one is shaped as pytest's own is."""
    counts = Counter((first.outcomes | second.outcomes).values())
    words = [f"{counts[one]} {one}" for one in CATEGORIES if counts[one]]
    words += [f"{len(unstable)} unstable"] if unstable else []
    return [
        *left_out(first.reasons),
        *(f"UNSTABLE: {name} failed first and passed when run alone" for name in unstable),
        f" {', '.join(words)} in {seconds:.2f}s ".center(80, "="),
    ]


def main(arguments: Sequence[str]) -> int:
    """Run lint and the tests beside each other; return the exit code."""
    with tempfile.TemporaryFile("w+") as output:
        lint = subprocess.Popen(LINT, stdout=output, stderr=subprocess.STDOUT)
        try:
            code = run_tests(arguments)
            failed = lint.wait() != 0
        finally:
            lint.kill()
        if not failed:
            return code
        output.seek(0)
        print("\n" + output.read())
    print("Lint failed: see above." + ("" if code else " The tests passed."), flush=True)
    return code or 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
