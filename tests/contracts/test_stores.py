"""What every store promises, run against memory, an embedded Valkey and a six-node cluster."""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument, StateOverflow, UnknownDecision
from discreet.privacy.charges import UNLIMITED, Charge, Limit
from discreet.state.redis_store import open_store
from discreet.state.stores import Account, Claim, Event, Learned, Store
from tests.state.places import Place

pytestmark = pytest.mark.anyio

ADA = b"ada}{".ljust(32, b"}")
BOB = b"bob".ljust(32, b"\x00")
CELL = b"cell}".ljust(32, b"{")
ONE = Charge(nano_epsilon=100, nano_rho=5, pico_delta=1)
MOST = 2**63 - 1
LEAST = -(2**63)
shared = pytest.mark.parametrize("place", ["embedded", "cluster"], indirect=True)
"""Memory belongs to one process and one client."""


async def learn(
    store: Store, *increments: tuple[int, int], claim: bytes = b"claim", reward: int = 1
) -> Learned:
    return await store.learn(
        address=CELL, increments=increments, claim=claim, reward=reward, claim_ttl=60
    )


async def vector(store: Store, address: bytes = CELL) -> list[int]:
    (found,) = await store.read(addresses=[address])
    assert found.dtype == np.int64
    assert found.dtype.isnative
    return [int(value) for value in found]


# Ledgers


async def test_a_stranger_has_spent_nothing(store: Store) -> None:
    assert await store.balance(principal=ADA) == Charge()


async def test_a_debit_is_booked_in_every_column(store: Store) -> None:
    first = await store.spend(principal=ADA, charge=ONE, limit=Limit())
    second = await store.spend(principal=ADA, charge=ONE, limit=Limit())
    assert first == Account(granted=True, spent=ONE)
    assert second == Account(granted=True, spent=Charge(200, 10, 2))
    assert await store.balance(principal=ADA) == Charge(200, 10, 2)
    assert await store.balance(principal=BOB) == Charge()


@pytest.mark.parametrize("column", ["nano_epsilon", "nano_rho", "pico_delta"])
async def test_a_debit_beyond_any_limit_changes_nothing(store: Store, column: str) -> None:
    limit = replace(Limit(), **{column: getattr(ONE, column) * 2})
    for _ in range(2):
        assert (await store.spend(principal=ADA, charge=ONE, limit=limit)).granted
    refused = await store.spend(principal=ADA, charge=ONE, limit=limit)
    assert refused == Account(granted=False, spent=Charge(200, 10, 2))
    assert await store.balance(principal=ADA) == Charge(200, 10, 2)


async def test_a_limit_of_zero_admits_only_what_is_free(store: Store) -> None:
    nothing = Limit(0, 0, 0)
    assert not (await store.spend(principal=ADA, charge=ONE, limit=nothing)).granted
    assert (await store.spend(principal=ADA, charge=Charge(), limit=nothing)).granted


async def test_columns_without_a_limit_saturate(store: Store) -> None:
    nearly = Charge(UNLIMITED - 1, UNLIMITED, 3)
    full = Charge(UNLIMITED, UNLIMITED, 4)
    assert (await store.spend(principal=ADA, charge=nearly, limit=Limit())).spent == nearly
    assert (await store.spend(principal=ADA, charge=Charge(2, 5, 1), limit=Limit())).spent == full
    assert await store.balance(principal=ADA) == full


async def test_amounts_near_2_to_the_53_are_exact(store: Store) -> None:
    limit = Limit(nano_epsilon=UNLIMITED - 1)
    start = Charge(nano_epsilon=UNLIMITED - 3)
    assert (await store.spend(principal=ADA, charge=start, limit=limit)).granted
    for expected in (True, True, False):
        step = await store.spend(principal=ADA, charge=Charge(nano_epsilon=1), limit=limit)
        assert step.granted is expected
    assert await store.balance(principal=ADA) == Charge(nano_epsilon=UNLIMITED - 1)


async def test_an_infinite_charge_is_never_within_a_limit(store: Store) -> None:
    infinite = Charge(nano_epsilon=UNLIMITED)
    limit = Limit(nano_epsilon=UNLIMITED - 1)
    assert not (await store.spend(principal=ADA, charge=infinite, limit=limit)).granted


async def test_parallel_debits_are_exact(store: Store) -> None:
    limit = Limit(nano_epsilon=37 * 100)
    attempts = [store.spend(principal=ADA, charge=ONE, limit=limit) for _ in range(300)]
    accounts = [await attempt for attempt in attempts]
    assert sum(account.granted for account in accounts) == 37
    assert (await store.balance(principal=ADA)).nano_epsilon == 37 * 100


@shared
async def test_several_processes_share_one_budget_exactly(place: Place) -> None:
    """N decisions for any number of workers: 4 processes of 150 attempts for a budget of 217."""
    assert place.url is not None
    budget = 217
    workers = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.state.spender",
            place.url,
            place.namespace,
            str(budget),
            "150",
            stdout=asyncio.subprocess.PIPE,
        )
        for _ in range(4)
    ]
    outputs = [(await worker.communicate())[0] for worker in workers]
    granted = [int(output) for output in outputs]
    assert sum(granted) == budget
    assert (await place.store.balance(principal=b"shared")).nano_epsilon == budget


# Markers


async def test_a_marker_pays_once(store: Store) -> None:
    first = await store.spend(principal=ADA, charge=ONE, limit=Limit(), marker=b"m")
    again = await store.spend(principal=ADA, charge=ONE, limit=Limit(), marker=b"m")
    assert first == again == Account(granted=True, spent=ONE)
    other = await store.spend(principal=ADA, charge=ONE, limit=Limit(), marker=b"n")
    assert other.spent == Charge(200, 10, 2)


async def test_a_marker_is_honoured_when_the_budget_is_gone(store: Store) -> None:
    limit = Limit(nano_epsilon=100)
    assert (await store.spend(principal=ADA, charge=ONE, limit=limit, marker=b"m")).granted
    assert not (await store.spend(principal=ADA, charge=ONE, limit=limit)).granted
    assert (await store.spend(principal=ADA, charge=ONE, limit=limit, marker=b"m")).granted


async def test_a_refused_debit_leaves_no_marker(store: Store) -> None:
    small, large = Limit(nano_epsilon=50), Limit(nano_epsilon=500)
    assert not (await store.spend(principal=ADA, charge=ONE, limit=small, marker=b"m")).granted
    paid = await store.spend(principal=ADA, charge=ONE, limit=large, marker=b"m")
    assert paid == Account(granted=True, spent=ONE)


async def test_a_marker_does_not_pay_for_a_dearer_release(store: Store) -> None:
    await store.spend(principal=ADA, charge=ONE, limit=Limit(), marker=b"m")
    dearer = await store.spend(principal=ADA, charge=Charge(900), limit=Limit(), marker=b"m")
    assert dearer.spent == Charge(1000, 5, 1)


async def test_markers_belong_to_one_principal(store: Store) -> None:
    await store.spend(principal=ADA, charge=ONE, limit=Limit(), marker=b"m")
    assert (await store.spend(principal=BOB, charge=ONE, limit=Limit(), marker=b"m")).spent == ONE


async def test_a_marker_lapses_and_the_debit_stays(place: Place) -> None:
    store = place.store
    spend = {"principal": ADA, "charge": ONE, "limit": Limit()}
    await store.spend(**spend, marker=b"brief", marker_ttl=1)
    await store.spend(**spend, marker=b"long", marker_ttl=600)
    await store.spend(**spend | {"principal": BOB}, marker=b"brief", marker_ttl=1)
    await place.elapse(1.2)
    assert (await store.spend(**spend, marker=b"long")).spent == Charge(200, 10, 2)
    assert (await store.spend(**spend, marker=b"brief")).spent == Charge(300, 15, 3)
    assert await store.forget_markers(principal=BOB) == []
    assert await store.balance(principal=BOB) == ONE


async def test_forgetting_markers_returns_them_and_keeps_the_ledger(store: Store) -> None:
    spend = {"principal": ADA, "charge": ONE, "limit": Limit()}
    for marker in (b"m" * 32, b"n" * 32):
        await store.spend(**spend, marker=marker)
    await store.spend(**spend | {"charge": Charge(1)}, marker=b"m" * 32)
    await store.spend(**spend | {"principal": BOB}, marker=b"bob")
    assert sorted(await store.forget_markers(principal=ADA)) == [b"m" * 32, b"n" * 32]
    assert await store.forget_markers(principal=ADA) == []
    assert await store.balance(principal=ADA) == Charge(201, 10, 2)
    assert await store.forget_markers(principal=BOB) == [b"bob"]
    # A forgotten marker pays nothing any more.
    assert (await store.spend(**spend, marker=b"m" * 32)).spent == Charge(301, 15, 3)


# Statistics


async def test_an_absent_cell_is_empty(store: Store) -> None:
    assert await vector(store) == []
    assert await store.read(addresses=[]) == []


async def test_increments_add_up_and_the_vector_grows(store: Store) -> None:
    assert await learn(store, (0, 1), (2, -5)) == Learned(Claim.COUNTED, 1)
    assert await learn(store, (0, 1), (4, 7), (4, 1), claim=b"2") == Learned(Claim.COUNTED, 2)
    assert await vector(store) == [2, 0, -5, 0, 8]


async def test_vectors_come_back_in_the_order_of_the_question(store: Store) -> None:
    addresses = [b"%d" % number for number in range(40)]
    for number, address in enumerate(addresses):
        await store.learn(
            address=address, increments=[(0, number)], claim=b"c", reward=0, claim_ttl=60
        )
    wanted = [*reversed(addresses), b"absent", addresses[3]]
    found = await store.read(addresses=wanted)
    assert [list(each) for each in found] == [[n] for n in reversed(range(40))] + [[], [3]]


async def test_what_was_read_cannot_be_written_to(store: Store) -> None:
    await learn(store, (0, 1))
    (found,) = await store.read(addresses=[CELL])
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 9
    await learn(store, (0, 1), claim=b"2")
    assert list(found) == [1]
    assert await vector(store) == [2]


async def test_a_vector_of_thousands_of_fields(store: Store) -> None:
    increments = [(field, field + 1) for field in range(5000)]
    assert (await learn(store, *increments)).claim is Claim.COUNTED
    assert await vector(store) == list(range(1, 5001))


@pytest.mark.parametrize(("start", "step"), [(MOST, 1), (LEAST, -1), (MOST, MOST)])
async def test_an_overflow_adds_nothing_and_claims_nothing(
    store: Store, start: int, step: int
) -> None:
    await learn(store, (0, 1), (1, start), claim=b"start")
    before = await vector(store)
    with pytest.raises(StateOverflow):
        await learn(store, (0, 1), (1, step), (9, 1))
    assert await vector(store) == before
    assert (await learn(store, (0, 1))).claim is Claim.COUNTED, "the claim was taken"


async def test_an_overflow_within_one_update_leaves_no_cell(store: Store) -> None:
    with pytest.raises(StateOverflow):
        await learn(store, (3, MOST), (3, 1))
    assert await vector(store) == []


async def test_an_overflow_in_the_last_of_thousands_of_fields_undoes_the_first(
    store: Store,
) -> None:
    await learn(store, (4999, MOST), claim=b"start")
    with pytest.raises(StateOverflow):
        await learn(store, *[(field, 1) for field in range(5000)])
    assert await vector(store) == [0] * 4999 + [MOST]


async def test_extremes_are_exact(store: Store) -> None:
    await learn(store, (0, MOST), (1, LEAST))
    answer = await learn(store, (0, -1), (1, 1), claim=b"2")
    assert answer == Learned(Claim.COUNTED, MOST - 1)
    assert await vector(store) == [MOST - 1, LEAST + 1]


# Claims


async def test_feedback_counts_once(store: Store) -> None:
    assert (await learn(store, (0, 1), reward=5)).claim is Claim.COUNTED
    assert await learn(store, (0, 1), reward=5) == Learned(Claim.DUPLICATE, 1)
    assert await learn(store, (0, 1), reward=6) == Learned(Claim.CONFLICT, 1)
    assert await learn(store, (0, 1), reward=5) == Learned(Claim.DUPLICATE, 1)
    assert await vector(store) == [1]


async def test_a_claim_without_increments_counts_too(store: Store) -> None:
    assert await learn(store) == Learned(Claim.COUNTED, 0)
    assert await learn(store) == Learned(Claim.DUPLICATE, 0)
    assert await vector(store) == []


async def test_claims_of_several_items_and_cells_are_apart(store: Store) -> None:
    for address in (b"a", b"b"):
        for claim in (b"1", b"2", b"}", b"\r\n"):
            answer = await store.learn(
                address=address, increments=[(0, 1)], claim=claim, reward=0, claim_ttl=60
            )
            assert answer.claim is Claim.COUNTED
    assert [list(each) for each in await store.read(addresses=[b"a", b"b"])] == [[4], [4]]


async def test_parallel_feedback_counts_once(store: Store) -> None:
    attempts = [
        store.learn(
            address=CELL,
            increments=[(0, 1), (1, reward)],
            claim=b"same",
            reward=reward,
            claim_ttl=60,
        )
        for reward in (3, 3, 4) * 20
    ]
    outcomes = Counter([(await attempt).claim for attempt in attempts])
    assert outcomes[Claim.COUNTED] == 1
    assert outcomes[Claim.DUPLICATE] in (19, 39)
    assert (await vector(store))[0] == 1


async def test_a_claim_lapses(place: Place) -> None:
    async def claim() -> Learned:
        return await place.store.learn(
            address=CELL, increments=[(0, 1)], claim=b"c", reward=1, claim_ttl=1
        )

    assert (await claim()).claim is Claim.COUNTED
    assert (await claim()).claim is Claim.DUPLICATE
    await place.elapse(1.2)
    assert await claim() == Learned(Claim.COUNTED, 2)


# Indexes


async def test_indexed_cells_are_found_with_their_levels(store: Store) -> None:
    assert await store.count_cells(index=b"i") == 0
    assert await store.cells(index=b"i", most=10) == {}
    for level, address in enumerate([b"x", b"y}", b"z\x00", b"x"]):
        await store.index_cell(index=b"i", address=address, level=level)
    await store.index_cell(index=b"other", address=b"w", level=9)
    assert await store.count_cells(index=b"i") == 3
    assert await store.cells(index=b"i", most=10) == {b"x": 3, b"y}": 1, b"z\x00": 2}


@pytest.mark.parametrize(("size", "most"), [(40, 10), (900, 30)])
async def test_a_sample_of_cells_favours_none(store: Store, size: int, most: int) -> None:
    """Each half of the addresses gets half of the sampled places.

    Under a fair sampler the share of the first half over `draws * most` places has a standard
    deviation below 0.5 / sqrt(places) (less, without replacement): six of them are a false alarm
    with probability below 2e-9. A sampler that prefers a half by 30% (share 0.565) is found out:
    the tolerance is at most 0.055.
    """
    await asyncio.gather(
        *(
            store.index_cell(index=b"i", address=b"%d" % number, level=number)
            for number in range(size)
        )
    )
    draws = 3000 // most
    seen: Counter[bool] = Counter()
    for _ in range(draws):
        sample = await store.cells(index=b"i", most=most)
        assert len(sample) == most
        assert all(address == b"%d" % level for address, level in sample.items())
        seen.update(level < size // 2 for level in sample.values())
    places = draws * most
    assert abs(seen[True] / places - 0.5) < 6 * 0.5 / places**0.5


async def test_removing_cells_erases_statistics_and_index(store: Store) -> None:
    await learn(store, (0, 1))
    await asyncio.gather(
        *(store.index_cell(index=b"i", address=b"%d" % number, level=1) for number in range(1200))
    )
    await store.index_cell(index=b"i", address=CELL, level=0)
    assert await store.remove_cells(index=b"i") == 1201
    assert await vector(store) == []
    assert await store.count_cells(index=b"i") == 0
    assert await store.remove_cells(index=b"i") == 0


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


async def test_events_lapse_and_an_answer_renews_them(place: Place) -> None:
    store = place.store
    for event in (b"pending", b"answered"):
        await store.claim_event(event=event, fingerprint=b"me", ttl=1)
    await store.answer_event(event=b"answered", answer=b"a", ttl=600)
    await store.answer_event(event=b"answered", answer=b"b", ttl=1)
    await place.elapse(1.2)
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
    assert not await store.remove_document(name="ä")
    assert await store.put_document(name="ä", document=b"\x00\xff", expected=None)
    assert await store.remove_document(name="ä")
    assert not await store.remove_document(name="ä")
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


# Life


async def test_commands_are_issued_when_called(store: Store) -> None:
    """Nothing awaits the debit, yet a later command sees it: calls are not lazy."""
    debit = store.spend(principal=ADA, charge=ONE, limit=Limit())
    assert await store.balance(principal=ADA) == ONE
    assert (await debit).granted


@shared
async def test_another_client_sees_the_same_data(place: Place) -> None:
    assert place.url is not None
    await learn(place.store, (0, 7))
    other = open_store(place.url, namespace=place.namespace)
    await other.open()
    try:
        assert await vector(other) == [7]
    finally:
        await other.close()
    elsewhere = open_store(place.url, namespace="elsewhere")
    await elsewhere.open()
    try:
        assert await vector(elsewhere) == []
    finally:
        await elsewhere.close()


async def test_a_ping_is_answered(store: Store) -> None:
    assert await store.ping() is None


SPEND: dict[str, Any] = {"principal": ADA, "charge": ONE, "limit": Limit()}
LEARN: dict[str, Any] = {
    "address": CELL,
    "increments": [(0, 1)],
    "claim": b"c",
    "reward": 1,
    "claim_ttl": 60,
}


@pytest.mark.parametrize(
    ("method", "arguments", "culprit"),
    [
        ("spend", SPEND | {"principal": b""}, "principal"),
        ("spend", SPEND | {"principal": "ada"}, "principal"),
        ("spend", SPEND | {"marker": b"", "marker_ttl": 60}, "marker"),
        ("spend", SPEND | {"marker": b"m", "marker_ttl": 0}, "marker_ttl"),
        ("balance", {"principal": b"x" * 129}, "principal"),
        ("forget_markers", {"principal": b""}, "principal"),
        ("read", {"addresses": [CELL, b""]}, "addresses"),
        ("learn", LEARN | {"address": b""}, "address"),
        ("learn", LEARN | {"increments": [(-1, 1)]}, "increments"),
        ("learn", LEARN | {"increments": [(2**20, 1)]}, "increments"),
        ("learn", LEARN | {"increments": [(0, 2**63)]}, "increments"),
        ("learn", LEARN | {"increments": [(0, 0.5)]}, "increments"),
        ("learn", LEARN | {"claim": b""}, "claim"),
        ("learn", LEARN | {"reward": 2**63}, "reward"),
        ("learn", LEARN | {"claim_ttl": 0}, "claim_ttl"),
        ("index_cell", {"index": b"", "address": CELL, "level": 0}, "index"),
        ("index_cell", {"index": b"i", "address": b"", "level": 0}, "address"),
        ("index_cell", {"index": b"i", "address": CELL, "level": -1}, "level"),
        ("cells", {"index": b"i", "most": 0}, "most"),
        ("claim_event", {"event": b"", "fingerprint": b"f", "ttl": 60}, "event"),
        ("claim_event", {"event": b"e", "fingerprint": b"", "ttl": 60}, "fingerprint"),
        ("claim_event", {"event": b"e", "fingerprint": b"f", "ttl": -1}, "ttl"),
        ("answer_event", {"event": b"e", "answer": b"", "ttl": 60}, "answer"),
        ("put_document", {"name": "", "document": b"d", "expected": None}, "name"),
        ("put_document", {"name": "\ud800", "document": b"d", "expected": None}, "name"),
        ("put_document", {"name": "n", "document": b"", "expected": None}, "document"),
        ("put_document", {"name": "n", "document": b"d", "expected": b""}, "expected"),
        ("remove_document", {"name": "n" * 257}, "name"),
        ("secret", {"name": "n", "proposal": b""}, "proposal"),
    ],
)
async def test_bad_arguments_are_named_at_the_call(
    store: Store, method: str, arguments: dict[str, Any], culprit: str
) -> None:
    call: Callable[..., Any] = getattr(store, method)
    with pytest.raises(InvalidArgument) as caught:
        call(**arguments)
    assert caught.value.argument == culprit


# Letters


async def test_letters_wait_until_they_are_discarded(store: Store) -> None:
    queue, other = b"queue}{", b"other"
    assert await store.letters(queue=queue, most=10) == {}
    assert await store.count_letters(queue=queue) == 0
    for number in range(3):
        await store.post_letter(queue=queue, letter=bytes([number]), content=b"\x00{%d}" % number)
    await store.post_letter(queue=queue, letter=b"\x01", content=b"again")
    expected = {b"\x00": b"\x00{0}", b"\x01": b"again", b"\x02": b"\x00{2}"}
    assert await store.letters(queue=queue, most=10) == expected
    assert await store.count_letters(queue=queue) == 3
    assert await store.letters(queue=other, most=10) == {}
    for _ in range(2):
        await store.discard_letter(queue=queue, letter=b"\x01")
    assert set(await store.letters(queue=queue, most=10)) == {b"\x00", b"\x02"}
    await store.discard_letter(queue=other, letter=b"\x00")
    assert await store.count_letters(queue=queue) == 2


async def test_a_few_of_many_letters_are_a_fair_sample(store: Store) -> None:
    """Each letter is missed by 200 samples of 5 in 20 with probability 0.75**200 < 1e-24."""
    for number in range(20):
        await store.post_letter(queue=b"q", letter=bytes([number]), content=b"c")
    seen: set[bytes] = set()
    for _ in range(200):
        found = await store.letters(queue=b"q", most=5)
        assert len(found) == 5
        seen |= set(found)
    assert len(seen) == 20
