"""What every store refuses before it touches anything: one set of rules, so that all agree.

A store that silently accepted an empty digest would pool strangers' ledgers; one that accepted
numpy's integers or booleans would not write them as numbers. Both are programming errors of the
caller, and raise `InvalidArgument` at the call, not when it is awaited. Charges and limits need no
check here: none can be made with an amount below zero or beyond 2**53 - 1.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument, StateOverflow
from discreet.state.stores import OWN, Debit, FeedbackRecord, OwnRow, PageWrite, Vector

MOST_BLOCK = 32
"""Bytes of the name of a block of sums."""
MOST_DIGEST = 128
"""Bytes of whatever names something: a principal, a generation, a claim, a page, a lease."""
MOST_FIELDS = 2**20
"""Fields of one vector: 8 MB, beyond which a store would stall everybody else to serve it."""
MOST_ROW = 1_024
"""Numbers of a row behind own sums."""
MOST_DOCUMENT = 2**25
"""Bytes of a document, an answer or a secret."""
MOST_BLOB = 2**26
"""Bytes of a blob, or of what one call writes into a page."""
MOST_PAGE = 2**28
"""Bytes of a page."""
MOST_NAMES = 2**20
"""Names that one call gives numbers to."""
MOST_NAME = 256
"""Characters of a document's or secret's name."""
LONGEST_TTL = 10 * 365 * 86_400
"""Seconds; also keeps expiry times, in milliseconds, far below 2**53."""
INT64 = range(-(2**63), 2**63)


def _sized(argument: str, value: bytes, least: int, most: int) -> bytes:
    if type(value) is not bytes or not least <= len(value) <= most:
        raise InvalidArgument(argument, f"must be {least} to {most} bytes")
    return value


def _whole(argument: str, value: int, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise InvalidArgument(argument, f"must be a whole number from {least} to {most}")
    return value


def digest(argument: str, value: bytes) -> bytes:
    """Return `value` if it can name something in a store."""
    return _sized(argument, value, 1, MOST_DIGEST)


def digests(argument: str, values: Sequence[bytes]) -> Sequence[bytes]:
    """Return names of which each can name something, and not too many of them."""
    if len(values) > MOST_NAMES:
        raise InvalidArgument(argument, f"must be at most {MOST_NAMES} names")
    for value in values:
        _sized(argument, value, 1, MOST_DIGEST)
    return values


def document(argument: str, value: bytes) -> bytes:
    """Return `value` if it is of a size that a store reads whole."""
    return _sized(argument, value, 1, MOST_DOCUMENT)


def blob(argument: str, value: bytes) -> bytes:
    """Return `value` if it is bytes of a size that travels in one piece; it may be empty."""
    return _sized(argument, value, 0, MOST_BLOB)


def name(value: str) -> str:
    """Return a document's or secret's name if it can be one."""
    if type(value) is not str or not 1 <= len(value) <= MOST_NAME:
        raise InvalidArgument("name", f"must be 1 to {MOST_NAME} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgument("name", "must be well-formed text") from None
    return value


def ttl(argument: str, value: int) -> int:
    """Return a time to live in whole seconds, at least one."""
    return _whole(argument, value, 1, LONGEST_TTL)


def number(value: int) -> int:
    """Return the number of a release."""
    return _whole("number", value, 1, 2**53 - 1)


def most(value: int) -> int:
    """Return the size of a sample."""
    return _whole("most", value, 1, 2**31 - 1)


def expected(value: int | None) -> int | None:
    """Return the version that a caller believes in, if it believes in any."""
    return None if value is None else _whole("expected", value, 0, 2**53 - 1)


def lasting(value: float) -> int:
    """Return how long a lease lasts, in milliseconds."""
    if type(value) not in (int, float) or not 0.001 <= value <= LONGEST_TTL:
        raise InvalidArgument("seconds", f"must lie in [0.001, {LONGEST_TTL}]")
    return math.ceil(value * 1000)


def debit(value: Debit, like: Debit | None = None) -> Debit:
    """Return the debit if a ledger can take it; what it shares with `like` was looked at."""
    principal, marker = value.principal, value.marker
    if type(principal) is not bytes or not 0 < len(principal) <= MOST_DIGEST:
        digest("principal", principal)
    if marker is not None and (type(marker) is not bytes or not 0 < len(marker) <= MOST_DIGEST):
        digest("marker", marker)
    if value.opened is not None:
        generation, decision, items, content, due, room, _ = value.opened
        _whole("items", items, 1, 2**16 - 1)
        digest("generation", generation)
        digest("decision", decision)
        document("content", content)
        if type(due) not in (int, float) or not 0 < due < 2**41:
            raise InvalidArgument("due", "must be a moment in seconds since the epoch")
        _whole("most", room, 1, 2**53 - 1)
    if like is None:
        ttl("marker_ttl", value.marker_ttl)
        _windowed(value)
    return value


def _windowed(value: Debit | FeedbackRecord) -> None:
    _whole("window", value.window, 0, LONGEST_TTL)
    _sized("purpose", value.purpose, 0, MOST_DIGEST)


def feedback_record(value: FeedbackRecord, like: FeedbackRecord | None = None) -> FeedbackRecord:
    """Return the record if it can be claimed and added.

    What it shares with `like` was looked at.
    """
    principal, generation, claim = value.principal, value.generation, value.claim
    if type(principal) is not bytes or not 0 < len(principal) <= MOST_DIGEST:
        digest("principal", principal)
    if type(claim) is not bytes or not 0 < len(claim) <= MOST_DIGEST:
        digest("claim", claim)
    _whole("reward", value.reward, INT64.start, INT64.stop - 1)
    ttl("claim_ttl", value.claim_ttl)
    if (
        like is None
        or generation is not like.generation
        or value.purpose is not like.purpose
        or value.window is not like.window
    ):
        digest("generation", generation)
        _windowed(value)
    if value.awaited and value.claim[:-2] != value.awaited:
        raise InvalidArgument("awaited", "must be the claim without the item's place")
    if not value.increments:
        raise InvalidArgument("increments", "must add something")
    for block, increments in value.increments.items():
        _sized("increments", block, 0, MOST_BLOCK)
        if isinstance(increments, OwnRow):
            _whole("increments", increments.head, 1, MOST_FIELDS)
            _whole("increments", increments.made_at, 0, INT64.stop - 1)
            if not 1 <= vector("increments", increments.numbers).size <= MOST_ROW:
                raise InvalidArgument("increments", "must be rows of a few numbers")
            if block != OWN or next(iter(value.increments)) != OWN:
                raise InvalidArgument("increments", "only own sums, the first block, have rows")
            continue
        if isinstance(increments, np.ndarray):
            if increments.dtype != np.int32 or not 1 <= increments.size <= MOST_FIELDS:
                raise InvalidArgument("increments", f"must be 1 to {MOST_FIELDS} 32-bit amounts")
            if increments.ndim != 1:
                _pairs(increments)
            continue
        if not increments:
            raise InvalidArgument("increments", "must add something to every block")
        for field, amount in increments:
            if type(field) is not int or not 0 <= field < MOST_FIELDS:
                raise InvalidArgument("increments", f"fields must be in [0, {MOST_FIELDS})")
            if type(amount) is not int or amount not in INT64:
                raise InvalidArgument("increments", "amounts must be signed 64-bit integers")
    return value


def vector(argument: str, value: Vector) -> Vector:
    """Return a vector of 64-bit integers."""
    if not isinstance(value, np.ndarray) or value.dtype != np.int64 or value.ndim != 1:
        raise InvalidArgument(argument, "must be a vector of 64-bit integers")
    return value


def folded(before: Vector) -> Vector:
    """Return what own sums are to begin with: something."""
    if not vector("before", before).size:
        raise InvalidArgument("before", "must be something: whoever has no sums has none to fold")
    return before


def _pairs(increments: npt.NDArray[np.int32]) -> None:
    if increments.ndim != 2 or increments.shape[1] != 2:
        raise InvalidArgument("increments", "must have a field and an amount in each row")
    # Without a sign, what is negative is too large.
    if np.maximum.reduce(increments[:, 0].view(np.uint32)) >= MOST_FIELDS:
        raise InvalidArgument("increments", f"fields must be in [0, {MOST_FIELDS})")


def span(start: int, end: int | None) -> tuple[int, int]:
    """Return where to read a page, half open."""
    last = MOST_PAGE if end is None else _whole("end", end, 0, MOST_PAGE)
    return _whole("start", start, 0, MOST_PAGE), last


def writes(value: Sequence[tuple[int, bytes]]) -> Sequence[tuple[int, bytes]]:
    """Return writes that stay within a page and travel in one piece."""
    for offset, content in value:
        _placed("writes", offset, content)
    if sum(len(content) for _, content in value) > MOST_BLOB:
        raise InvalidArgument("writes", f"must be at most {MOST_BLOB} bytes in all")
    return value


def guard(value: tuple[int, bytes] | None) -> tuple[int, bytes]:
    """Return the guard of a write; (0, nothing) if there is none."""
    if value is None:
        return 0, b""
    offset, content = value
    _placed("guard", offset, content)
    return offset, digest("guard", content)


def starts(pages: Sequence[bytes], head: int, places: Sequence[int]) -> None:
    """Refuse to read pages unless each has a place to begin at."""
    _whole("head", head, 0, MOST_DIGEST)
    if len(digests("pages", pages)) != len(places):
        raise InvalidArgument("starts", "must be one for each page")
    for place in places:
        _whole("starts", place, 0, MOST_PAGE)


def page_write(value: PageWrite) -> PageWrite:
    """Return a write of which only the page's own length can be too much."""
    page, start, content, guards, long = value
    _sized("page", page, 1, MOST_DIGEST)
    _sized("content", content, 0, MOST_BLOB)
    if type(start) is not int or not 0 <= start <= MOST_PAGE:
        _whole("start", start, 0, MOST_PAGE)
    ended = 0
    for at, wanted in guards:
        if type(at) is not int or not ended <= at <= MOST_PAGE:
            raise InvalidArgument("guards", "must be at ascending offsets")
        ended = at + len(_sized("guards", wanted, 1, MOST_DIGEST))
    if long is not None:
        _whole("long", long, 0, MOST_PAGE)
    return value


def page_end(length: int) -> int:
    """Return where a write ends, or raise `StateOverflow`."""
    if length > MOST_PAGE:
        raise StateOverflow(f"a page would become longer than {MOST_PAGE} bytes")
    return length


def _placed(argument: str, offset: int, content: bytes) -> None:
    if type(offset) is not int or type(content) is not bytes or offset < 0:
        raise InvalidArgument(argument, "must be pairs of an offset, at least 0, and bytes")
    if offset + len(content) > MOST_PAGE:
        raise InvalidArgument(argument, f"must end within {MOST_PAGE} bytes")
