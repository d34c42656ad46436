"""What every store promises about ledgers and markers: memory, embedded Valkey, cluster."""

import asyncio
import random
import sys
from collections.abc import Callable
from typing import Any

import pytest

from discreet.errors import InvalidArgument, StoreDamaged, StoreUnavailable
from discreet.privacy.charges import NEVER, UNLIMITED, Charge, Limit
from discreet.state import checks
from discreet.state.keys import StoreKeys
from discreet.state.redis_store import open_store
from discreet.state.stores import Account, Debit, Debited, Ledger, Store
from tests.state.places import ADA, BOB, ONE, Place, record, shared, spend, spent
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio

EVE = b"\r\n$3\r\neve"
TWO = Charge(200, 10, 2)
BOTH = pytest.mark.parametrize("account", list(Account))


def ledger(account: Account, total: Charge) -> Ledger:
    return Ledger(total) if account is Account.ANSWERS else Ledger(feedback=total)


# Debits


async def test_nobody_has_spent_anything_at_first(store: Store) -> None:
    assert list(await store.ledgers([])) == []
    assert list(await store.ledgers([ADA, BOB])) == [Ledger(), Ledger()]
    assert list(await store.spend([])) == []


@BOTH
async def test_a_debit_is_booked_in_every_column_of_its_account(
    store: Store, account: Account
) -> None:
    assert await spend(store, account=account) == Debited(True, ledger(account, ONE))
    assert await spend(store, account=account) == Debited(True, ledger(account, TWO))
    assert await spent(store) == ledger(account, TWO)
    assert await spent(store, BOB) == Ledger()


async def test_the_accounts_of_a_principal_are_apart(store: Store) -> None:
    limit = Limit(100, NEVER)
    assert (await spend(store, limit=limit)).granted
    assert not (await spend(store, limit=limit)).granted
    both = await spend(store, limit=limit, account=Account.FEEDBACK)
    assert both == Debited(True, Ledger(ONE, ONE))
    assert not (await spend(store, limit=limit, account=Account.FEEDBACK)).granted
    assert await spent(store) == Ledger(ONE, ONE)


@BOTH
@pytest.mark.parametrize(
    ("limit", "granted"),
    [
        (Limit(200, 10, 2), True),
        (Limit(200, 9, 2), True),
        (Limit(199, 10, 2), True),
        (Limit(199, 9, 2), False),
        (Limit(200, 10, 1), False),
        (Limit(200, NEVER, 2), True),
        (Limit(199, NEVER, 2), False),
        (Limit(NEVER, 10, 2), True),
        (Limit(NEVER, 9, 2), False),
        (Limit(NEVER, NEVER), False),
        (Limit(pico_delta=1), False),
        (Limit(), True),
    ],
)
async def test_a_total_is_admitted_by_either_rule(
    store: Store, account: Account, limit: Limit, granted: bool
) -> None:
    assert limit.admits(TWO) is granted
    await spend(store, account=account)
    expected = Debited(granted, ledger(account, TWO if granted else ONE))
    assert await spend(store, account=account, limit=limit) == expected
    assert await spent(store) == expected.ledger


async def test_a_charge_of_nothing_is_granted_whatever_the_limit(store: Store) -> None:
    nothing = Limit(NEVER, NEVER, 0)
    assert not (await spend(store, limit=nothing)).granted
    assert await spend(store, charge=Charge(), limit=nothing) == Debited(True, Ledger())
    await spend(store)
    assert await spend(store, charge=Charge(), limit=nothing) == Debited(True, Ledger(ONE))


async def test_columns_without_a_limit_saturate(store: Store) -> None:
    nearly = Charge(UNLIMITED - 1, UNLIMITED, 3)
    full = Charge(UNLIMITED, UNLIMITED, 4)
    assert (await spend(store, charge=nearly)).ledger.answers == nearly
    assert (await spend(store, charge=Charge(2, 5, 1))).ledger.answers == full
    assert (await spent(store)).answers == full


async def test_amounts_near_2_to_the_53_are_exact(store: Store) -> None:
    limit = Limit(UNLIMITED - 1, NEVER)
    assert (await spend(store, charge=Charge(UNLIMITED - 3), limit=limit)).granted
    for expected in (True, True, False):
        assert (await spend(store, charge=Charge(1), limit=limit)).granted is expected
    assert (await spent(store)).answers == Charge(UNLIMITED - 1)
    assert not (await spend(store, BOB, charge=Charge(UNLIMITED), limit=limit)).granted


async def test_many_are_debited_in_order_and_who_comes_twice_twice(store: Store) -> None:
    limit = Limit(250, NEVER)
    found = await store.spend([Debit(each, ONE, limit) for each in (ADA, BOB, ADA, EVE, ADA, BOB)])
    assert list(found) == [
        Debited(True, Ledger(ONE)),
        Debited(True, Ledger(ONE)),
        Debited(True, Ledger(TWO)),
        Debited(True, Ledger(ONE)),
        Debited(False, Ledger(TWO)),
        Debited(True, Ledger(TWO)),
    ]
    assert list(await store.ledgers([EVE, BOB, ADA])) == [Ledger(ONE), Ledger(TWO), Ledger(TWO)]


async def test_debiting_many_equals_debiting_one_by_one(store: Store) -> None:
    """Two sets of ledgers, the one debited together and the other singly."""
    rng = random.Random(7)

    def amount() -> int:
        return rng.choice([0, 1, 3, 100, 2**52, UNLIMITED - 1, UNLIMITED])

    def most() -> int:
        return rng.choice([NEVER, 0, 4, 250, 2**53 - 2, UNLIMITED])

    debits = [
        Debit(
            bytes([rng.randrange(6)]),
            Charge(amount(), amount(), amount()),
            Limit(most(), most(), rng.choice([0, 4, UNLIMITED])),
            rng.choice(list(Account)),
            rng.choice([None, None, b"m", b"n"]),
        )
        for _ in range(200)
    ]
    together = await store.spend([one._replace(principal=b"t" + one.principal) for one in debits])
    alone = [(await store.spend([one]))[0] for one in debits]
    assert list(together) == alone
    assert {each.granted for each in together if isinstance(each, Debited)} == {True, False}
    numbers = [bytes([number]) for number in range(6)]
    assert await store.ledgers([b"t" + each for each in numbers]) == await store.ledgers(numbers)


async def test_debits_are_made_when_called(store: Store) -> None:
    """Nothing awaits thousands of debits before the ledger is asked for: calls are not lazy."""
    principals = [b"%d" % (number % 1_300) for number in range(2_600)]
    debits = store.spend([Debit(each, ONE, Limit(100, NEVER)) for each in principals])
    assert (await spent(store, b"1299")).answers == ONE
    assert list(await debits) == [Debited(number < 1_300, Ledger(ONE)) for number in range(2_600)]


async def test_parallel_debits_are_exact(store: Store) -> None:
    limit = Limit(37 * 100, NEVER)
    attempts = [store.spend([Debit(ADA, ONE, limit)] * 3) for _ in range(100)]
    found = [each for attempt in attempts for each in await attempt]
    assert sum(isinstance(each, Debited) and each.granted for each in found) == 37
    assert (await spent(store)).answers.nano_epsilon == 37 * 100


@shared
async def test_several_processes_share_one_budget_exactly(place: Place) -> None:
    """N decisions for any number of workers: 4 processes of 150 attempts for a budget of 217."""
    assert place.url is not None
    budget = 217
    arguments = (place.url, place.namespace, str(budget), "150")
    workers = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.state.spender", *arguments),
            stdout=asyncio.subprocess.PIPE,
        )
        for _ in range(4)
    ]
    async with asyncio.timeout(PATIENCE):
        outputs = [(await worker.communicate())[0] for worker in workers]
    assert sum(int(output) for output in outputs) == budget
    assert (await spent(place.store, b"shared")).answers.nano_epsilon == budget


# Markers


async def test_a_marker_pays_once(store: Store) -> None:
    first = await spend(store, marker=b"m")
    again = await spend(store, marker=b"m")
    assert first == again == Debited(True, Ledger(ONE))
    assert (await spend(store, marker=b"n")).ledger.answers == TWO


async def test_a_marker_is_honoured_when_the_budget_is_gone(store: Store) -> None:
    limit = Limit(100, NEVER)
    assert (await spend(store, limit=limit, marker=b"m")).granted
    assert not (await spend(store, limit=limit)).granted
    assert (await spend(store, limit=limit, marker=b"m")).granted


async def test_a_refused_debit_leaves_no_marker(store: Store) -> None:
    assert not (await spend(store, limit=Limit(50, NEVER), marker=b"m")).granted
    assert await spend(store, marker=b"m") == Debited(True, Ledger(ONE))


async def test_a_marker_pays_for_one_charge_of_one_account_of_one_principal(store: Store) -> None:
    await spend(store, marker=b"m")
    assert (await spend(store, charge=Charge(900), marker=b"m")).ledger.answers == Charge(
        1000, 5, 1
    )
    other = await spend(store, account=Account.FEEDBACK, marker=b"m")
    assert other.ledger.feedback == ONE
    assert (await spend(store, BOB, marker=b"m")).ledger == Ledger(ONE)


async def test_a_marker_lapses_and_the_debit_stays(place: Place) -> None:
    store = place.store
    await spend(store, marker=b"brief", marker_ttl=1)
    await spend(store, marker=b"long", marker_ttl=600)
    await spend(store, BOB, marker=b"brief", marker_ttl=1)
    await place.elapse(1.2)
    assert (await spend(store, marker=b"long")).ledger.answers == TWO
    assert (await spend(store, marker=b"brief")).ledger.answers == Charge(300, 15, 3)
    assert list(await store.forget_markers(BOB)) == []
    assert await spent(store, BOB) == Ledger(ONE)


async def test_forgetting_markers_returns_them_and_keeps_the_ledger(store: Store) -> None:
    for marker in (b"m" * 32, b"n" * 32):
        await spend(store, marker=marker)
    await spend(store, charge=Charge(), marker=b"free")
    await spend(store, charge=Charge(1), marker=b"m" * 32)
    await spend(store, BOB, marker=b"bob")
    assert sorted(await store.forget_markers(ADA)) == [b"free", b"m" * 32, b"n" * 32]
    assert list(await store.forget_markers(ADA)) == []
    assert (await spent(store)).answers == Charge(201, 10, 2)
    assert list(await store.forget_markers(BOB)) == [b"bob"]
    # A forgotten marker pays nothing any more.
    assert (await spend(store, marker=b"m" * 32)).ledger.answers == Charge(301, 15, 3)


# What cannot be read, and what is refused


@shared
@pytest.mark.parametrize(
    "content",
    [
        *(b"x" * 23, b"x" * 25, b"\x00" * 47, b"\x00" * 49, b"\x00" * 104, b""),
        *(b"\xff" * 24, b"\x00\x20" + b"\x00" * 22, b"\x00" * 24 + b"\xff" * 24),
        None,
    ],
)
async def test_an_unreadable_ledger_is_its_own_error_and_the_others_are_debited(
    place: Place, server: Any, content: bytes | None
) -> None:
    """Accounts that no debit wrote; None stands for a key of another type."""
    key = StoreKeys(place.namespace).ledger(b"bad")
    if content is None:
        server.rpush(key, "x")
    else:
        server.hset(key, "l", content)
    before = server.dump(key)
    good, bad = Debit(b"good", ONE), Debit(b"bad", ONE)
    found = await place.store.spend([good, bad, good, bad._replace(marker=b"m")])
    assert [type(each) for each in found[1::2]] == [StoreDamaged] * 2
    assert list(found[::2]) == [Debited(True, Ledger(ONE)), Debited(True, Ledger(TWO))]
    (learned,) = await place.store.learn([record(principal=b"bad", charge=ONE)])
    assert isinstance(learned, StoreUnavailable)
    with pytest.raises(StoreUnavailable):
        await place.store.ledgers([b"good", b"bad"])
    assert server.dump(key) == before, "what cannot be read was written over"


@shared
async def test_a_ledger_that_lost_its_accounts_is_not_taken_for_an_empty_one(
    place: Place, server: Any
) -> None:
    key = StoreKeys(place.namespace).ledger(ADA)
    await spend(place.store)
    server.hdel(key, "l")
    before = server.dump(key)
    with pytest.raises(StoreDamaged):
        await spend(place.store)
    (learned,) = await place.store.learn([record(principal=ADA, charge=ONE)])
    assert isinstance(learned, StoreUnavailable)
    assert server.dump(key) == before


@shared
async def test_flushed_scripts_lose_no_entry_and_double_none(place: Place, server: Any) -> None:
    server.script_flush()
    found = await place.store.spend([Debit(b"%d" % (n % 700), ONE) for n in range(1_400)])
    assert all(isinstance(each, Debited) and each.granted for each in found)
    ledgers = await place.store.ledgers([b"0", b"350", b"699"])
    assert [each.answers for each in ledgers] == [TWO] * 3


@shared
async def test_another_client_sees_the_same_data_and_another_namespace_does_not(
    place: Place,
) -> None:
    assert place.url is not None
    await spend(place.store)
    for namespace, expected in ((place.namespace, Ledger(ONE)), ("elsewhere", Ledger())):
        other = open_store(place.url, namespace=namespace, timeout=60)
        await other.open()
        assert await spent(other) == expected
        await other.close()


async def test_a_ping_is_answered(store: Store) -> None:
    assert await store.ping() is None


@pytest.mark.parametrize(
    ("method", "arguments", "culprit"),
    [
        ("spend", ([Debit(ADA, ONE), Debit(b"", ONE)],), "principal"),
        ("spend", ([Debit(ADA, ONE), Debit("ada", ONE)],), "principal"),  # type: ignore[arg-type]
        ("spend", ([Debit(ADA, ONE), Debit(ADA, ONE, marker=b"")],), "marker"),
        ("spend", ([Debit(ADA, ONE, marker=b"m", marker_ttl=0)],), "marker_ttl"),
        ("ledgers", ([b"x" * 129],), "principals"),
        ("ledgers", ([ADA] * 9,), "principals"),
        ("forget_markers", (b"",), "principal"),
    ],
)
async def test_bad_arguments_are_named_at_the_call_and_nobody_is_debited(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    arguments: tuple[Any, ...],
    culprit: str,
) -> None:
    monkeypatch.setattr(checks, "MOST_NAMES", 8)
    call: Callable[..., Any] = getattr(store, method)
    with pytest.raises(InvalidArgument) as caught:
        call(*arguments)
    assert caught.value.argument == culprit
    assert await spent(store) == Ledger()
