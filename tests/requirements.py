"""What some tests need beyond PyPI, and what happens where it is missing.

Nothing is skipped silently. A test says what it needs, by marker or by fixture:

    @pytest.mark.needs("chromium")           or the fixture `chromium`, the browser's path
    def test_page(...): ...

    def test_on_movielens(data_set):
        folder = data_set("ml-100k")         a folder under $DISCREET_DATA

Where the thing is missing the test is left out and the closing summary says so. With `CI` set
that is a failure, except for data sets: their licences keep them off build machines.

`python -m tests.requirements` prints the Debian packages of what is missing; `make test` installs
them where it may. `python -m tests.requirements image` does so for `make image`.
"""

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

LEFT_OUT = "LEFT OUT: "
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_APPLICATIONS = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """Something beyond PyPI: how to find it, what to do by hand, which package carries it."""

    find: Callable[[], Path | None]
    remedy: str
    debian_package: str = ""
    wanted_by: str = "test"


def program(name: str, *, debian_package: str, wanted_by: str = "test") -> Requirement:
    """A program on PATH that one Debian package carries."""

    def find() -> Path | None:
        # Some of them live where only root's PATH leads.
        found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
        return Path(found) if found else None

    return Requirement(
        find=find,
        remedy=f"install {name} (Debian: {debian_package})",
        debian_package=debian_package,
        wanted_by=wanted_by,
    )


K6 = Path(sys.executable).parent / "k6"
TOOLS = Path(__file__).resolve().parent.parent / ".venv" / "tools"


def tool(path: str) -> Requirement:
    """Something that tests/deploy/tools/install sets up, as `make test` does."""
    return Requirement(
        # The stamp says that the installation was finished, not only begun.
        find=lambda: (
            TOOLS / path if (TOOLS / path.partition("/")[0] / ".installed").exists() else None
        ),
        remedy="run tests/deploy/tools/install",
    )


@cache
def _runs(program: str) -> bool:
    """Tell whether it starts: Ubuntu's chromium-browser is a stub where there is no snap."""
    try:
        return (
            subprocess.run([program, "--version"], capture_output=True, timeout=600).returncode == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def find_chromium() -> Path | None:
    """Return the browser: `$CHROMIUM` if set, else the first on this machine that starts."""
    named = os.environ.get("CHROMIUM")
    names = (named,) if named else CHROMIUM_NAMES + CHROMIUM_APPLICATIONS
    found = next(filter(_runs, filter(None, map(shutil.which, names))), None)
    return Path(found) if found else None


def find_history() -> Path | None:
    """Return the repository if the commit before this one can be read from it."""
    root = Path(__file__).resolve().parent.parent
    words = ["git", "-C", str(root), "cat-file", "-e", "HEAD~1:service"]
    try:
        found = subprocess.run(words, capture_output=True, timeout=600)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return root if found.returncode == 0 else None


REQUIREMENTS = {
    "chromium": Requirement(
        find=find_chromium,
        remedy="install Chromium or Chrome, or set CHROMIUM to its path",
        debian_package="chromium",
    ),
    "procfs": Requirement(
        find=lambda: Path("/proc/self/environ") if Path("/proc/self/environ").exists() else None,
        remedy="run on Linux",
    ),
    "history": Requirement(
        find=find_history,
        remedy="clone the repository with its history, and install git",
    ),
    "prometheus": program("prometheus", debian_package="prometheus"),
    "promtool": program("promtool", debian_package="prometheus"),
    "k6": Requirement(
        # From the environment of the tests; a k6 on PATH may be of any age.
        find=lambda: K6 if K6.exists() else None,
        remedy="run `.ci/environment dev`",
    ),
    # Debian's tools are one program with the server, which speaks TLS; the embedded store does not.
    "redis-check-rdb": program("redis-check-rdb", debian_package="redis-tools"),
    "curl": program("curl", debian_package="curl"),
    "cc": program("cc", debian_package="gcc"),
    "node": program("node", debian_package="nodejs"),
    "javac": program("javac", debian_package="openjdk-17-jdk-headless"),
    "npm": program("npm", debian_package="npm"),
    "kubectl": program("kubectl", debian_package="kubernetes-client"),
    "checkov": tool("checkov/bin/checkov"),
    "obp": tool("obp"),
    "tsc": tool("node/node_modules/.bin/tsc"),
    "buildah": program("buildah", debian_package="buildah", wanted_by="image"),
    "podman": program("podman", debian_package="podman", wanted_by="image"),
    "runc": program("runc", debian_package="runc", wanted_by="image"),
    "mmdebstrap": program("mmdebstrap", debian_package="mmdebstrap", wanted_by="image"),
}


def leave_out(reason: str, *, fails_in_ci: bool) -> None:
    """Leave the running test out aloud, or fail it where everything has to be there."""
    if fails_in_ci and os.environ.get("CI"):
        pytest.fail(f"CI has to run this test: {reason}", pytrace=False)
    pytest.skip(LEFT_OUT + reason)


def need(name: str) -> Path:
    """Return where `name` is; without it the running test is left out, or fails in CI."""
    if name not in REQUIREMENTS:
        raise pytest.UsageError(f"needs({name!r}): known are {', '.join(sorted(REQUIREMENTS))}")
    requirement = REQUIREMENTS[name]
    found = requirement.find()
    if found is None:
        leave_out(f"{name} is missing; {requirement.remedy}", fails_in_ci=True)
    assert found is not None
    return found


def need_data(name: str) -> Path:
    """Return the folder of a data set under `$DISCREET_DATA`, or leave the test out."""
    root = os.environ.get("DISCREET_DATA")
    folder = Path(root, name) if root else None
    if folder is None or not folder.is_dir():
        leave_out(f"data set {name} is missing; set DISCREET_DATA", fails_in_ci=False)
    assert folder is not None
    return folder


@pytest.fixture
def chromium() -> Path:
    """The path of a Chromium that Playwright can drive."""
    return need("chromium")


@pytest.fixture
def data_set() -> Callable[[str], Path]:
    """Look a data set's folder up by name."""
    return need_data


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        need(*marker.args, **marker.kwargs)


def reasons(terminalreporter: pytest.TerminalReporter) -> list[str]:
    """Return why tests were left out; reads reports, so it holds with parallel workers too."""
    # A skip's representation is (file, line, "Skipped: <reason>").
    return [
        str(report.longrepr[2]).removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
    ]


def left_out(reasons: Iterable[str]) -> list[str]:
    """Return a line for each reason, with how many tests it left out."""
    lines = []
    for reason, count in sorted(Counter(reasons).items()):
        prefix = "" if reason.startswith(LEFT_OUT) else LEFT_OUT
        tests = "1 test" if count == 1 else f"{count} tests"
        lines.append(f"{prefix}{reason} ({tests})")
    return lines


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at the end what was left out."""
    if lines := left_out(reasons(terminalreporter)):
        terminalreporter.section("not everything was tested", yellow=True)
        for line in lines:
            terminalreporter.line(line, yellow=True)


if __name__ == "__main__":
    wanted_by = sys.argv[1] if len(sys.argv) > 1 else "test"
    wanted = [each for each in REQUIREMENTS.values() if each.wanted_by == wanted_by]
    missing = {each.debian_package for each in wanted if each.debian_package and not each.find()}
    print(*sorted(missing))
