"""What every store refuses before it touches anything: one set of rules, so that all agree.

A store that silently accepted an empty digest would pool strangers' ledgers; one that accepted
numpy's integers or booleans would not write them as numbers. Both are programming errors of the
caller, and raise `InvalidArgument` at the call, not when it is awaited. Charges and limits need no
check here: none can be made with an amount below zero or beyond 2**53 - 1.
"""

from collections.abc import Sequence

from service.errors import InvalidArgument

MOST_DIGEST = 128
"""Bytes of a principal, address, claim, marker, event, index or fingerprint."""
MOST_FIELDS = 2**20
"""Fields of one vector: 8 MB, beyond which a store would stall everybody else to serve it."""
MOST_DOCUMENT = 2**24
"""Bytes of a document, an answer or a secret."""
MOST_NAME = 256
"""Characters of a document's or secret's name."""
LONGEST_TTL = 10 * 365 * 86_400
"""Seconds; also keeps expiry times, in milliseconds, far below 2**53."""
INT64 = range(-(2**63), 2**63)


def digest(argument: str, value: bytes) -> bytes:
    """Return `value` if it can name something in a store."""
    if type(value) is not bytes or not 1 <= len(value) <= MOST_DIGEST:
        raise InvalidArgument(argument, f"must be 1 to {MOST_DIGEST} bytes")
    return value


def document(argument: str, value: bytes) -> bytes:
    """Return `value` if it is of a size that a store reads whole."""
    if type(value) is not bytes or not 1 <= len(value) <= MOST_DOCUMENT:
        raise InvalidArgument(argument, f"must be 1 to {MOST_DOCUMENT} bytes")
    return value


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
    if type(value) is not int or not 1 <= value <= LONGEST_TTL:
        raise InvalidArgument(argument, f"must be 1 to {LONGEST_TTL} whole seconds")
    return value


def level(value: int) -> int:
    """Return a cell's depth in the partition."""
    if type(value) is not int or not 0 <= value < 2**31:
        raise InvalidArgument("level", "must be a whole number, at least 0 and below 2**31")
    return value


def most(value: int) -> int:
    """Return the size of a sample."""
    if type(value) is not int or not 1 <= value < 2**31:
        raise InvalidArgument("most", "must be a whole number, at least 1 and below 2**31")
    return value


def reward(value: int) -> int:
    """Return a fixed-point reward."""
    if type(value) is not int or value not in INT64:
        raise InvalidArgument("reward", "must be a signed 64-bit integer")
    return value


def increments(value: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Return increments whose fields exist in a vector and whose amounts fit one."""
    for field, amount in value:
        if type(field) is not int or not 0 <= field < MOST_FIELDS:
            raise InvalidArgument("increments", f"fields must be integers in [0, {MOST_FIELDS})")
        if type(amount) is not int or amount not in INT64:
            raise InvalidArgument("increments", "amounts must be signed 64-bit integers")
    return value
