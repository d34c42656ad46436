"""Bodies are bounded while they arrive, and have one reading."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, ValidationError

from discreet.api.bodies import BodyRoom, Disconnected, Reader, parse, read_body
from discreet.api.problems import Refused
from discreet.errors import Overloaded

pytestmark = pytest.mark.anyio

ROOM = BodyRoom(10**6)


class Arriving:
    """A body that arrives in pieces; counts how many were taken."""

    def __init__(self, chunks: Sequence[bytes], *, hangs_up: bool = False) -> None:
        self._messages: list[dict[str, Any]] = [
            {"type": "http.request", "body": chunk, "more_body": hangs_up or i < len(chunks) - 1}
            for i, chunk in enumerate(chunks)
        ]
        if hangs_up:
            self._messages.append({"type": "http.disconnect"})
        self.taken = 0

    async def __call__(self) -> dict[str, Any]:
        self.taken += 1
        return self._messages[self.taken - 1]


def length(size: int) -> list[tuple[bytes, bytes]]:
    return [(b"content-length", str(size).encode())]


@pytest.mark.parametrize("chunks", [[b""], [b"abc"], [b"ab", b"", b"c"], [b"", b"abc", b""]])
async def test_a_body_is_put_together(chunks: list[bytes]) -> None:
    assert await read_body(Arriving(chunks), [], 3, ROOM) == b"".join(chunks)


@pytest.mark.parametrize("chunks", [[b"abcd"], [b"ab", b"cd"], [b"ab", b"cd", b"ef"]])
async def test_a_body_that_grows_too_long_is_refused_while_it_arrives(chunks: list[bytes]) -> None:
    with pytest.raises(Refused) as caught:
        await read_body(Arriving(chunks), [], 3, ROOM)
    assert caught.value.kind.status == 413
    assert caught.value.headers["Connection"] == "close"


async def test_a_body_declared_too_long_is_refused_before_it_arrives() -> None:
    arriving = Arriving([b"x" * 10] * 1_000)
    with pytest.raises(Refused) as caught:
        await read_body(arriving, length(101), 100, ROOM)
    assert arriving.taken == 0
    assert caught.value.headers["Connection"] == "close"


async def test_what_arrives_slowly_takes_room_until_it_is_there() -> None:
    room = BodyRoom(10)
    waiting = asyncio.Event()
    pieces = iter([b"a" * 6, b"b" * 6])

    async def slowly() -> dict[str, Any]:
        piece = next(pieces)
        if piece.startswith(b"b"):
            await waiting.wait()
        return {"type": "http.request", "body": piece, "more_body": piece.startswith(b"a")}

    slow = asyncio.create_task(read_body(slowly, [], 100, room))
    await asyncio.sleep(0)
    assert room.left == 4
    with pytest.raises(Overloaded):
        await read_body(Arriving([b"c" * 5, b"d"]), [], 100, room)
    # What is there as a whole needs none.
    assert len(await read_body(Arriving([b"e" * 50]), [], 100, room)) == 50
    waiting.set()
    assert len(await slow) == 12
    for ends in (Arriving([b"f" * 9] * 3, hangs_up=True), Arriving([b"g" * 9, b"g" * 99])):
        with pytest.raises((Disconnected, Overloaded, Refused)):
            await read_body(ends, [], 100, room)
    assert room.left == 10


@pytest.mark.parametrize("chunks", [[], [b"ab"], [b"ab", b"c"]])
async def test_a_caller_who_hangs_up_is_noticed(chunks: list[bytes]) -> None:
    with pytest.raises(Disconnected):
        await read_body(Arriving(chunks, hangs_up=True), [], 100, ROOM)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"a": 1} b',
        b"\xff\xfe",
        '{"a": 1}'.encode("utf-16"),
        b"\xef\xbb\xbf{}",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"9" * 10_000,
        b'{"a": 1, "a": 1}',
        b'{"a": 1, "\\u0061": 2}',
        b'{"a": [{"b": 1, "b": 2}]}',
    ],
)
def test_what_has_no_single_reading_is_malformed(body: bytes) -> None:
    with pytest.raises(Refused) as caught:
        parse(body)
    assert caught.value.kind.status == 400


class Small(BaseModel):
    model_config = ConfigDict(extra="forbid")

    client: str = ""
    limit: int = 0


reader = Reader(Small)


@pytest.mark.parametrize(
    "body",
    [
        b'{"client": "x", "client": "y"}',
        b'{"client": "x", "limit": 1, "\\u0063lient": "y"}',
        b'{"\\u0063lient": "x", "\\u0063lient": "y"}',
    ],
)
def test_a_field_given_twice_is_refused_however_it_is_spelt(body: bytes) -> None:
    with pytest.raises(Refused):
        reader(body)


@pytest.mark.parametrize(
    "body", [b'{"client": "limit", "limit": 3}', b'{"client": "\\"limit\\"", "limit": 3}']
)
def test_a_value_that_looks_like_a_field_is_not_one(body: bytes) -> None:
    assert reader(body).limit == 3


NAMES = st.sampled_from(["client", "limit", "other", 'a"limit"', "lim\\it"])


@given(st.lists(st.tuples(NAMES, st.sampled_from(['"limit"', "1", '"x\\"y"'])), max_size=4))
def test_the_quick_reader_accepts_nothing_that_the_strict_one_refuses(
    pairs: list[tuple[str, str]],
) -> None:
    body = ("{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in pairs) + "}").encode()
    try:
        reader(body)
    except (ValidationError, Refused):
        return
    assert len({name for name, _ in pairs}) == len(pairs)
    parse(body)


@pytest.mark.parametrize(
    "body", [rb'{"\ud800": 1}', rb'{"a": ["\udfff"]}', rb'["\ud83d\ud83d"]', rb'"\ud83d\u0041"']
)
def test_half_of_a_surrogate_pair_is_no_text(body: bytes) -> None:
    with pytest.raises(Refused, match="surrogate"):
        parse(body)
    assert parse(rb'{"\ud83d\ude00": 1}') == {"\N{GRINNING FACE}": 1}
