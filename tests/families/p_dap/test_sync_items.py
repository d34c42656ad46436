"""Whatever a vendor sends is either an item behind a handle or nothing, never an accident."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.families.p_dap.sync import VendorItem, read_item

GOOD: dict[str, Any] = {"handle": "aB3-_", "expires_at": 1_800_000_000}


def test_an_honest_answer_is_read() -> None:
    assert read_item(json.dumps(GOOD).encode()) == VendorItem("aB3-_", 1_800_000_000)
    longest = {**GOOD, "handle": "x" * 600}
    assert read_item(json.dumps(longest).encode()) is not None


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        b"not json",
        b"\xff\xfe",
        b"[" * 10_000,
        b"null",
        b"[]",
        {},
        {"handle": "x"},
        {**GOOD, "handle": ""},
        {**GOOD, "handle": "x" * 601},
        {**GOOD, "handle": "a b"},
        {**GOOD, "handle": "a\r\nb"},
        {**GOOD, "handle": "ä"},
        {**GOOD, "handle": 3},
        {**GOOD, "handle": ["a"]},
        {**GOOD, "expires_at": "tomorrow"},
        {**GOOD, "expires_at": True},
        {**GOOD, "expires_at": 1.5},
        {**GOOD, "expires_at": float("inf")},
        {**GOOD, "expires_at": float("nan")},
        {**GOOD, "expires_at": -1},
        {**GOOD, "expires_at": 2**32},
    ],
    ids=lambda wrong: str(wrong)[:60],
)
def test_anything_else_is_nothing(wrong: Any) -> None:
    body = wrong if isinstance(wrong, bytes) else json.dumps(wrong).encode()
    assert read_item(body) is None


@given(st.binary(max_size=300))
def test_bytes_at_random_are_nothing(body: bytes) -> None:
    assert read_item(body) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(JSON, JSON)
def test_odd_values_in_the_right_places_are_read_as_what_they_are_or_not_at_all(
    handle: Any, expires_at: Any
) -> None:
    for body in ({**GOOD, "handle": handle}, {**GOOD, "expires_at": expires_at}):
        item = read_item(json.dumps(body).encode())
        if item is not None:
            assert isinstance(item.handle, str)
            assert isinstance(item.expires_at, int)
