"""Streams in memory; see `memory`, which adds the rest."""

from collections.abc import Awaitable, Callable, Sequence

from discreet.state import checks
from discreet.state.memory_values import MemoryValues
from discreet.state.ready import Ready

Lines = dict[bytes, tuple[float, bytes]]


class MemoryStreams(MemoryValues):
    """The part of `stores.Store` that holds streams; `clock` decides what is too old."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        super().__init__(clock=clock)
        self._streams: dict[bytes, Lines] = {}
        self._ends: dict[bytes, float] = {}
        self._stream_clock = clock
        self._appended = 0

    def erase(self, *, keys: Sequence[bytes]) -> Awaitable[None]:
        for key in keys:
            self._streams.pop(key, None)
        return super().erase(keys=keys)

    def append_stream(self, *, stream: bytes, lines: Sequence[bytes], keep: int) -> Awaitable[None]:
        held = self._streams.setdefault(checks.digest("stream", stream), {})
        now = self._stream_clock()
        for line in lines:
            self._appended += 1
            number = b"%d-%d" % (int(now * 1_000), self._appended)
            held[number] = (now, checks.document("line", line))
        if lines:
            self._ends[stream] = now + keep
        return self.trim_stream(stream=stream, keep=keep)

    def trim_stream(self, *, stream: bytes, keep: int) -> Awaitable[None]:
        oldest = self._stream_clock() - checks.ttl("keep", keep)
        held = self._streams.get(checks.digest("stream", stream), {})
        kept = {number: line for number, line in held.items() if line[0] >= oldest}
        self._streams[stream] = kept
        return Ready(None)

    def read_stream(
        self, *, stream: bytes, after: bytes = b"", most: int = 1_000
    ) -> Awaitable[Sequence[tuple[bytes, bytes]]]:
        if self._stream_clock() >= self._ends.get(checks.digest("stream", stream), 0.0):
            self._streams.pop(stream, None)
        held = self._streams.get(stream, {})
        behind = [(number, line) for number, (_, line) in held.items()]
        if after:
            wanted = _order(after)
            behind = [one for one in behind if _order(one[0]) > wanted]
        return Ready(behind[:most])

    def remove_from_stream(self, *, stream: bytes, numbers: Sequence[bytes]) -> Awaitable[None]:
        held = self._streams.get(checks.digest("stream", stream), {})
        for number in numbers:
            held.pop(number, None)
        return Ready(None)


def _order(number: bytes) -> tuple[int, int]:
    time, _, count = number.partition(b"-")
    return int(time), int(count)
