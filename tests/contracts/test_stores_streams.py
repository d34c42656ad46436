"""What every store promises about streams: memory, Valkey, cluster."""

import pytest

from discreet.errors import InvalidArgument
from discreet.state.stores import Store
from tests.state.places import Place

pytestmark = pytest.mark.anyio

STREAM = b"stream}{".ljust(16, b"}")
OTHER = b"other".ljust(16, b"\x00")
DAY = 86_400


async def lines(store: Store, stream: bytes = STREAM) -> list[bytes]:
    return [line for _, line in await store.read_stream(stream=stream)]


async def test_lines_come_back_in_order(store: Store) -> None:
    assert await lines(store) == []
    await store.append_stream(stream=STREAM, lines=[b"1", b"2"], keep=DAY)
    await store.append_stream(stream=STREAM, lines=[b"3"], keep=DAY)
    await store.append_stream(stream=OTHER, lines=[b"x"], keep=DAY)
    await store.append_stream(stream=OTHER, lines=[], keep=DAY)
    assert await lines(store) == [b"1", b"2", b"3"]
    assert await lines(store, OTHER) == [b"x"]


async def test_a_stream_is_read_in_pieces(store: Store) -> None:
    await store.append_stream(stream=STREAM, lines=[b"%d" % n for n in range(25)], keep=DAY)
    found: list[bytes] = []
    last = b""
    while some := await store.read_stream(stream=STREAM, after=last, most=10):
        assert len(some) <= 10
        found += [line for _, line in some]
        last = some[-1][0]
    assert found == [b"%d" % n for n in range(25)]


async def test_lines_are_removed_by_number(store: Store) -> None:
    await store.append_stream(stream=STREAM, lines=[b"1", b"2", b"3"], keep=DAY)
    (_, first), (number, _), (_, third) = await store.read_stream(stream=STREAM)
    for _ in range(2):
        await store.remove_from_stream(stream=STREAM, numbers=[number])
    await store.remove_from_stream(stream=STREAM, numbers=[])
    assert await lines(store) == [first, third] == [b"1", b"3"]


async def test_old_lines_go_when_others_come_and_when_asked(place: Place) -> None:
    """One second is kept, and two go by."""
    store = place.store
    for stream in (STREAM, OTHER):
        await store.append_stream(stream=stream, lines=[b"old"], keep=DAY)
    await place.elapse(2.2)
    await store.append_stream(stream=STREAM, lines=[b"new"], keep=1)
    assert await lines(store) == [b"new"]
    await store.trim_stream(stream=OTHER, keep=DAY)
    assert await lines(store, OTHER) == [b"old"]
    await store.trim_stream(stream=OTHER, keep=1)
    assert await lines(store, OTHER) == []


async def test_the_last_lines_go_though_nobody_comes(place: Place) -> None:
    await place.store.append_stream(stream=STREAM, lines=[b"last"], keep=1)
    await place.elapse(2.2)
    await place.store.trim_stream(stream=OTHER, keep=1)  # of another stream
    assert await lines(place.store) == []


async def test_a_stream_is_erased_with_what_has_its_name(store: Store) -> None:
    await store.append_stream(stream=STREAM, lines=[b"1"], keep=DAY)
    await store.erase(keys=[STREAM])
    assert await lines(store) == []


async def test_what_cannot_be_kept_is_refused(store: Store) -> None:
    with pytest.raises(InvalidArgument):
        store.append_stream(stream=b"", lines=[b"x"], keep=DAY)
    with pytest.raises(InvalidArgument):
        store.append_stream(stream=STREAM, lines=[b""], keep=DAY)
    with pytest.raises(InvalidArgument):
        store.append_stream(stream=STREAM, lines=[b"x"], keep=0)
