"""How test files are dealt out to processes that run side by side.

A file stays in one process, since its tests share servers. The longest begin first, so that none
of them is left over when everything else is done. They wait for servers, and most others compute:
so they take turns, and there are more processes than cores.
"""

import os
from itertools import chain, zip_longest

import pytest

LONGEST_FIRST = (
    "tests/test_audit_command.py",
    "tests/test_audit_faults.py",
    "tests/end_to_end",
    "tests/test_readme.py",
    "tests/deploy",
    "tests/chaos",
    "tests/browser",
    "tests/state",
    "tests/commands",
    "tests/loadtests",
    "tests/research/reproduce",
)


MOST_PROCESSES = 12
"""Each imports all tests and has servers of its own."""


def processes() -> int:
    """Return how many run side by side. If each waits for half of its time, five keep two cores
    busy for nine tenths of theirs; three did for two thirds."""
    return min(2 * (os.cpu_count() or 1) + 1, MOST_PROCESSES)


def turn(path: str) -> int:
    """Return where in the order a file's tests begin."""
    for place, prefix in enumerate(LONGEST_FIRST):
        if path == prefix or path.startswith(prefix + "/"):
            return place
    return len(LONGEST_FIRST)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let long files begin, and others in between; one process alone keeps the order of files."""
    if not hasattr(config, "workerinput"):
        return
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    long = sorted((path for path in files if turn(path) < len(LONGEST_FIRST)), key=turn)
    others = [path for path in files if turn(path) == len(LONGEST_FIRST)]
    order = filter(None, chain.from_iterable(zip_longest(long, others)))
    items[:] = [item for path in order for item in files[path]]
