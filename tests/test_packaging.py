"""The wheel is whole, the pins are pins, and the set-up script says what is missing."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from email import message_from_bytes
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import discreet
from tests import house
from tests.house import ROOT
from tests.waiting import PATIENCE

UNLISTED = "discreet/state/planted.unlisted"

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGE_FILES = [
    path.relative_to(ROOT)
    for path in house.repository_files()
    if ROOT / "service" / "discreet" in path.parents
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel of what the repository holds, and of one file of a kind that nobody listed."""
    source = tmp_path_factory.mktemp("source")
    for name in [*PACKAGE_FILES, Path("pyproject.toml"), Path("README.md"), Path("LICENSE")]:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    (source / "service" / UNLISTED).write_text("left behind")
    built = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--no-index", "--wheel-dir", str(built), str(source)]
    subprocess.run(command, check=True, timeout=600)
    return zipfile.ZipFile(next(built.glob("discreet-*.whl")))


def test_the_wheel_carries_every_file_of_the_package(wheel: zipfile.ZipFile) -> None:
    wanted = {str(path.relative_to("service")) for path in PACKAGE_FILES} | {UNLISTED}
    assert wanted - set(wheel.namelist()) == {UNLISTED}


def test_the_wheel_installs_one_package_and_nothing_beside_it(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert tops == {"discreet", f"discreet-{PROJECT['version']}.dist-info"}


def test_the_wheel_says_what_a_package_index_shows(wheel: zipfile.ZipFile) -> None:
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = message_from_bytes(wheel.read(name))
    assert 40 < len(metadata["Summary"]) < 200
    assert metadata["License-Expression"] == "Apache-2.0"
    assert {"Typing :: Typed", "Programming Language :: Python :: 3.11"} <= set(
        metadata.get_all("Classifier", [])
    )
    assert len(metadata.get_all("Project-URL", [])) == 5
    assert str(metadata.get_payload()).startswith("# ")


def test_the_wheel_brings_the_command_and_the_licence(wheel: zipfile.ZipFile) -> None:
    scripts = next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "discreet = discreet.cli:main" in wheel.read(scripts).decode()
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())


def test_everything_in_the_wheel_can_be_imported(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    program = (
        "import importlib, pkgutil, discreet\n"
        "for module in pkgutil.walk_packages(discreet.__path__, 'discreet.'):\n"
        "    if not module.name.endswith('__main__'):\n"
        "        print(importlib.import_module(module.name).__file__)\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert answer.returncode == 0, answer.stderr
    places = answer.stdout.splitlines()
    assert len(places) > 20
    assert all(Path(place).is_relative_to(tmp_path) for place in places)


def test_the_version_is_the_same_everywhere() -> None:
    assert discreet.__version__ == PROJECT["version"]


def _pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [line for line in pins if not re.fullmatch(r"[\w.-]+==[\w.+!]+", line)] == []
    return {canonicalize_name(name): version for name, version in (pin.split("==") for pin in pins)}


def test_every_dependency_is_pinned_to_a_version_that_it_allows() -> None:
    pins = _pins()
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    wanted = [Requirement(line) for group in groups for line in group]
    assert len(wanted) > 20
    for requirement in wanted:
        name = canonicalize_name(requirement.name)
        if name != PROJECT["name"]:
            assert requirement.specifier.contains(pins[name]), requirement


def _locked(name: str) -> dict[str, str]:
    """Return what one of the image's locks names; every entry has at least one hash."""
    text = (ROOT / "deploy" / "image" / f"{name}.lock").read_text()
    entries = re.findall(
        r"^([\w.-]+)==([\w.+!]+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)", text, re.M
    )
    assert len(entries) == len(re.findall(r"^[^#\s]", text, re.MULTILINE)), "an entry has no hash"
    return {canonicalize_name(entry): version for entry, version, _ in entries}


def test_the_image_is_made_of_the_pinned_versions() -> None:
    pins = _pins()
    service, build = _locked("service"), _locked("build")
    # Only Pythons before 3.11.3 need async-timeout, and Debian's is one; the pins' is newer.
    assert {**service, **build}.items() - {("async-timeout", "5.0.1")} <= pins.items()
    groups = [PROJECT["dependencies"], PROJECT["optional-dependencies"]["collaborative"]]
    named = {canonicalize_name(Requirement(line).name) for group in groups for line in group}
    assert named <= service.keys()
    # What only building needs stays out of what is served.
    assert "cyclonedx-bom" in build
    assert "cyclonedx-bom" not in service


def test_every_make_target_that_a_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    pages = [path for path in house.repository_files() if path.suffix == ".md"]
    named = {
        name: page.name
        for page in pages
        for name in re.findall(r"(?:`|^)make ([a-z0-9-]+)", page.read_text(), re.MULTILINE)
    }
    assert {"run", "test", "lint"} <= targets & set(named)
    assert {name: page for name, page in named.items() if name not in targets} == {}


INTERPRETER = r"""#!/bin/sh
# Stands in for Python {version}: .ci/environment asks it four things.
case "$*" in
    *sys.exit*) {recent} ;;
    *print*) echo "{version}" ;;
    *ensurepip*) {ensurepip} ;;
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    "-m pip "*) echo "$*" >> pip.log ;;
    -V) echo "Python {version}.0" ;;
    *) echo "unexpected: $*" >&2; exit 64 ;;
esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with the set-up script, and a PATH that holds a POSIX system without any Python."""
    folder = tmp_path / "clone"
    shutil.copytree(ROOT / ".ci", folder / ".ci")
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "cat", "cksum", "cp", "dirname", "env", "id", "mkdir", "rm", "sleep"):
        (programs / name).symlink_to(shutil.which(name) or name)
    return folder


def _install_python(
    clone: Path, version: str, *, recent: bool = True, ensurepip: bool = True
) -> None:
    program = clone.parent / "bin" / f"python{version}"
    program.write_text(
        INTERPRETER.format(
            version=version,
            recent="exit 0" if recent else "exit 1",
            ensurepip="exit 0" if ensurepip else "exit 1",
        )
    )
    program.chmod(0o755)


def _set_up(clone: Path, wanted: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [clone / ".ci" / "environment", wanted],
        env={"PATH": str(clone.parent / "bin"), "SYSTEM_PACKAGES": "no"} | variables,
        capture_output=True,
        text=True,
        timeout=600,
    )


def _installed(clone: Path) -> list[str]:
    log = clone / "pip.log"
    return [line.split()[-1] for line in log.read_text().splitlines()] if log.exists() else []


def test_without_python_the_set_up_says_what_to_install(clone: Path) -> None:
    _install_python(clone, "3.13", recent=False)
    answer = _set_up(clone, "run")
    assert answer.returncode != 0
    assert "needs Python 3.11 or newer" in answer.stderr
    assert not (clone / ".venv").exists()


def test_an_old_python_that_was_asked_for_is_refused(clone: Path) -> None:
    _install_python(clone, "3.9", recent=False)
    _install_python(clone, "3.12")
    answer = _set_up(clone, "run", PYTHON="python3.9")
    assert answer.returncode != 0
    assert "PYTHON=python3.9 is not" in answer.stderr


def test_without_ensurepip_the_set_up_names_the_package(clone: Path) -> None:
    _install_python(clone, "3.12", ensurepip=False)
    answer = _set_up(clone, "run")
    assert answer.returncode != 0
    assert "apt-get install python3.12-venv" in answer.stderr


def test_the_set_up_installs_once_and_again_only_after_a_change(clone: Path) -> None:
    _install_python(clone, "3.13", recent=False)  # a shim with nothing behind it is passed over
    _install_python(clone, "3.12")
    assert _set_up(clone, "run").returncode == 0
    assert _installed(clone) == ["setuptools", "."]
    assert _set_up(clone, "run").stderr == ""
    assert len(_installed(clone)) == 2

    assert _set_up(clone, "dev").returncode == 0
    assert _installed(clone)[2:] == ["setuptools", ".[dev]"]
    for less in ("run", "audit"):
        assert _set_up(clone, less).stderr == ""  # what developing needs includes it
    assert len(_installed(clone)) == 4

    assert _set_up(clone, "bench").returncode == 0
    assert _installed(clone)[4:] == ["setuptools", ".[bench]"]
    assert _set_up(clone, "dev").stderr == ""  # it came on top
    assert len(_installed(clone)) == 6

    with (clone / "constraints.txt").open("a") as pins:
        pins.write("another==1.0\n")
    assert _set_up(clone, "run").returncode == 0
    assert _installed(clone)[6:] == ["setuptools", "."]


def test_another_python_makes_another_environment(clone: Path) -> None:
    _install_python(clone, "3.12")
    _install_python(clone, "3.11")
    assert _set_up(clone, "run").returncode == 0
    assert _set_up(clone, "run", PYTHON="python3.12").stderr == ""
    assert "Making .venv with Python 3.11" in _set_up(clone, "run", PYTHON="python3.11").stderr


def test_a_failed_installation_is_not_taken_for_done(clone: Path) -> None:
    _install_python(clone, "3.12")
    program = clone.parent / "bin" / "python3.12"
    works = program.read_text()
    program.write_text(works.replace('echo "$*" >> pip.log', "exit 3"))
    assert _set_up(clone, "run").returncode == 3
    program.write_text(works)
    shutil.copy(program, clone / ".venv" / "bin" / "python")
    assert _set_up(clone, "run").returncode == 0
    assert _installed(clone) == ["setuptools", "."]


def test_two_set_ups_at_once_install_once(clone: Path) -> None:
    _install_python(clone, "3.12")
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: _set_up(clone, "run"), range(4)))
    assert [answer.returncode for answer in answers] == [0, 0, 0, 0]
    assert _installed(clone) == ["setuptools", "."]
    assert not (clone / ".venv.lock").exists()


def test_the_lock_of_a_set_up_that_died_is_taken_over(clone: Path) -> None:
    _install_python(clone, "3.12")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait(PATIENCE)
    (clone / ".venv.lock").mkdir()
    (clone / ".venv.lock" / "pid").write_text(f"{dead.pid}\n")
    assert _set_up(clone, "run").returncode == 0
    assert _installed(clone) == ["setuptools", "."]
