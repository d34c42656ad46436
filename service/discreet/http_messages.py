"""Messages of HTTP/1.1 as bytes: a request that wishes for no other protocol, the last answer."""

from collections.abc import Iterable

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from discreet.api.problems import (
    CONTENT_TYPE,
    HEADERS_TOO_LARGE,
    TOO_MANY_CONNECTIONS,
    ProblemKind,
    Refused,
    problem_of,
)

Pairs = Iterable[tuple[bytes, bytes]]

_NOT_PASSED_ON = frozenset({b"upgrade", b"http2-settings"})


class RequestRefused(Exception):
    """Ends the parsing of a request that is answered by a problem."""

    def __init__(self, kind: ProblemKind, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


def too_much_of_it(most: int) -> tuple[ProblemKind, str]:
    """Return what is said about a head of more bytes than these."""
    return HEADERS_TOO_LARGE, f"the request line and headers may have at most {most} bytes"


def head_without_upgrade(line: bytes, headers: Pairs) -> bytes:
    """Return a request's head as of one that does not wish for another protocol."""
    lines = [line]
    for name, value in headers:
        if name in _NOT_PASSED_ON:
            continue
        if name == b"connection":
            words = [word.strip() for word in value.split(b",")]
            value = b", ".join(word for word in words if word.lower() not in _NOT_PASSED_ON)
        lines.append(name + b": " + value)
    return b"\r\n".join(lines) + b"\r\n\r\n"


def last_answer(refusal: RequestRefused, headers: Pairs) -> bytes:
    """Return the answer to what is refused, after which the connection closes."""
    kind = refusal.kind
    own = {"Retry-After": "1"} if kind is TOO_MANY_CONNECTIONS else {}
    problem = problem_of(Refused(kind, str(refusal), own))
    content = problem.body()
    lines = [b"%b: %b\r\n" % pair for pair in headers]
    lines += [f"{name}: {value}\r\n".encode() for name, value in problem.headers.items()]
    return b"%bcontent-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n%b\r\n%b" % (
        STATUS_LINE[kind.status],
        CONTENT_TYPE.encode(),
        len(content),
        b"".join(lines),
        content,
    )
