"""Reading a request's body: bounded while it arrives, and JSON without ambiguity.

Any content type is accepted if the body is JSON, because `curl -d` says that it sends a form.
A name that appears twice in an object is refused: parsers disagree about which one counts.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from discreet.api.problems import MALFORMED, TOO_LARGE, Refused

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Headers = Iterable[tuple[bytes, bytes]]

_DRAIN_FACTOR = 4
"""How much of a body that is too large is read and thrown away, as a multiple of the limit.

A client that is still sending would otherwise meet a closed connection instead of our answer.
"""


class Disconnected(Exception):
    """The caller hung up before the request was complete: nobody is there to be answered."""


async def read_body(receive: Receive, headers: Headers, most: int) -> bytes:
    """Return the whole body, or refuse one that is longer than `most` bytes."""
    declared = 0
    waits = False
    for name, value in headers:
        if name == b"content-length":
            declared = int(value) if value.isdigit() else 0
        elif name == b"expect":
            waits = True
    if declared > most:
        if not waits:
            await _drain(receive, _DRAIN_FACTOR * most)
        raise _too_large(most)
    message = await receive()
    chunk: bytes = message.get("body", b"")
    if message["type"] == "http.request" and not message.get("more_body") and len(chunk) <= most:
        return chunk
    chunks: list[bytes] = []
    size = 0
    while True:
        if message["type"] == "http.disconnect":
            raise Disconnected
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > most:
            if message.get("more_body"):
                await _drain(receive, _DRAIN_FACTOR * most)
            raise _too_large(most)
        chunks.append(chunk)
        if not message.get("more_body"):
            return b"".join(chunks)
        message = await receive()


async def _drain(receive: Receive, most: int) -> None:
    size = 0
    while size <= most:
        message = await receive()
        size += len(message.get("body", b""))
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            return


def _too_large(most: int) -> Refused:
    return Refused(
        TOO_LARGE, f"a body may have at most {most} bytes", headers={"Connection": "close"}
    )


def parse(body: bytes) -> Any:
    """Return the JSON value in `body`, refusing what has more than one reading."""
    try:
        return json.loads(body.decode("utf-8"), object_pairs_hook=_distinct)
    except UnicodeDecodeError:
        raise _malformed("it is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise _malformed(f"{error.msg} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise _malformed("it is nested too deeply") from None
    except ValueError:
        raise _malformed("it has a number that is too long") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise _malformed("an object in it has the same name twice")
    return fields


def _malformed(where: str) -> Refused:
    return Refused(MALFORMED, f"send a JSON object (Content-Type: application/json); {where}")


M = TypeVar("M", bound=BaseModel)


class Reader(Generic[M]):
    """Reads one model straight from bytes, at the speed of the validator's own parser.

    That parser lets the last of two equal names win. Two equal names of known fields show in the
    bytes as a quoted name that occurs twice, unless it is spelt with a backslash; unknown names
    are refused anyway. So only bodies with such an occurrence are parsed again, to be sure.

    Where names may well occur many times, in the items of a list, `strings` says how many strings,
    names included, there are in a value that was read. Without a backslash every string has two
    quotation marks, so a body with exactly so many has nothing that was dropped.
    """

    def __init__(self, model: type[M], *, strings: Callable[[M], int] | None = None) -> None:
        self._validate = model.__pydantic_validator__.validate_json
        self._names = [b'"' + name.encode() + b'"' for name in model.model_fields]
        self._strings = strings

    def __call__(self, body: bytes) -> M:
        value: M = self._validate(body)
        if b"\\" in body:
            parse(body)
        elif self._strings is not None:
            if body.count(b'"') != 2 * self._strings(value):
                parse(body)
        else:
            for name in self._names:
                if body.count(name) > 1:
                    parse(body)
                    break
        return value
