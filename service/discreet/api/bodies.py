"""Reading a request's body: bounded while it arrives, and JSON without ambiguity.

Any content type is accepted if the body is JSON, because `curl -d` says that it sends a form.
A name that appears twice in an object is refused: parsers disagree about which one counts.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from discreet.api.problems import TOO_LARGE, Refused, malformed
from discreet.errors import Overloaded

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Headers = Iterable[tuple[bytes, bytes]]

SHORT_BODY = 16 * 2**10
"""Bytes of a body that is read before its key is checked: no more than headers may have."""


class BodyRoom:
    """How many bytes of bodies one worker holds while they arrive, everybody's together: whoever
    sends slowly keeps the room for what was sent."""

    def __init__(self, most: int) -> None:
        self.left = most

    def take(self, size: int) -> None:
        """Take room, to be given back; raise `Overloaded` if there is none."""
        self.left -= size
        if self.left < 0:
            raise Overloaded


class Disconnected(Exception):
    """The caller hung up before the request was complete: there is nobody to answer."""


async def read_body(receive: Receive, headers: Headers, most: int, room: BodyRoom) -> bytes:
    """Return the whole body, or refuse one that is longer than `most` bytes as soon as that is
    known: what it declares is known before it arrives.

    Raises `Overloaded` if it comes in pieces and there is no room for them.
    """
    for name, value in headers:
        if name == b"content-length" and int(value) > most:
            raise _too_large(most)
    message = await receive()
    chunk: bytes = message.get("body", b"")
    if message["type"] == "http.request" and not message.get("more_body") and len(chunk) <= most:
        return chunk
    chunks: list[bytes] = []
    size = taken = 0
    try:
        while True:
            if message["type"] == "http.disconnect":
                raise Disconnected
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > most:
                raise _too_large(most)
            chunks.append(chunk)
            if not message.get("more_body"):
                return b"".join(chunks)
            taken = size
            room.take(len(chunk))
            message = await receive()
    finally:
        room.left += taken


def _too_large(most: int) -> Refused:
    return Refused(
        TOO_LARGE, f"a body may have at most {most} bytes", headers={"Connection": "close"}
    )


def parse(body: bytes) -> Any:
    """Return the JSON value in `body`, refusing what has more than one reading."""
    try:
        value = json.loads(body.decode("utf-8"), object_pairs_hook=_distinct)
        if b"\\" in body:
            # Python reads half of a surrogate pair ("\\ud800") as a character, which no text has.
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except UnicodeEncodeError:
        raise malformed("it has half of a surrogate pair") from None
    except UnicodeDecodeError:
        raise malformed("it is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise malformed(f"{error.msg} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise malformed("it is nested too deeply") from None
    except ValueError:
        raise malformed("it has a number that is too long") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise malformed("an object has the same name twice")
    return fields


M = TypeVar("M", bound=BaseModel)


class Reader(Generic[M]):
    """Reads a model straight from bytes, at the speed of the validator's own parser.

    That parser lets the last of two equal names win. Without a backslash every string of a body has
    two quotation marks, so a body with as many of them as the value that was read has nothing that
    was dropped. Any other body is parsed again, to be sure.
    """

    def __init__(self, model: type[M]) -> None:
        self._validate = model.__pydantic_validator__.validate_json
        self._write = model.__pydantic_serializer__.to_json

    def __call__(self, body: bytes) -> M:
        value: M = self._validate(body)
        written = self._write(value, exclude_unset=True)
        if b"\\" in body or body.count(b'"') != written.count(b'"'):
            parse(body)
        return value
