"""Many small writes into a page as few large ones, for `lua/write_page.lua`."""

import struct
from collections.abc import Iterator, Sequence

GAP = 128
"""Bytes between two writes that are copied rather than skipped: a write of its own costs the
server's log about as much as that."""


def packed_runs(writes: Sequence[tuple[int, bytes]]) -> tuple[bytes, bytes]:
    """Return runs as 4-byte words (start, number of writes, offset and length of each), and the
    contents of all writes one after another."""
    words: list[int] = []
    contents: list[bytes] = []
    end = -GAP - 1
    counted = 0  # where in `words` the current run's number of writes stands
    for offset, content in disjoint(writes):
        if offset - end > GAP:
            counted = len(words) + 1
            words += (offset, 0)
        words[counted] += 1
        words += (offset, len(content))
        contents.append(content)
        end = offset + len(content)
    return struct.pack(f">{len(words)}I", *words), b"".join(contents)


def disjoint(writes: Sequence[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield ascending writes that do not overlap and leave what the given ones leave in turn."""
    places = sorted(range(len(writes)), key=lambda place: writes[place][0])
    overlapping: list[int] = []
    end = -1
    for place in places:
        offset, content = writes[place]
        if not content:
            continue
        if offset >= end and overlapping:
            yield _painted(writes, overlapping, end)
            overlapping = []
        overlapping.append(place)
        end = max(end, offset + len(content))
    if overlapping:
        yield _painted(writes, overlapping, end)


def _painted(
    writes: Sequence[tuple[int, bytes]], overlapping: list[int], end: int
) -> tuple[int, bytes]:
    """Return one write for several that overlap in a chain, and so cover [start, end) whole."""
    if len(overlapping) == 1:
        return writes[overlapping[0]]
    start = writes[overlapping[0]][0]
    canvas = bytearray(end - start)
    for place in sorted(overlapping):
        offset, content = writes[place]
        canvas[offset - start : offset - start + len(content)] = content
    return start, bytes(canvas)
