"""What replies mean: one function each, raising ValueError for what no server of ours says."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from discreet.errors import DiscreetError, StateOverflow, StoreUnavailable, UnknownDecision
from discreet.state import checks
from discreet.state.codec import FIELD_BYTES, LEDGER_BYTES, unpack_charge, unpack_rows, unpack_vector
from discreet.state.stores import (
    Account,
    Blob,
    Claim,
    Event,
    Learned,
    Registry,
    Rows,
    Vector,
    Written,
)

T = TypeVar("T")

VERSION_BYTES = 8
_CLAIMS = {1: Claim.COUNTED, 2: Claim.DUPLICATE, 3: Claim.CONFLICT}


def nothing(reply: object) -> None:
    """Any reply but an error will do."""


def count(reply: bytes | None) -> int:
    """Read a counter; one that was never advanced stands at 0."""
    return int(reply or 0)


def account(reply: tuple[int, bytes]) -> Account:
    """Read what `spend.lua` returns."""
    granted, ledger = reply
    if granted not in (0, 1):
        raise ValueError("an unreadable ledger")
    return Account(granted == 1, unpack_charge(ledger))


def accounts(many: Sequence[Any]) -> list[Account | DiscreetError]:
    """Read what `spend.lua` returned to each of many."""
    return [each if isinstance(each, DiscreetError) else _tried(account, each) for each in many]


def rows(many: Sequence[Any], *, fields: int) -> Rows:
    """Read many vectors; one that is not whole fields cannot be read."""
    stored = list(many)
    failed: dict[int, DiscreetError] = {}
    for row, each in enumerate(stored):
        if each is None:
            stored[row] = b""
        elif type(each) is not bytes or len(each) % FIELD_BYTES:
            failed[row] = each if isinstance(each, DiscreetError) else unreadable()
            stored[row] = b""
    return Rows(unpack_rows(stored, fields), failed)


def _tried(read: Callable[[Any], T], reply: Any) -> T | DiscreetError:
    try:
        return read(reply)
    except DiscreetError as error:
        return error
    except (ValueError, TypeError, IndexError, KeyError):
        return unreadable()


def unreadable() -> StoreUnavailable:
    """Return the error for a reply that makes no sense: the store is out of order."""
    return StoreUnavailable("the store holds something that cannot be read")


def markers(reply: Sequence[bytes]) -> list[bytes]:
    """Read what `forget_markers.lua` returns: markers, each with the charge that it paid for."""
    return list(dict.fromkeys(each[:-LEDGER_BYTES] for each in reply))


def learned(reply: tuple[int, bytes]) -> Learned:
    """Read what `learn.lua` returns."""
    outcome, first = reply
    if outcome == -1:
        raise StateOverflow("a statistic would leave its 64-bit field")
    return Learned(_CLAIMS[outcome], int.from_bytes(first, "big", signed=True))


def learned_each(many: Sequence[Any]) -> list[Learned | DiscreetError]:
    """Read what `learn.lua` returned to each of many."""
    return [each if isinstance(each, DiscreetError) else _tried(learned, each) for each in many]


def levels(reply: Sequence[bytes]) -> Mapping[bytes, int]:
    """Read addresses and their levels, alternating."""
    return {address: int(level) for address, level in zip(reply[::2], reply[1::2], strict=True)}


def letters(reply: Sequence[bytes]) -> Mapping[bytes, bytes]:
    """Read letters and their contents, alternating."""
    return dict(zip(reply[::2], reply[1::2], strict=True))


def event(reply: Sequence[bytes | None]) -> Event | None:
    """Read an event's fingerprint and answer, if it is there."""
    fingerprint, answer = reply
    return None if fingerprint is None else Event(fingerprint=fingerprint, answer=answer)


def claimed_event(reply: Sequence[bytes | None]) -> Event:
    """Read an event that must be there, because it has just been claimed."""
    standing = event(reply)
    if standing is None:
        raise ValueError("an event without a fingerprint")
    return standing


def answer(reply: bytes | None) -> bytes:
    """Read what `answer_event.lua` returns."""
    if reply is None:
        raise UnknownDecision("the event was forgotten before it was answered")
    return reply


def registry(reply: tuple[bytes | None, Sequence[bytes]]) -> Registry:
    """Read what `registry.lua` returns."""
    epoch, flat = reply
    documents = zip(flat[::2], flat[1::2], strict=True)
    return Registry(
        epoch=count(epoch), documents={name.decode(): document for name, document in documents}
    )


def vectors(reply: bytes | None) -> list[Vector]:
    """Read the only vector that was asked for."""
    return [unpack_vector(reply)]


def blob(reply: bytes | None) -> Blob | None:
    """Read a version and a content, if they are there."""
    if reply is None:
        return None
    version = int.from_bytes(reply[:VERSION_BYTES], "big", signed=True)
    if len(reply) < VERSION_BYTES or version < 1:
        raise ValueError("a blob without a version")
    return Blob(version=version, content=reply[VERSION_BYTES:])


def version(reply: int) -> int | None:
    """Read what `save_blob.lua` returns."""
    if reply < 0:
        raise ValueError("a blob without a version")
    return reply or None


def written(reply: tuple[int, int, bytes]) -> Written:
    """Read what `write_page.lua` returns."""
    done, length, found = reply
    return Written(done=done == 1, length=length, found=found)


def length(reply: int) -> int | None:
    """Read what `append_page.lua` returns."""
    if reply == -2:
        checks.appended(checks.MOST_PAGE + 1)
    return None if reply < 0 else reply


def numbers(reply: Sequence[bytes | None]) -> list[int | None]:
    """Read numbers of names, None where there is none."""
    return [None if number is None else int(number) for number in reply]


vector = unpack_vector
charge = unpack_charge
