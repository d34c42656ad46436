"""The client's own distribution: light, typed, clean under mypy --strict in a user's project."""

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "service" / "discreet_client"

PROGRAM = """
from discreet_client import Client, ProblemError

def first(url: str, key: str) -> str:
    with Client(url, key) as discreet:
        try:
            answer = discreet.recommend("films", client="ada", context={"age": 31})
        except ProblemError as problem:
            return problem.detail
        discreet.feedback(answer, reward=1)
        return answer.items[0].id

reveal_type(first("http://127.0.0.1:8000", "k"))
"""


def test_it_needs_httpx_and_nothing_else() -> None:
    code = "import sys, discreet_client; print(*sys.modules)"
    listed = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    ).stdout.split()
    assert not {"numpy", "scipy", "pydantic", "fastapi", "discreet"} & set(listed)
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    assert [each.split(">")[0] for each in project["dependencies"]] == ["httpx"]
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == whole["version"]


def test_the_wheel_has_the_client_alone(tmp_path: Path) -> None:
    # A copy, because building leaves files behind.
    source = shutil.copytree(PACKAGE, tmp_path / "discreet_client")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*command, "--wheel-dir", str(tmp_path), str(source)], check=True, timeout=PATIENCE
    )
    (wheel,) = tmp_path.glob("discreet_client-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"discreet_client/client.py", "discreet_client/py.typed"} <= set(names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"discreet_client"}


def test_a_users_project_is_clean_under_strict_mypy(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "program.py"],
        cwd=tmp_path,
        env={"MYPYPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert checked.returncode == 0, checked.stdout
    assert 'str"' in checked.stdout, "the types are known, not Any"
