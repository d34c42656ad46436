"""One set of rules for every store: what is refused, and which argument is named."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument, StateOverflow
from discreet.state import checks
from tests.state.places import ONE, record


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (lambda value: checks.digest("x", value), [b"a", b"a" * 128], [b"", b"a" * 129, "a", None]),
        (lambda value: checks.document("x", value), [b"a"], [b"", "a", bytearray(b"a")]),
        (lambda value: checks.blob("x", value), [b"", b"a"], ["a", None]),
        (lambda value: checks.ttl("x", value), [1, checks.LONGEST_TTL], [0, 1.5, True, 2**60]),
        (checks.name, ["a", "ä" * 256], ["", "a" * 257, b"a", "\ud800"]),
        (checks.number, [1, 2**53 - 1], [0, -1, 2**53, True, 1.0]),
        (checks.most, [1], [0, 2**31, True]),
        (checks.expected, [None, 0, 5], [-1, 2**53, True, 0.5]),
        (checks.lasting, [0.001, 1, 2.5], [0, -1, float("nan"), float("inf"), "1", True]),
        (checks.guard, [None, (0, b"a")], [(0, b""), (-1, b"a"), (0, b"a" * 129), (0, "a")]),
        (checks.writes, [[], [(0, b"")], [(5, b"a")]], [[(-1, b"a")], [(0, "a")], [(2**60, b"")]]),
    ],
)
def test_what_a_store_can_use_is_returned_and_the_rest_refused(
    check: Callable[[Any], Any], good: list[Any], bad: list[Any]
) -> None:
    for value in good:
        check(value)
    for value in bad:
        with pytest.raises(InvalidArgument):
            check(value)


def test_a_lease_lasts_whole_milliseconds_and_never_less() -> None:
    assert checks.lasting(0.0011) == 2
    assert checks.lasting(3) == 3000


def test_a_span_without_an_end_reaches_the_end_of_any_page() -> None:
    assert checks.span(3, None) == (3, checks.MOST_PAGE)


def test_a_page_that_would_become_too_long_is_an_overflow() -> None:
    assert checks.page_end(checks.MOST_PAGE) == checks.MOST_PAGE
    with pytest.raises(StateOverflow):
        checks.page_end(checks.MOST_PAGE + 1)


def test_numbers_of_numpy_are_refused() -> None:
    """They would be written as `np.int64(1)`."""
    with pytest.raises(InvalidArgument):
        checks.feedback_record(record((0, np.int64(1)), charge=ONE))
