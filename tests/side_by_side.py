"""How test files are dealt out to processes that run side by side.

A file stays in one process, since its tests share servers. The longest begin first, so that none
of them is left over when everything else is done.
"""

import pytest

LONGEST_FIRST = (
    "tests/test_audit_command.py",
    "tests/end_to_end",
    "tests/test_readme.py",
    "tests/deploy",
    "tests/browser",
    "tests/commands",
    "tests/loadtests",
)


def turn(path: str) -> int:
    """Return where in the order a file's tests begin."""
    for place, prefix in enumerate(LONGEST_FIRST):
        if path == prefix or path.startswith(prefix + "/"):
            return place
    return len(LONGEST_FIRST)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let long files begin; a run in one process keeps the order of the files."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: turn(item.nodeid.partition("::")[0]))
