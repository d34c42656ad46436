"""Fixed-point numbers round once, and packed ones are what BITFIELD keeps."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidArgument, StateOverflow
from discreet.privacy.charges import UNLIMITED, Charge, Limit
from discreet.state.codec import (
    LEDGER_BYTES,
    REWARD,
    FixedPoint,
    pack_amounts,
    pack_vector,
    unpack_charge,
    unpack_vector,
)

INT64 = st.integers(-(2**63), 2**63 - 1)


@given(st.floats(0, 1))
def test_a_reward_moves_by_half_a_step_at_most(reward: float) -> None:
    assert abs(REWARD.decode(REWARD.encode(reward)) - reward) <= 2**-21


@pytest.mark.parametrize(
    ("reward", "steps"), [(0.0, 0), (1.0, 2**20), (0.5, 2**19), (-0.25, -(2**18))]
)
def test_dyadic_rewards_are_exact(reward: float, steps: int) -> None:
    assert REWARD.encode(reward) == steps
    assert REWARD.decode(steps) == reward


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_a_number_is_refused(value: float) -> None:
    with pytest.raises(InvalidArgument) as caught:
        REWARD.encode(value)
    assert caught.value.argument == "value"


@pytest.mark.parametrize("value", [2.0**43, -(2.0**43) * 1.01, 1e300, -1e300])
def test_what_does_not_fit_is_refused(value: float) -> None:
    with pytest.raises(StateOverflow):
        REWARD.encode(value)


def test_the_ends_of_a_field_fit() -> None:
    assert FixedPoint(0).encode(-(2.0**63)) == -(2**63)
    assert REWARD.encode(math.nextafter(2.0**43, 0)) == 2**63 - 2**10


@pytest.mark.parametrize("bits", [-1, 53])
def test_a_scale_finer_than_floats_is_refused(bits: int) -> None:
    with pytest.raises(InvalidArgument):
        FixedPoint(bits)


@given(st.lists(INT64, max_size=20))
def test_vectors_survive_packing(values: list[int]) -> None:
    packed = pack_vector(np.array(values, dtype=np.int64))
    assert packed == b"".join(value.to_bytes(8, "big", signed=True) for value in values)
    vector = unpack_vector(packed)
    assert list(vector) == values
    assert vector.dtype == np.dtype("=i8")
    assert not vector.flags.writeable


def test_nothing_stored_is_an_empty_vector() -> None:
    assert len(unpack_vector(None)) == 0


@pytest.mark.parametrize("stored", [b"\0", b"\0" * 9])
def test_broken_vectors_are_not_empty_ones(stored: bytes) -> None:
    with pytest.raises(ValueError, match="multiple"):
        unpack_vector(stored)


@given(*[st.integers(0, UNLIMITED)] * 3)
def test_ledgers_survive_packing(epsilon: int, rho: int, delta: int) -> None:
    packed = pack_amounts(Charge(epsilon, rho, delta))
    assert len(packed) == LEDGER_BYTES == 24
    assert packed == pack_amounts(Limit(epsilon, rho, delta))
    assert unpack_charge(packed) == Charge(epsilon, rho, delta)


def test_no_ledger_has_spent_nothing() -> None:
    assert unpack_charge(None) == Charge()


@pytest.mark.parametrize(
    "stored", [b"", b"\0" * 23, b"\0" * 25, b"\xff" * 24, b"\0" * 16 + b"\0\x20" + b"\0" * 6]
)
def test_broken_ledgers_are_not_empty_ones(stored: bytes) -> None:
    with pytest.raises(ValueError, match="ledger"):
        unpack_charge(stored)
