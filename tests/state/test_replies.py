"""Replies that no server of ours sends are a store out of order, never an answer."""

from collections.abc import Callable
from typing import Any

import pytest

from discreet.errors import DiscreetError, StateOverflow, StoreUnavailable, UnknownDecision
from discreet.state import replies
from discreet.state.stores import Blob, ClaimOutcome, Debited, Learned, Ledger, Written

EMPTY = b"\0" * 24


@pytest.mark.parametrize(
    ("read", "reply"),
    [
        (replies.debited, None),
        (replies.debited, [1]),
        (replies.debited, [-1, b"", 0]),
        (replies.debited, [2, EMPTY, 0]),
        (replies.debited, [1, b"short", 0]),
        (replies.learned, [-2, 0, b"", b""]),
        (replies.learned, [6, 1, b"", EMPTY]),
        (replies.learned, [1, 1, b"", b""]),
        (replies.learned, [1, 1, b"short", EMPTY]),
        (replies.pairs, [b"name"]),
        (replies.version, b"short"),
        (replies.version, b"\0" * 8),
        (replies.version, b"\xff" * 8),
        (replies.blob, b""),
        (replies.blob, b"\0" * 9),
        (replies.saved, -1),
        (replies.claimed_event, [None, b"answer"]),
        (replies.count, b"many"),
        (replies.heads_and_rests, [b"a", b"b", b""]),
        (replies.registry, [b"1", [b"name"]]),
    ],
)
def test_what_makes_no_sense_is_an_error(read: Callable[[Any], Any], reply: Any) -> None:
    found = replies.outcome(read, reply)
    assert isinstance(found, StoreUnavailable)
    assert "cannot be read" in str(found)


@pytest.mark.parametrize(
    ("read", "reply", "expected"),
    [
        (replies.debited, [0, EMPTY, 0], Debited(False, Ledger())),
        (replies.debited, [1, EMPTY, 1], Debited(True, Ledger(), awaiting=True)),
        (replies.version, b"", 0),
        (replies.version, b"\0" * 7 + b"\x05", 5),
        (replies.blob, b"\0" * 7 + b"\x05content", Blob(5, b"content")),
        (replies.blob, None, None),
        (replies.saved, 0, None),
        (replies.written, [0, 7, b"found"], Written(False, 7, b"found")),
        (replies.heads_and_rests, [b"a", b"b", b"", b""], [(b"a", b"b"), (b"", b"")]),
        (replies.numbers, [b"3", None], [3, None]),
        (replies.nothing, b"whatever", None),
    ],
)
def test_what_makes_sense_is_read(read: Callable[[Any], Any], reply: Any, expected: Any) -> None:
    assert replies.outcome(read, reply) == expected


def test_a_price_is_one_account() -> None:
    price = b"".join(column.to_bytes(8, "big") for column in (1, 2, 3))
    found = replies.learned((1, 1, price, EMPTY + price))
    assert found.price == found.ledger.feedback
    assert found == Learned(ClaimOutcome.COUNTED, True, found.price, Ledger(feedback=found.price))


@pytest.mark.parametrize(
    ("read", "reply", "error"),
    [
        (replies.learned, [-1, 0, b"", b""], StateOverflow),
        (replies.written, [-1, 0, b""], StateOverflow),
        (replies.answer, None, UnknownDecision),
        (replies.nothing, StoreUnavailable("lost"), StoreUnavailable),
    ],
)
def test_errors_are_returned_as_they_are(
    read: Callable[[Any], Any], reply: Any, error: type[DiscreetError]
) -> None:
    assert type(replies.outcome(read, reply)) is error


def test_a_document_whose_name_is_no_text_hides_no_other() -> None:
    found = replies.registry((b"1", [b"\xff", b"document", b"name", b"other"]))
    assert found.documents == {"name": b"other"}
