"""What every store promises about many at once: each as if it had come alone, in this order."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from discreet.errors import DiscreetError, StateOverflow
from discreet.privacy.charges import UNLIMITED, Charge, Limit
from discreet.state.stores import Account, Claim, Learned, Learning, Store
from tests.state.places import Place

pytestmark = pytest.mark.anyio

ADA = b"ada}{".ljust(32, b"}")
BOB = b"bob".ljust(32, b"\x00")
EVE = b"\r\n$3\r\neve"
ONE = Charge(nano_epsilon=100, nano_rho=5, pico_delta=1)
MOST = 2**63 - 1


def learning(
    address: bytes, claim: bytes, *increments: tuple[int, int], reward: int = 1, ttl: int = 60
) -> Learning:
    return Learning(address, increments, claim, reward, ttl)


async def learned_alone(store: Store, one: Learning) -> Learned | DiscreetError:
    try:
        return await store.learn(**one._asdict())
    except DiscreetError as error:
        return error


def plainly(outcomes: Sequence[Learned | DiscreetError]) -> list[Any]:
    """Errors are compared by their kind."""
    return [type(each) if isinstance(each, DiscreetError) else each for each in outcomes]


# Debits


async def test_nobody_to_debit_is_nobody_debited(store: Store) -> None:
    assert list(await store.spend_each(principals=[], charge=ONE, limit=Limit())) == []


async def test_each_is_debited_in_order_and_who_comes_twice_twice(store: Store) -> None:
    await store.spend(principal=BOB, charge=Charge(7), limit=Limit())
    accounts = await store.spend_each(
        principals=[ADA, BOB, ADA, EVE, ADA], charge=ONE, limit=Limit()
    )
    assert list(accounts) == [
        Account(True, Charge(100, 5, 1)),
        Account(True, Charge(107, 5, 1)),
        Account(True, Charge(200, 10, 2)),
        Account(True, Charge(100, 5, 1)),
        Account(True, Charge(300, 15, 3)),
    ]
    assert await store.balance(principal=ADA) == Charge(300, 15, 3)
    assert await store.balance(principal=BOB) == Charge(107, 5, 1)
    assert await store.balance(principal=EVE) == ONE


@pytest.mark.parametrize(
    "limit", [Limit(nano_epsilon=299), Limit(nano_rho=14), Limit(pico_delta=2)]
)
async def test_who_is_refused_is_left_alone_and_so_are_the_others(
    store: Store, limit: Limit
) -> None:
    for _ in range(2):
        await store.spend(principal=ADA, charge=ONE, limit=limit)
    accounts = await store.spend_each(principals=[ADA, BOB, ADA, BOB, BOB], charge=ONE, limit=limit)
    two = Charge(200, 10, 2)
    assert list(accounts) == [
        Account(False, two),
        Account(True, ONE),
        Account(False, two),
        Account(True, two),
        Account(False, two),
    ]
    assert await store.balance(principal=ADA) == await store.balance(principal=BOB) == two


@pytest.mark.parametrize(
    ("charge", "limit"),
    [
        (ONE, Limit(nano_epsilon=450)),
        (Charge(3, 2, 1), Limit(1_000, 9, UNLIMITED)),
        (Charge(), Limit(0, 0, 0)),
        (Charge(UNLIMITED), Limit(nano_epsilon=UNLIMITED - 1)),
        (Charge(UNLIMITED - 1, UNLIMITED, 2**40), Limit()),
        (Charge(2**52), Limit(nano_epsilon=UNLIMITED - 1)),
    ],
)
async def test_debiting_each_equals_debiting_one_by_one(
    store: Store, charge: Charge, limit: Limit
) -> None:
    """Two sets of ledgers that stand alike, the one debited together and the other singly."""
    rng = random.Random(7)
    order = [rng.randrange(6) for _ in range(40)]
    for number in range(6):
        for kind in (b"together", b"alone"):
            principal = kind + bytes([number])
            await store.spend(principal=principal, charge=Charge(number), limit=Limit())
    together = await store.spend_each(
        principals=[b"together" + bytes([number]) for number in order], charge=charge, limit=limit
    )
    alone = [
        await store.spend(principal=b"alone" + bytes([number]), charge=charge, limit=limit)
        for number in order
    ]
    assert list(together) == alone
    for number in range(6):
        expected = await store.balance(principal=b"alone" + bytes([number]))
        assert await store.balance(principal=b"together" + bytes([number])) == expected


async def test_thousands_are_debited_when_called(store: Store) -> None:
    """More than one write holds, and nobody awaits them before the balance is asked for."""
    principals = [b"%d" % (number % 1_300) for number in range(2_600)]
    debits = store.spend_each(principals=principals, charge=ONE, limit=Limit(nano_epsilon=100))
    assert await store.balance(principal=b"1299") == ONE
    accounts = await debits
    assert list(accounts) == [Account(number < 1_300, ONE) for number in range(2_600)]


# Rows


async def test_no_rows_are_no_rows_of_that_length(store: Store) -> None:
    sums, failed = await store.read_rows(addresses=[], fields=3)
    assert sums.shape == (0, 3)
    assert failed == {}


@pytest.mark.parametrize("fields", [1, 2, 3, 5, 700])
async def test_rows_are_what_is_read_padded_or_cut(store: Store, fields: int) -> None:
    await learned_alone(store, learning(b"long", b"c", *[(n, n - 9) for n in range(20)]))
    await learned_alone(store, learning(b"short", b"c", (1, -MOST - 1), (0, MOST)))
    addresses = [b"absent", b"short", b"long", b"short"]
    sums, failed = await store.read_rows(addresses=addresses, fields=fields)
    assert failed == {}
    assert sums.shape == (4, fields)
    assert sums.dtype == np.int64
    assert sums.dtype.isnative
    for row, vector in zip(sums, await store.read(addresses=addresses), strict=True):
        padded = [*vector.tolist(), *[0] * fields][:fields]
        assert row.tolist() == padded


async def test_thousands_of_rows_come_back_in_the_order_of_the_question(store: Store) -> None:
    await store.learn_each(
        learnings=[learning(b"%d" % n, b"c", (0, n), (1, -n)) for n in range(1_200)]
    )
    wanted = [(7 * n) % 1_300 for n in range(2_600)]
    sums, failed = await store.read_rows(addresses=[b"%d" % n for n in wanted], fields=2)
    assert failed == {}
    assert sums.tolist() == [[n, -n] if n < 1_200 else [0, 0] for n in wanted]


# Feedback


async def test_nothing_to_learn_is_nothing_learned(store: Store) -> None:
    assert list(await store.learn_each(learnings=[])) == []


async def test_each_outcome_in_one_call_is_its_own(store: Store) -> None:
    await store.learn_each(
        learnings=[learning(b"a", b"old", (0, 1)), learning(b"full", b"old", (0, 1), (1, MOST))]
    )
    outcomes = await store.learn_each(
        learnings=[
            learning(b"a", b"new", (0, 1), (3, 5)),
            learning(b"a", b"new", (0, 1), (3, 5)),
            learning(b"a", b"new", (0, 1), (3, 9), reward=2),
            learning(b"full", b"new", (0, 1), (1, 1)),
            learning(b"a", b"old", (0, 1)),
            learning(b"b", b"new", (0, 1)),
            learning(b"full", b"new", (0, 1)),
            learning(b"a", b"newer", (0, 1)),
        ]
    )
    assert plainly(outcomes) == [
        Learned(Claim.COUNTED, 2),
        Learned(Claim.DUPLICATE, 2),
        Learned(Claim.CONFLICT, 2),
        StateOverflow,
        Learned(Claim.DUPLICATE, 2),
        Learned(Claim.COUNTED, 1),
        Learned(Claim.COUNTED, 2),
        Learned(Claim.COUNTED, 3),
    ]
    found = await store.read(addresses=[b"a", b"b", b"full"])
    assert [each.tolist() for each in found] == [[3, 0, 0, 5], [1], [2, MOST]]


async def test_learning_each_equals_learning_one_by_one(store: Store) -> None:
    rng = random.Random(3)
    many = [
        learning(
            b"%d" % rng.randrange(4),
            b"%d" % rng.randrange(12),
            *[(rng.randrange(4), rng.choice([1, -3, MOST])) for _ in range(rng.randrange(4))],
            reward=rng.randrange(2),
        )
        for _ in range(120)
    ]
    together = await store.learn_each(
        learnings=[one._replace(address=b"together" + one.address) for one in many]
    )
    alone = [
        await learned_alone(store, one._replace(address=b"alone" + one.address)) for one in many
    ]
    assert plainly(together) == plainly(alone)
    kinds = {each.claim if isinstance(each, Learned) else type(each) for each in together}
    assert kinds == {*Claim, StateOverflow}, "the table lacks an outcome: it shows too little"
    for number in range(4):
        pair = await store.read(addresses=[b"together%d" % number, b"alone%d" % number])
        assert pair[0].tolist() == pair[1].tolist()


async def test_a_claim_learned_among_many_lapses(place: Place) -> None:
    brief, long = learning(b"a", b"brief", (0, 1), ttl=1), learning(b"a", b"long", (0, 1))
    await place.store.learn_each(learnings=[brief, long])
    await place.elapse(1.2)
    outcomes = await place.store.learn_each(learnings=[brief, long])
    assert list(outcomes) == [Learned(Claim.COUNTED, 3), Learned(Claim.DUPLICATE, 3)]
