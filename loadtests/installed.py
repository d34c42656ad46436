"""Megabytes that an installation takes: the plain package, and what each extra adds.

    python loadtests/installed.py

Counted are the files of the distributions that pip would install, as they lie in the environment
of the interpreter that runs this, which has to have them (`.ci/environment dev`).
"""

import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
EXTRAS = ("collaborative", "audit", "plots", "research", "telemetry")
"""What a user may want beside the plain package."""
_SHOWN = 4


def closure(*extras: str) -> frozenset[str]:
    """Return the names of all distributions that `pip install discreet[extras]` installs."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    groups = [project["dependencies"], *(project["optional-dependencies"][one] for one in extras)]
    waiting = [Requirement(line) for group in groups for line in group]
    seen: set[tuple[str, str]] = set()
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        for extra in ("", *wanted.extras):
            if (name, extra) not in seen and _applies(wanted, ""):
                seen.add((name, extra))
                lines = distribution(name).requires or ()
                waiting += [each for line in lines if _applies(each := Requirement(line), extra)]
    return frozenset(name for name, _ in seen)


def _applies(wanted: Requirement, extra: str) -> bool:
    return wanted.marker is None or wanted.marker.evaluate({"extra": extra})


def megabytes(names: Iterable[str]) -> dict[str, float]:
    """Return what each distribution's files take, in MB, the largest first."""
    sizes = {name: _bytes(distribution(name)) / 1e6 for name in names}
    return dict(sorted(sizes.items(), key=lambda each: -each[1]))


def _bytes(installed: Distribution) -> int:
    paths = {Path(str(each.locate())) for each in installed.files or ()}
    return sum(path.stat().st_size for path in paths if path.is_file())


def main() -> None:
    """Print a table: the plain package, and what each extra adds to it."""
    plain = closure()
    rows = {"plain": plain} | {f"`[{extra}]` adds": closure(extra) - plain for extra in EXTRAS}
    print("| installed | MB | most of it |\n| --- | --- | --- |")
    for title, names in rows.items():
        sizes = megabytes(names)
        most = ", ".join(f"{name} {size:.0f}" for name, size in list(sizes.items())[:_SHOWN])
        print(f"| {title} | {sum(sizes.values()):.0f} | {most} |")


if __name__ == "__main__":
    main()
