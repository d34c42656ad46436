"""Whatever a vendor sends is either an answer or a refusal to believe it, never an accident."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.families.p_dap.forwarding import Forwarded, RunningSum
from discreet.errors import PeerUnavailable
from discreet.peers.wire import LONGEST_HANDLE, read_forwarded

SUMS = {"releases": 3, "count": 3, "total": -1.5, "deviation": 2.0}
GOOD: dict[str, Any] = {"handle": "aB3-_", "expires_at": 1_800_000_000, "sums": SUMS}


def test_an_honest_answer_is_read() -> None:
    expected = Forwarded("aB3-_", 1_800_000_000, RunningSum(3, 3, -1.5, 2.0))
    assert read_forwarded(json.dumps(GOOD).encode()) == expected
    without = read_forwarded(json.dumps({**GOOD, "sums": None}).encode())
    assert without.sums is None


LIES: list[Any] = [
    b"",
    b"not json",
    b"\xff\xfe",
    b"[" * 10_000,
    b"null",
    b"[]",
    {},
    {**GOOD, "more": 1},
    {**GOOD, "handle": ""},
    {**GOOD, "handle": "x" * (LONGEST_HANDLE + 1)},
    {**GOOD, "handle": "a b"},
    {**GOOD, "handle": "a\r\nb"},
    {**GOOD, "handle": "ä"},
    {**GOOD, "handle": 3},
    {**GOOD, "expires_at": "tomorrow"},
    {**GOOD, "expires_at": True},
    {**GOOD, "expires_at": 1.5},
    {**GOOD, "expires_at": -1},
    {**GOOD, "expires_at": 2**32},
    {**GOOD, "sums": []},
    {**GOOD, "sums": {}},
    {**GOOD, "sums": {**SUMS, "more": 1}},
    {**GOOD, "sums": {**SUMS, "count": 1.5}},
    {**GOOD, "sums": {**SUMS, "count": True}},
    {**GOOD, "sums": {**SUMS, "count": -1}},
    {**GOOD, "sums": {**SUMS, "count": 2**70}},
    {**GOOD, "sums": {**SUMS, "total": "1"}},
    {**GOOD, "sums": {**SUMS, "total": None}},
    {**GOOD, "sums": {**SUMS, "total": float("nan")}},
    {**GOOD, "sums": {**SUMS, "total": float("inf")}},
    {**GOOD, "sums": {**SUMS, "total": 1e300}},
    {**GOOD, "sums": {**SUMS, "total": 10**400}},
    {**GOOD, "sums": {**SUMS, "deviation": -1.0}},
    {**GOOD, "sums": {**SUMS, "deviation": float("nan")}},
]


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: str(lie)[:60])
def test_anything_else_is_not_believed(lie: Any) -> None:
    body = lie if isinstance(lie, bytes) else json.dumps(lie).encode()
    with pytest.raises(PeerUnavailable) as caught:
        read_forwarded(body)
    assert caught.value.reason == "malformed"


@given(st.binary(max_size=300))
def test_bytes_at_random_are_refused_and_nothing_worse(body: bytes) -> None:
    with pytest.raises(PeerUnavailable):
        read_forwarded(body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(JSON, JSON, JSON)
def test_odd_values_in_the_right_places_are_refused_or_read(a: Any, b: Any, c: Any) -> None:
    for body in ({**GOOD, "handle": a}, {**GOOD, "expires_at": b}, {**GOOD, "sums": c}):
        try:
            answer = read_forwarded(json.dumps(body).encode())
        except PeerUnavailable:
            continue
        assert isinstance(answer.handle, str)
        assert isinstance(answer.expires_at, int)
