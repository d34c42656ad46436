"""What every store promises about windows and days: memory, embedded Valkey, cluster.

Nobody waits for a window to end: a ledger is moved to an earlier window, as if it had been debited
then, or to a later one, as if the store's clock had been turned back since.
"""

import asyncio
import struct
from pathlib import Path
from typing import Any

import pytest
import redis

from discreet.errors import InvalidArgument, StoreUnavailable
from discreet.privacy.charges import NEVER, UNLIMITED, Charge, Limit
from discreet.state.embedded import EmbeddedStore
from discreet.state.keys import StoreKeys
from discreet.state.ledgers import KEPT_DAYS, MOST_WINDOWS
from discreet.state.memory import MemoryStore
from discreet.state.redis_store import open_store
from discreet.state.stores import EXACT, Account, Debit, Debited, Ledger, Store
from discreet.state.urls import StoreKind, parse
from tests.state.places import ADA, BOB, ONE, Place, learn, record, released, shared, spend, spent

pytestmark = pytest.mark.anyio

MONTH = 30 * 86_400
THREE = Limit(300, NEVER)


def raw_client(place: Place) -> Any:
    """Return a plain client of the same server or cluster."""
    assert place.url is not None
    location = parse(place.url)
    if location.kind is StoreKind.CLUSTER:
        node = location.nodes[0]
        return redis.RedisCluster(host=node.host, port=node.port)
    return redis.Redis.from_url(place.url)


async def shift(place: Place, by: int, principal: bytes = ADA) -> None:
    """Move every window of a ledger by so many windows, behind the store's back."""
    if isinstance(place.store, MemoryStore):
        held = place.store._ledgers[principal]
        windows = [each._replace(number=each.number + by) for each in held.windows]
        place.store._ledgers[principal] = held._replace(windows=tuple(windows))
        return
    key = StoreKeys(place.namespace).ledger(principal)
    with raw_client(place) as server:
        stored = server.hget(key, "w")
        for at in range(0, len(stored), 56):
            (number,) = struct.unpack_from(">I", stored, at + 4)
            moved = struct.pack(">I", number + by)
            stored = stored[: at + 4] + moved + stored[at + 8 :]
        server.hset(key, "w", stored)


async def granted(store: Store, attempts: int, window: int = MONTH, **terms: Any) -> int:
    found = [await spend(store, limit=THREE, window=window, **terms) for _ in range(attempts)]
    return sum(one.granted for one in found)


def total(times: int) -> Charge:
    return Charge(100 * times, 5 * times, times)


async def test_a_window_pays_as_often_as_its_limit_and_the_next_one_again(place: Place) -> None:
    assert await granted(place.store, 5) == 3
    await shift(place, -1)
    assert await granted(place.store, 5) == 3
    ledger = await spent(place.store)
    assert ledger.answers == total(6), "what was ever spent is kept beside it"
    assert ledger.spent(Account.ANSWERS, MONTH) == total(3)


async def test_a_clock_that_is_turned_back_opens_no_window_again(place: Place) -> None:
    """The ledger is one window ahead of the clock, and stays there until the clock is too."""
    assert await granted(place.store, 5) == 3
    await shift(place, 1)
    ahead = (await spent(place.store)).window(MONTH)
    assert await granted(place.store, 5) == 0
    assert (await spent(place.store)).window(MONTH) == ahead
    found = await spend(place.store, limit=THREE, window=MONTH)
    assert (found.granted, found.ledger.window(MONTH)) == (False, ahead)


async def test_the_memory_stores_clock_may_go_back_and_forth() -> None:
    now = [10 * MONTH + 5.0]
    store = MemoryStore(clock=lambda: now[0])
    assert await granted(store, 5) == 3
    for moment in (9 * MONTH + 1.0, 10 * MONTH - 1.0, 0.0, 11 * MONTH - 0.001):
        now[0] = moment
        assert await granted(store, 2) == 0, moment
    now[0] = 11.0 * MONTH
    assert await granted(store, 5) == 3


async def test_accounts_have_windows_apart(place: Place) -> None:
    assert await granted(place.store, 4) == 3
    assert await granted(place.store, 4, account=Account.FEEDBACK) == 3
    await shift(place, -1)
    found = await spend(place.store, limit=THREE, window=MONTH, account=Account.FEEDBACK)
    assert found.ledger.spent(Account.ANSWERS, MONTH) == Charge()
    assert found.ledger.spent(Account.FEEDBACK, MONTH) == ONE


async def test_every_debit_goes_into_every_window_whoever_asks(place: Place) -> None:
    """Two limits on one ledger, of different lengths and one for ever, see all of it."""
    store, week = place.store, 7 * 86_400
    assert (await spend(store, limit=THREE, window=week)).granted
    assert (await spend(store, limit=THREE, window=MONTH)).granted
    assert (await spend(store, limit=THREE)).granted
    for window in (week, MONTH, 0):
        assert not (await spend(store, limit=THREE, window=window)).granted
        assert (await spent(store)).spent(Account.ANSWERS, window) == total(3)


async def test_a_window_that_is_new_to_a_ledger_begins_with_all_that_was_spent(
    place: Place,
) -> None:
    """It is not known when that was: a document that gets a window gives nobody a fresh budget."""
    assert [(await spend(place.store)).granted for _ in range(2)] == [True, True]
    assert await granted(place.store, 3) == 1
    await shift(place, -1)
    assert await granted(place.store, 4) == 3


async def test_what_is_booked_as_unlimited_is_so_in_every_window(place: Place) -> None:
    await spend(place.store, charge=EXACT, window=MONTH)
    await shift(place, -1)
    assert await granted(place.store, 2) == 0
    await shift(place, -1)
    found = await spend(place.store, limit=THREE, window=MONTH)
    assert found.ledger.spent(Account.ANSWERS, MONTH).nano_epsilon == UNLIMITED
    assert await granted(place.store, 1, account=Account.FEEDBACK) == 1


async def test_what_has_no_epsilon_of_its_own_is_over_with_its_window(place: Place) -> None:
    """Gaussian noise is booked in rho alone; the next window knows both rules again."""
    await spend(place.store, charge=Charge(UNLIMITED, 7), window=MONTH)
    assert await granted(place.store, 1) == 0
    await shift(place, -1)
    assert await granted(place.store, 4) == 3


async def test_a_debit_of_nothing_shows_the_window_and_stores_nothing(place: Place) -> None:
    found = await spend(place.store, charge=Charge(), window=MONTH)
    window = found.ledger.window(MONTH)
    assert window is not None
    assert window.ends_at == (window.number + 1) * MONTH
    assert found.ledger._replace(windows=()) == Ledger()
    assert await spent(place.store) == Ledger()


async def test_a_ledger_keeps_a_few_windows_and_forgetting_one_gains_nothing(
    place: Place,
) -> None:
    assert await granted(place.store, 3) == 3
    for length in range(MOST_WINDOWS):
        await spend(place.store, charge=Charge(1), window=MONTH + 1 + length)
    ledger = await spent(place.store)
    assert len(ledger.windows) == MOST_WINDOWS
    assert ledger.window(MONTH) is None
    assert await granted(place.store, 1) == 0


async def test_parallel_debits_after_a_window_has_ended_are_exact(place: Place) -> None:
    assert await granted(place.store, 3) == 3
    await shift(place, -1)
    terms = Debit(ADA, ONE, Limit(37 * 100, NEVER), window=MONTH)
    attempts = [place.store.spend([terms] * 3) for _ in range(100)]
    found = [each for attempt in attempts for each in await attempt]
    assert sum(isinstance(each, Debited) and each.granted for each in found) == 37
    assert (await spent(place.store)).spent(Account.ANSWERS, MONTH) == total(37)
    assert (await spent(place.store)).answers == total(40)


@shared
async def test_several_connections_share_one_window_exactly(place: Place) -> None:
    assert place.url is not None
    others = [open_store(place.url, namespace=place.namespace, timeout=20) for _ in range(3)]
    stores = [place.store, *others]
    for other in others:
        await other.open()
    try:
        assert await granted(place.store, 3) == 3
        await shift(place, -1)
        terms = Debit(ADA, ONE, Limit(50 * 100, NEVER), window=MONTH)
        attempts = [one.spend([terms] * 5) for _ in range(10) for one in stores]
        found = [each for attempt in await asyncio.gather(*attempts) for each in attempt]
        assert sum(isinstance(each, Debited) and each.granted for each in found) == 50
    finally:
        for other in others:
            await other.close()


async def test_a_window_survives_a_restart(tmp_path: Path) -> None:
    for expected in (3, 0):
        with EmbeddedStore(tmp_path) as url:
            store = open_store(url, timeout=20)
            await store.open()
            assert await granted(store, 5) == expected
            await store.close()


# Feedback


async def test_records_of_one_release_are_counted_on_where_a_window_ends(place: Place) -> None:
    """Three records share one noise, whatever the window: together they cost nine times."""
    for number in range(3):
        terms = {"charge": ONE, "claim": b"%d" % number}
        one = record(**terms)._replace(window=MONTH)  # type: ignore[arg-type]
        assert (await learn(place.store, one)).price == Charge(100, 5 * (2 * number + 1), 1)
        if number == 1:
            await shift(place, -1)
    ledger = await spent(place.store)
    assert ledger.feedback.nano_rho == 9 * 5
    assert ledger.spent(Account.FEEDBACK, MONTH).nano_rho == 5 * 5


async def test_feedback_that_its_window_does_not_admit_is_not_added(place: Place) -> None:
    def terms(number: int) -> Any:
        one = record(claim=b"%d" % number, charge=ONE, limit=Limit(NEVER, 4 * 5))
        return one._replace(window=MONTH)

    added = [(await learn(place.store, terms(number))).added for number in range(4)]
    assert added == [True, True, False, False]
    await shift(place, -1)
    # Two are counted since the last release, so the next costs five times: more than there is.
    assert not (await learn(place.store, terms(4))).added
    assert await released(place.store, 1) == {b"block}": [2]}
    assert (await learn(place.store, terms(5))).added


# Days


async def test_what_is_spent_is_kept_by_day_account_and_purpose(place: Place) -> None:
    store = place.store
    for purpose in (b"films", b"films", b"books"):
        await spend(store, purpose=purpose)
    await spend(store, charge=Charge(), purpose=b"nothing")
    await spend(store, limit=Limit(1, 1), purpose=b"refused")
    await learn(store, record(charge=ONE)._replace(purpose=b"films"))
    await learn(store, record(charge=ONE)._replace(purpose=b"films"))
    found = await store.days(ADA)
    assert len({one.day for one in found}) == 1
    assert [one[1:] for one in found] == [
        (Account.ANSWERS, b"books", 1, ONE),
        (Account.ANSWERS, b"films", 2, total(2)),
        (Account.FEEDBACK, b"films", 1, ONE),
    ]
    assert list(await store.days(BOB)) == []


async def test_days_that_are_long_past_are_dropped(place: Place) -> None:
    store = place.store
    await spend(store, purpose=b"films")
    (today,) = await store.days(ADA)
    for back in (1, KEPT_DAYS - 1, KEPT_DAYS, KEPT_DAYS + 400):
        _write_day(place, today.day, back)
    assert len(await store.days(ADA)) == 5
    await spend(store, purpose=b"books")
    kept = {today.day - one.day for one in await store.days(ADA)}
    assert kept == {0, 1, KEPT_DAYS - 1}


def _write_day(place: Place, today: int, back: int) -> None:
    """Write the entry of an earlier day, behind the store's back."""
    if isinstance(place.store, MemoryStore):
        days = place.store._days[ADA]
        one = next(iter(days.values()))._replace(day=today - back)
        days[one.day, one.account, one.purpose] = one
        return
    key = StoreKeys(place.namespace).ledger(ADA)
    with raw_client(place) as server:
        name, value = next(each for each in server.hgetall(key).items() if each[0][:1] == b"d")
        server.hset(key, b"d" + struct.pack(">I", today - back) + name[5:], value)


async def test_days_saturate_and_can_be_forgotten(place: Place) -> None:
    store = place.store
    for _ in range(2):
        await spend(store, charge=EXACT, purpose=b"films")
    (day,) = await store.days(ADA)
    assert (day.uses, day.charge) == (2, EXACT)
    await store.forget_days(ADA)
    await store.forget_days(ADA)
    assert list(await store.days(ADA)) == []
    assert (await spent(store)).answers == EXACT, "the ledger stays"


# What no store takes


@pytest.mark.parametrize("window", [-1, 2**40, 1.5, True])
async def test_a_window_is_a_number_of_seconds(store: Store, window: Any) -> None:
    with pytest.raises(InvalidArgument):
        await spend(store, window=window)


@shared
@pytest.mark.parametrize(
    "stored",
    [
        b"\0",
        b"\0" * 55,
        b"\0" * 56,
        struct.pack(">2I6q", 60, 1, 0, 0, 0, 0, 0, -1),
        struct.pack(">2I6q", 60, 1, 2**53, 0, 0, 0, 0, 0),
    ],
)
async def test_a_ledger_whose_windows_cannot_be_read_releases_nothing(
    place: Place, stored: bytes
) -> None:
    with raw_client(place) as server:
        server.hset(StoreKeys(place.namespace).ledger(ADA), "w", stored)
    with pytest.raises(StoreUnavailable):
        await spend(place.store)
    with pytest.raises(StoreUnavailable):
        await learn(place.store, record(charge=ONE))
    with pytest.raises(StoreUnavailable):
        await spent(place.store)
