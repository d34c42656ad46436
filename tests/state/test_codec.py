"""Packed numbers are what BITFIELD and the ledger's scripts keep."""

import struct
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.privacy.charges import NEVER, UNLIMITED, Charge, Limit
from discreet.state.codec import (
    FEWEST_IN_A_ROW,
    pack_row,
    pack_terms,
    pack_vector,
    unpack_days,
    unpack_ledger,
    unpack_parts,
    unpack_vector,
)
from discreet.state.stores import Account, DaySpending, Ledger, LedgerWindow

INT64 = st.integers(-(2**63), 2**63 - 1)
COLUMN = st.integers(0, UNLIMITED)


def packed(*columns: int) -> bytes:
    return b"".join(column.to_bytes(8, "big", signed=True) for column in columns)


@given(st.lists(INT64, max_size=20))
def test_vectors_survive_packing(values: list[int]) -> None:
    stored = pack_vector(np.array(values, dtype=np.int64))
    assert stored == packed(*values)
    vector = unpack_vector(stored)
    assert list(vector) == values
    assert vector.dtype == np.dtype("=i8")
    assert not vector.flags.writeable


def test_nothing_stored_is_an_empty_vector() -> None:
    assert len(unpack_vector(None)) == 0


@pytest.mark.parametrize("stored", [b"\0", b"\0" * 9])
def test_broken_vectors_are_not_empty_ones(stored: bytes) -> None:
    with pytest.raises(ValueError, match="multiple"):
        unpack_vector(stored)


@given(st.tuples(COLUMN, COLUMN, COLUMN), st.tuples(COLUMN, COLUMN, COLUMN))
def test_ledgers_are_two_accounts_of_three_columns(
    answers: tuple[int, int, int], feedback: tuple[int, int, int]
) -> None:
    expected = Ledger(Charge(*answers), Charge(*feedback))
    assert unpack_ledger(packed(*answers, *feedback)) == expected
    assert unpack_ledger(packed(*answers)) == expected._replace(feedback=Charge())


def test_terms_are_a_charge_and_a_limit() -> None:
    terms = pack_terms(Charge(1, 2, 3), Limit(NEVER, 5, UNLIMITED))
    assert terms == packed(1, 2, 3, -1, 5, UNLIMITED)


def test_no_ledger_has_spent_nothing() -> None:
    assert unpack_ledger(None) == Ledger()


@pytest.mark.parametrize(
    "stored",
    [
        *(b"", b"\0" * 23, b"\0" * 25, b"\0" * 47, b"\0" * 49, b"\xff" * 24),
        *(packed(0, 0, 2**53), packed(0, 0, 0, 0, -1, 0)),
    ],
)
def test_broken_ledgers_are_not_empty_ones(stored: bytes) -> None:
    with pytest.raises(ValueError, match="ledger"):
        unpack_ledger(stored)


def test_windows_follow_the_accounts() -> None:
    window = (60).to_bytes(4, "big") + (9).to_bytes(4, "big") + packed(1, 2, 3, 4, 5, 6)
    expected = Ledger(
        Charge(7, 8, 9), windows=(LedgerWindow(60, 9, Charge(1, 2, 3), Charge(4, 5, 6)),)
    )
    assert unpack_ledger(packed(7, 8, 9, 0, 0, 0) + window) == expected
    assert unpack_parts([packed(7, 8, 9), window]) == expected
    assert unpack_parts([packed(7, 8, 9), None]) == Ledger(Charge(7, 8, 9))
    assert unpack_parts([None, None]) == Ledger()
    for broken in (window[:-1], window + b"\0", bytes(4) + window[4:]):
        with pytest.raises(ValueError, match="ledger"):
            unpack_parts([packed(7, 8, 9), broken])


def test_days_are_told_apart_from_the_rest_of_a_ledger() -> None:
    name = b"d" + (20_000).to_bytes(4, "big") + b"\1films"
    value = (3).to_bytes(4, "big") + b"".join(n.to_bytes(7, "big") for n in (5, UNLIMITED, 0))
    found = unpack_days([b"l", packed(1, 2, 3), name, value])
    assert found == [DaySpending(20_000, Account.FEEDBACK, b"films", 3, Charge(5, UNLIMITED, 0))]
    with pytest.raises(ValueError, match="length"):
        unpack_days([name, value[1:]])


def test_many_increments_in_a_row_are_packed() -> None:
    row = [(7 + 2 * place, place - 9) for place in range(FEWEST_IN_A_ROW)]
    found = pack_row(row)
    assert found is not None
    first, amounts = found
    assert first == 7
    values = np.frombuffer(amounts, dtype=">i4").tolist()
    assert values[::2] == [amount for _, amount in row]
    assert not any(values[1::2])


def test_a_few_in_a_row_are_packed_too() -> None:
    assert pack_row([(6, 5), (7, -2)]) == (6, struct.pack(">2i", 5, -2))


@pytest.mark.parametrize(
    "changed",
    [
        lambda row: row[:1],
        lambda row: row[::2],
        lambda row: [row[1], row[0]],
        lambda row: [row[0], (1, 2**31)],
        lambda row: [*row[:-1], (row[-1][0] * 3, 1)],
        lambda row: [row[1], row[0], *row[2:]],
        lambda row: [row[0], row[0], *row[2:]],
        lambda row: [*row[:-1], (row[-1][0], 2**31)],
        lambda row: [*row[:-1], (row[-1][0], -(2**31))],
        lambda row: row[::-1],
    ],
    ids=[
        "one",
        "few apart",
        "few backwards",
        "few large",
        "far apart",
        "out of order",
        "twice",
        "large",
        "least",
        "backwards",
    ],
)
def test_others_are_not(changed: Callable[[list[tuple[int, int]]], list[tuple[int, int]]]) -> None:
    row = [(place, 1) for place in range(FEWEST_IN_A_ROW)]
    assert pack_row(row) is not None
    assert pack_row(changed(row)) is None
