"""Keys that one script touches share a slot, and no two things share a key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.state.keys import StoreKeys, frozen_sums
from discreet.state.slots import slot_of
from discreet.state.stores import SHARDS, shard_of

DIGEST = st.binary(min_size=1, max_size=40)
KEYS = StoreKeys()


@given(DIGEST, DIGEST, DIGEST)
def test_what_a_script_touches_shares_a_slot(digest: bytes, claim: bytes, block: bytes) -> None:
    shard = shard_of(digest)
    frozen = KEYS.frozen(shard, claim)
    of_a_principal = [
        *(KEYS.ledger(digest), KEYS.markers(digest), KEYS.claim(digest, claim)),
        *(KEYS.counts(shard, claim), KEYS.release(shard, claim), KEYS.own(shard, claim) + digest),
        *(KEYS.sums(shard, claim) + block, frozen, frozen_sums(frozen, 12) + block),
    ]
    assert len({slot_of(key) for key in of_a_principal}) == 1
    assert slot_of(KEYS.blob(digest)) == slot_of(KEYS.page(digest))
    of_all = (KEYS.schema, KEYS.documents, KEYS.epoch, KEYS.secrets)
    assert len({slot_of(key) for key in of_all}) == 1


def test_principals_spread_over_the_shards() -> None:
    slots = {slot_of(KEYS.ledger(bytes([first]) + b"}")) for first in range(256)}
    assert len(slots) == SHARDS


def test_braces_in_digests_do_not_end_the_tag() -> None:
    """Raw bytes in the tag would put these two in one slot, and most others in another."""
    slots = {slot_of(KEYS.blob(b"}" + bytes([number]))) for number in range(50)}
    assert len(slots) > 40


@given(st.lists(st.tuples(DIGEST, DIGEST), min_size=2, max_size=20, unique=True))
def test_different_things_have_different_keys(pairs: list[tuple[bytes, bytes]]) -> None:
    """On one shard, where the tag does not keep them apart."""
    digests = {digest for digest, _ in pairs}
    keys = [KEYS.schema, KEYS.documents, KEYS.epoch, KEYS.secrets]
    for digest in digests:
        keys += [KEYS.ledger(digest), KEYS.markers(digest), KEYS.event(digest), KEYS.queue(digest)]
        keys += [KEYS.blob(digest), KEYS.page(digest), KEYS.roster(digest), KEYS.lease(digest)]
        keys += [KEYS.sums(0, digest), KEYS.own(0, digest), KEYS.counts(0, digest)]
        keys += [KEYS.release(0, digest), KEYS.frozen(0, digest)]
        keys += [frozen_sums(KEYS.frozen(0, digest), number) for number in (1, 2, 12)]
    for one, other in pairs:
        keys += [KEYS.claim(one, other), KEYS.sums(0, one) + other, KEYS.own(0, one) + other]
        keys += [frozen_sums(KEYS.frozen(0, one), number) + other for number in (1, 2, 12)]
    assert len(set(keys)) == len(keys)


def test_namespaces_are_apart() -> None:
    assert KEYS.ledger(b"x").startswith(b"discreet:")
    assert StoreKeys("other").ledger(b"x") != KEYS.ledger(b"x")


@pytest.mark.parametrize("namespace", ["", "a{b", "a}b", "a b", "a:b", "ä", "x" * 65])
def test_a_namespace_that_would_break_tags_is_refused(namespace: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        StoreKeys(namespace)
    assert caught.value.argument == "namespace"
