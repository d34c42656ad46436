"""Long files begin first, where tests run side by side, and only there."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.house import ROOT
from tests.side_by_side import (
    LONGEST_FIRST,
    MOST_PROCESSES,
    processes,
    pytest_collection_modifyitems,
    turn,
)


def sorted_by(config: Any, *names: str) -> list[str]:
    items: list[Any] = [SimpleNamespace(nodeid=name) for name in names]
    pytest_collection_modifyitems(config, items)
    return [item.nodeid for item in items]


NAMES = (
    *("tests/api/test_a.py::test_1", "tests/api/test_a.py::test_4", "tests/api/test_c.py::test_5"),
    f"{LONGEST_FIRST[2]}/test_b.py::test_2[x::y]",
    *(f"{LONGEST_FIRST[0]}::test_3", f"{LONGEST_FIRST[0]}::test_0", "tests/hub/test_d.py::test_6"),
)


def test_the_longest_come_first_others_in_between_and_files_stay_as_they_are() -> None:
    beside = SimpleNamespace(workerinput={})
    assert sorted_by(beside, *NAMES) == [NAMES[n] for n in (4, 5, 0, 1, 3, 2, 6)]


def test_there_are_more_processes_than_cores_but_not_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for cores, expected in ((None, 3), (2, 5), (64, MOST_PROCESSES)):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        assert processes() == expected


def test_one_process_keeps_the_order() -> None:
    assert sorted_by(SimpleNamespace(), *NAMES) == list(NAMES)


@pytest.mark.parametrize("path", LONGEST_FIRST)
def test_what_is_named_exists(path: str) -> None:
    assert (ROOT / path).exists()
    assert turn(path) == LONGEST_FIRST.index(path)


def test_a_name_that_only_begins_alike_is_another() -> None:
    assert turn("tests/browsers/test_x.py") == len(LONGEST_FIRST)
