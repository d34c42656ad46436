"""What a worker concludes from what a store says of itself."""

import logging

import pytest

from discreet.errors import StoreFenced
from discreet.state.fence import (
    ACCEPTED,
    EMPTIED,
    OLDER,
    OTHER,
    REMEDY,
    StoreFence,
    StoreIdentity,
    new_identity,
    pack_fence,
    unpack_fence,
)
from discreet.state.keys import StoreKeys
from discreet.state.stores import SHARDS

OURS, THEIRS = b"identity", b"another!"
GOOD = StoreIdentity(OURS, begun=b"1")


def fence(*, writes: int = 10, lost_writes: int = 0) -> StoreFence:
    made = StoreFence(StoreKeys(), lost_writes=lost_writes)
    made.marks.adopt(OURS, [writes] * SHARDS)
    return made


def test_a_fence_is_packed_and_read() -> None:
    identity = new_identity()
    assert unpack_fence(pack_fence(identity, 2**52)) == (identity, 2**52)
    for unreadable in (None, b"", b"short", pack_fence(identity, 1) + b"x"):
        assert unpack_fence(unreadable) is None
    assert new_identity() != identity


@pytest.mark.parametrize(
    ("record", "stored", "expected"),
    [
        (GOOD, pack_fence(OURS, 10), None),
        (GOOD, pack_fence(OURS, 11), None),
        (None, pack_fence(OURS, 10), None),
        (GOOD, pack_fence(OURS, 9), OLDER),
        (None, pack_fence(OURS, 0), OLDER),
        (GOOD, None, EMPTIED),
        (GOOD, b"?", EMPTIED),
        (GOOD, pack_fence(THEIRS, 10), OTHER),
        (StoreIdentity(), None, EMPTIED),
        (StoreIdentity(THEIRS), pack_fence(THEIRS, 99), OTHER),
        (StoreIdentity(THEIRS, accepted=b"x" * 8), pack_fence(THEIRS, 99), OTHER),
        (StoreIdentity(THEIRS, accepted=b"x" * 8 + OURS), pack_fence(THEIRS, 99), ACCEPTED),
        (GOOD._replace(broken=b"somebody saw it"), pack_fence(OURS, 10), "somebody saw it"),
    ],
)
def test_what_a_store_says_decides(
    record: StoreIdentity | None, stored: bytes | None, expected: str | None
) -> None:
    carrying = fence()
    found = carrying.fault(record, {7: stored}, carrying.expected())
    assert found == expected if expected is None else str(found).startswith(expected)


def test_part_of_an_accepted_identity_is_not_it() -> None:
    shifted = b"x" + OURS + b"y" * 7
    assert not StoreIdentity(THEIRS, accepted=shifted).follows(OURS)


def test_a_failover_may_lose_as_much_as_the_operator_said_and_no_more() -> None:
    tolerant = fence(lost_writes=3)
    expected = tolerant.expected()
    assert tolerant.fault(GOOD, {0: pack_fence(OURS, 7)}, expected) is None
    assert str(tolerant.fault(GOOD, {0: pack_fence(OURS, 6)}, expected)).startswith(OLDER)
    assert tolerant.carried((0,)) == pack_fence(OURS, 7)
    assert fence().carried((0,)) == pack_fence(OURS, 10)


def test_what_others_write_while_the_store_is_asked_is_not_missed_in_its_answer() -> None:
    asking = fence()
    expected = asking.expected()
    asking.marks.note(0, 11)
    assert asking.fault(GOOD, {0: pack_fence(OURS, 10)}, expected) is None


def test_whoever_carries_nothing_compares_nothing() -> None:
    assert StoreFence(StoreKeys()).fault(StoreIdentity(THEIRS), {}, [0] * SHARDS) is None


def test_once_tripped_it_stays_and_says_why_once(caplog: pytest.LogCaptureFixture) -> None:
    tripped = fence()
    tripped.require_open()
    with caplog.at_level(logging.ERROR):
        for reason in (OLDER, EMPTIED):
            assert str(tripped.trip(reason)) == OLDER + REMEDY
    assert caplog.text.count(OLDER) == 1
    with pytest.raises(StoreFenced, match="discreet store accept"):
        tripped.require_open()
    tripped.begin_anew()
    tripped.require_open()
    assert tripped.marks.identity is None
