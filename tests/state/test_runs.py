"""Few large writes leave what many small ones leave in turn."""

import itertools
import struct

from hypothesis import given
from hypothesis import strategies as st

from discreet.state.runs import GAP, disjoint, packed_runs

WRITES = st.lists(st.tuples(st.integers(0, 600), st.binary(max_size=20)), max_size=40)


def painted(writes: list[tuple[int, bytes]]) -> bytes:
    page = bytearray()
    for offset, content in writes:
        if content:
            page.extend(bytes(max(0, offset - len(page))))
            page[offset : offset + len(content)] = content
    return bytes(page)


@given(WRITES)
def test_disjoint_writes_leave_the_same_page(writes: list[tuple[int, bytes]]) -> None:
    apart = list(disjoint(writes))
    assert painted(apart) == painted(writes)
    for (offset, content), (following, _) in itertools.pairwise(apart):
        assert offset + len(content) <= following


@given(WRITES)
def test_runs_are_as_far_apart_as_they_should_be(writes: list[tuple[int, bytes]]) -> None:
    runs, contents = packed_runs(writes)
    words = list(struct.unpack(f">{len(runs) // 4}I", runs))
    unpacked: list[tuple[int, bytes]] = []
    end = -GAP - 1
    while words:
        start, count, *words = words
        assert start - end > GAP
        assert words[0] == start
        for _ in range(count):
            offset, length, *words = words
            assert offset == start or offset - end <= GAP
            unpacked.append((offset, contents[:length]))
            contents = contents[length:]
            end = offset + length
    assert contents == b""
    assert unpacked == list(disjoint(writes))
