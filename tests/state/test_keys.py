"""Keys that one script touches share a slot, and no two things share a key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot

from discreet.errors import InvalidArgument
from discreet.state.keys import Keys

DIGEST = st.binary(min_size=1, max_size=40)
KEYS = Keys()


@given(DIGEST, DIGEST)
def test_what_a_script_touches_shares_a_slot(digest: bytes, claim: bytes) -> None:
    assert key_slot(KEYS.ledger(digest)) == key_slot(KEYS.markers(digest))
    assert key_slot(KEYS.cell(digest)) == key_slot(KEYS.claim(digest, claim))
    assert key_slot(KEYS.blob(digest)) == key_slot(KEYS.page(digest))
    assert len({key_slot(key) for key in (KEYS.documents, KEYS.epoch, KEYS.secrets)}) == 1


def test_braces_in_digests_do_not_end_the_tag() -> None:
    """Raw bytes in the tag would put these two in one slot, and most others in another."""
    slots = {key_slot(KEYS.ledger(b"}" + bytes([number]))) for number in range(50)}
    assert len(slots) > 40


@given(st.lists(st.tuples(DIGEST, DIGEST), min_size=2, max_size=20, unique=True))
def test_different_things_have_different_keys(pairs: list[tuple[bytes, bytes]]) -> None:
    digests = {digest for digest, _ in pairs}
    keys = [
        make(digest)
        for digest in digests
        for make in (
            *(KEYS.ledger, KEYS.markers, KEYS.cell, KEYS.event, KEYS.index, KEYS.queue),
            *(KEYS.blob, KEYS.page, KEYS.roster, KEYS.lease),
        )
    ]
    keys += [KEYS.claim(address, claim) for address, claim in pairs]
    keys += [KEYS.documents, KEYS.epoch, KEYS.secrets]
    assert len(set(keys)) == len(keys)


def test_namespaces_are_apart() -> None:
    assert KEYS.ledger(b"x").startswith(b"discreet:")
    assert Keys("other").ledger(b"x") != KEYS.ledger(b"x")


@pytest.mark.parametrize("namespace", ["", "a{b", "a}b", "a b", "a:b", "ä", "x" * 65])
def test_a_namespace_that_would_break_tags_is_refused(namespace: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Keys(namespace)
    assert caught.value.argument == "namespace"
