"""What every store promises about events, messages, documents and secrets."""

from collections import Counter
from typing import Any

import pytest

from discreet.errors import InvalidArgument, UnknownDecision
from discreet.state.stores import Event, Store
from tests.state.places import Place

pytestmark = pytest.mark.anyio


# Events


async def test_the_first_request_owns_an_event(store: Store) -> None:
    mine = await store.claim_event(event=b"e", fingerprint=b"me", ttl=60)
    theirs = await store.claim_event(event=b"e", fingerprint=b"they", ttl=60)
    assert mine == theirs == Event(fingerprint=b"me", answer=None)
    assert await store.find_event(event=b"e") == mine
    assert await store.find_event(event=b"f") is None


async def test_the_first_answer_stands(store: Store) -> None:
    await store.claim_event(event=b"e", fingerprint=b"me", ttl=60)
    assert await store.answer_event(event=b"e", answer=b"one", ttl=60) == b"one"
    assert await store.answer_event(event=b"e", answer=b"two", ttl=60) == b"one"
    claimed = await store.claim_event(event=b"e", fingerprint=b"me", ttl=60)
    assert claimed == Event(fingerprint=b"me", answer=b"one")


async def test_an_event_that_nobody_claims_is_not_answered(store: Store) -> None:
    with pytest.raises(UnknownDecision):
        await store.answer_event(event=b"e", answer=b"one", ttl=60)
    assert await store.find_event(event=b"e") is None
    await store.claim_event(event=b"e", fingerprint=b"me", ttl=60)
    await store.forget_event(event=b"e")
    await store.forget_event(event=b"e")
    with pytest.raises(UnknownDecision):
        await store.answer_event(event=b"e", answer=b"one", ttl=60)
    assert await store.find_event(event=b"e") is None


async def test_only_the_answer_that_stands_is_taken_back(store: Store) -> None:
    await store.forget_answer(event=b"e", answer=b"mine")
    await store.claim_event(event=b"e", fingerprint=b"me", ttl=60)
    # A claim without an answer is somebody's who is about to answer.
    await store.forget_answer(event=b"e", answer=b"mine")
    assert await store.answer_event(event=b"e", answer=b"theirs", ttl=60) == b"theirs"
    await store.forget_answer(event=b"e", answer=b"mine")
    assert await store.find_event(event=b"e") == Event(fingerprint=b"me", answer=b"theirs")
    await store.forget_answer(event=b"e", answer=b"theirs")
    assert await store.find_event(event=b"e") is None


async def test_events_lapse_and_an_answer_renews_them(place: Place) -> None:
    store = place.store
    for event in (b"pending", b"answered"):
        await store.claim_event(event=event, fingerprint=b"me", ttl=4)  # answered before that
    await store.answer_event(event=b"answered", answer=b"a", ttl=600)
    await store.answer_event(event=b"answered", answer=b"b", ttl=1)
    await place.elapse(4.2)
    assert await store.find_event(event=b"pending") is None
    assert await store.find_event(event=b"answered") == Event(fingerprint=b"me", answer=b"a")


# Configuration


async def test_documents_are_replaced_only_by_who_saw_them(store: Store) -> None:
    assert await store.epoch() == 0
    assert not await store.put_document(name="a", document=b"2", expected=b"1")
    assert await store.put_document(name="a", document=b"1", expected=None)
    assert not await store.put_document(name="a", document=b"2", expected=None)
    assert await store.put_document(name="a", document=b"2", expected=b"1")
    assert not await store.put_document(name="a", document=b"3", expected=b"1")
    assert await store.epoch() == 2
    registry = await store.registry()
    assert registry.epoch == 2
    assert registry.documents == {"a": b"2"}


async def test_removing_a_document_advances_the_epoch(store: Store) -> None:
    standing = b"\x00\xff"
    assert not await store.remove_document(name="ä", expected=standing)
    assert await store.put_document(name="ä", document=standing, expected=None)
    assert not await store.remove_document(name="ä", expected=b"\x00")
    assert (await store.registry()).documents == {"ä": standing}
    assert await store.remove_document(name="ä", expected=standing)
    assert not await store.remove_document(name="ä", expected=standing)
    assert await store.epoch() == 2
    assert (await store.registry()).documents == {}


async def test_of_parallel_changes_one_wins(store: Store) -> None:
    changes = [
        store.put_document(name="a", document=b"%d" % number, expected=None) for number in range(20)
    ]
    assert sum([await change for change in changes]) == 1
    assert await store.epoch() == 1


async def test_the_first_secret_stays(store: Store) -> None:
    assert await store.secret(name="key", proposal=b"one") == b"one"
    assert await store.secret(name="key", proposal=b"two") == b"one"
    assert await store.secret(name="other", proposal=b"two") == b"two"
    assert (await store.registry()).documents == {}


# Messages


async def test_messages_wait_until_they_are_removed(store: Store) -> None:
    queue, other = b"queue}{", b"other"
    assert await store.messages(queue=queue, most=10) == {}
    assert await store.count_messages(queue=queue) == 0
    for number in range(3):
        await store.put_message(queue=queue, name=bytes([number]), content=b"\x00{%d}" % number)
    await store.put_message(queue=queue, name=b"\x01", content=b"again")
    expected = {b"\x00": b"\x00{0}", b"\x01": b"again", b"\x02": b"\x00{2}"}
    assert await store.messages(queue=queue, most=10) == expected
    assert await store.count_messages(queue=queue) == 3
    assert await store.messages(queue=other, most=10) == {}
    for _ in range(2):
        await store.remove_message(queue=queue, name=b"\x01")
    assert set(await store.messages(queue=queue, most=10)) == {b"\x00", b"\x02"}
    await store.remove_message(queue=other, name=b"\x00")
    assert await store.count_messages(queue=queue) == 2


@pytest.mark.parametrize(("size", "most"), [(40, 10), (900, 30)])
async def test_a_sample_of_messages_favours_none(store: Store, size: int, most: int) -> None:
    """Each half of the messages gets half of the sampled places.

    Under a fair sampler the share of the first half over `draws * most` places has a standard
    deviation below 0.5 / sqrt(places) (less, without replacement): six of them are a false alarm
    with probability below 2e-9. A sampler that prefers a half by 30% (share 0.565) is found out:
    the tolerance is at most 0.055.
    """
    for number in range(size):
        await store.put_message(queue=b"q", name=b"%d" % number, content=b"c%d" % number)
    draws = 3000 // most
    seen: Counter[bool] = Counter()
    for _ in range(draws):
        sample = await store.messages(queue=b"q", most=most)
        assert len(sample) == most
        assert all(content == b"c" + name for name, content in sample.items())
        seen.update(int(name) < size // 2 for name in sample)
    places = draws * most
    assert abs(seen[True] / places - 0.5) < 6 * 0.5 / places**0.5


@pytest.mark.parametrize(
    ("method", "arguments", "culprit"),
    [
        ("claim_event", {"event": b"", "fingerprint": b"f", "ttl": 60}, "event"),
        ("claim_event", {"event": b"e", "fingerprint": b"", "ttl": 60}, "fingerprint"),
        ("claim_event", {"event": b"e", "fingerprint": b"f", "ttl": -1}, "ttl"),
        ("answer_event", {"event": b"e", "answer": b"", "ttl": 60}, "answer"),
        ("forget_answer", {"event": b"", "answer": b"a"}, "event"),
        ("forget_answer", {"event": b"e", "answer": b""}, "answer"),
        ("put_message", {"queue": b"", "name": b"n", "content": b"c"}, "queue"),
        ("put_message", {"queue": b"q", "name": b"", "content": b"c"}, "name"),
        ("put_message", {"queue": b"q", "name": b"n", "content": b""}, "content"),
        ("messages", {"queue": b"q", "most": 0}, "most"),
        ("remove_message", {"queue": b"q", "name": b""}, "name"),
        ("put_document", {"name": "", "document": b"d", "expected": None}, "name"),
        ("put_document", {"name": "\ud800", "document": b"d", "expected": None}, "name"),
        ("put_document", {"name": "n", "document": b"", "expected": None}, "document"),
        ("put_document", {"name": "n", "document": b"d", "expected": b""}, "expected"),
        ("remove_document", {"name": "n" * 257, "expected": b"d"}, "name"),
        ("remove_document", {"name": "n", "expected": b""}, "expected"),
        ("secret", {"name": "n", "proposal": b""}, "proposal"),
    ],
)
async def test_bad_arguments_are_named_at_the_call(
    store: Store, method: str, arguments: dict[str, Any], culprit: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        getattr(store, method)(**arguments)
    assert caught.value.argument == culprit
