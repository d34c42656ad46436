"""What replies mean: one function each, raising ValueError for what no server of ours says."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from discreet.errors import DiscreetError, StateOverflow, StoreDamaged, UnknownDecision
from discreet.state import checks
from discreet.state.codec import ACCOUNT_BYTES, unpack_charge, unpack_ledger
from discreet.state.store_values import Stamp
from discreet.state.stores import (
    NO_CHARGE,
    Blob,
    ClaimOutcome,
    Debited,
    Event,
    Learned,
    Registry,
    Written,
)

T = TypeVar("T")

VERSION_BYTES = 8
_CLAIMS = dict(enumerate(ClaimOutcome, start=1))
_ADDED = {0: False, 1: True, 2: None}


def outcome(read: Callable[[Any], T], reply: Any) -> T | DiscreetError:
    """Return what a reply means, or its error; one that makes no sense is a store out of order."""
    if isinstance(reply, DiscreetError):
        return reply
    try:
        return read(reply)
    except DiscreetError as error:
        return error
    except (ValueError, TypeError, IndexError, KeyError):
        return StoreDamaged("the store holds something that cannot be read")


def nothing(reply: object) -> None:
    """Any reply but an error will do."""


def whole(reply: Any) -> Any:
    """The reply is the answer."""
    return reply


def count(reply: bytes | None) -> int:
    """Read a counter; one that was never advanced stands at 0."""
    return int(reply or 0)


def debited(reply: tuple[int, bytes, int]) -> Debited:
    """Read what `spend.lua` returns."""
    granted, ledger, opened = reply
    if granted not in (0, 1):
        raise ValueError("an unreadable ledger")
    return Debited(granted == 1, unpack_ledger(ledger), opened == 1)


def markers(reply: Sequence[bytes]) -> list[bytes]:
    """Read what `forget_markers.lua` returns: markers, each with what it paid for."""
    return list(dict.fromkeys(each[: -1 - ACCOUNT_BYTES] for each in reply))


def learned(reply: tuple[int, int, bytes, bytes]) -> Learned:
    """Read what `learn.lua` returns."""
    claim, added, price, ledger = reply
    if claim == -1:
        raise StateOverflow("a statistic would leave its 64-bit field")
    paid = unpack_charge(price) if price else NO_CHARGE
    return Learned(_CLAIMS[claim], _ADDED[added], paid, unpack_ledger(ledger))


def pairs(reply: Sequence[bytes]) -> Mapping[bytes, bytes]:
    """Read names and values, alternating."""
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
    """Read what `registry.lua` returns; nobody can ask for what has no name in letters."""
    epoch, flat = reply
    documents = {}
    for name, document in pairs(flat).items():
        with suppress(UnicodeDecodeError):
            documents[name.decode()] = document
    return Registry(epoch=count(epoch), documents=documents)


def version(reply: bytes) -> int:
    """Read the beginning of a blob: its version; 0 if there is no blob."""
    found = int.from_bytes(reply, "big", signed=True)
    if reply and (len(reply) != VERSION_BYTES or found < 1):
        raise ValueError("a blob without a version")
    return found


def blob(reply: bytes | None) -> Blob | None:
    """Read a version and a content, if they are there."""
    if reply is None:
        return None
    found = version(reply[:VERSION_BYTES])
    if not found:
        raise ValueError("a blob without a version")
    return Blob(version=found, content=reply[VERSION_BYTES:])


def saved(reply: int) -> int | None:
    """Read what `save_blob.lua` returns."""
    if reply < 0:
        raise ValueError("a blob without a version")
    return reply or None


def stamped(reply: tuple[int, int]) -> Stamp:
    """Read what `stamp_blob.lua` returns."""
    found, milliseconds = reply
    if found < 1:
        raise ValueError("a blob without a version")
    return Stamp(found, milliseconds / 1000)


def written(reply: tuple[int, int, bytes]) -> Written:
    """Read what `write_page.lua` returns, and `write_pages.lua` for each page."""
    done, length, found = reply
    if done < 0:
        checks.page_end(checks.MOST_PAGE + 1)
    return Written(done=done == 1, length=length, found=found)


def heads_and_rests(reply: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """Read what `read_pages.lua` returns."""
    return list(zip(reply[::2], reply[1::2], strict=True))


def joined(lists: Sequence[Sequence[T]]) -> list[T]:
    """Read the replies of several calls as one."""
    return [one for some in lists for one in some]


def numbers(reply: Sequence[bytes | None]) -> list[int | None]:
    """Read numbers of names, None where there is none."""
    return [None if number is None else int(number) for number in reply]
