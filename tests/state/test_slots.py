"""Slots are what Redis says they are, and the shards share them out evenly."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from redis.crc import key_slot

from discreet.state.slots import SHARD_TAGS, SLOTS, slot_of
from discreet.state.stores import SHARDS


@given(st.lists(st.sampled_from([b"{", b"}", b"a", b"bc", b"\x00", b"\xff"])).map(b"".join))
@example(b"foo{}{bar}")
@example(b"foo{{bar}}zap")
@example(b"{user1000}.following")
@example(b"foo{bar")
def test_a_slot_is_that_of_the_first_tag(key: bytes) -> None:
    """redis-py works it out with a table of its own."""
    assert slot_of(key) == key_slot(key)


def test_shards_lie_in_the_middles_of_equal_parts() -> None:
    assert len(SHARD_TAGS) == len(set(SHARD_TAGS)) == SHARDS
    width = SLOTS // SHARDS
    for shard, tag in enumerate(SHARD_TAGS):
        middle = shard * width + width // 2
        assert abs(slot_of(b"x{" + tag + b"}y") - middle) <= 5


@pytest.mark.parametrize("masters", [1, 2, 3, 4, 5, 6, 8, 12, 16, 32])
def test_masters_with_equal_shares_of_slots_get_equal_shares_of_shards(masters: int) -> None:
    shares = [0] * masters
    for tag in SHARD_TAGS:
        shares[slot_of(tag) * masters // SLOTS] += 1
    assert max(shares) - min(shares) <= 1
