"""What many at once must not do to each other: an entry's fault is its own."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from discreet.errors import InvalidArgument, StoreUnavailable
from discreet.privacy.charges import Charge, Limit
from discreet.state import checks
from discreet.state.keys import Keys
from discreet.state.stores import Account, Claim, Learned, Learning, Store
from discreet.state.urls import Kind, parse
from tests.state.places import Place

pytestmark = pytest.mark.anyio

ADA = b"ada}{".ljust(32, b"}")
ONE = Charge(nano_epsilon=100, nano_rho=5, pico_delta=1)
shared = pytest.mark.parametrize("place", ["embedded", "cluster"], indirect=True)
"""Nobody can meddle with memory from outside."""


@pytest.fixture
def meddler(place: Place) -> Iterator[Any]:
    """Yield a plain client of the same server or cluster, to write what no store writes."""
    assert place.url is not None
    location = parse(place.url)
    if location.kind is Kind.CLUSTER:
        node = location.nodes[0]
        client: Any = redis.RedisCluster(host=node.host, port=node.port)
    else:
        client = redis.Redis.from_url(place.url)
    with client:
        yield client


def learning(address: bytes, claim: bytes = b"c", reward: int = 1) -> Learning:
    return Learning(address, [(0, 1)], claim, reward, 60)


# What cannot be read

LEDGERS = [b"x" * 23, b"x" * 25, b"", b"\xff" * 24, b"\x00\x20" + b"\x00" * 22, None]
"""Strings that no debit wrote; None stands for a key of another type."""


def corrupt(meddler: Any, key: bytes, content: bytes | None) -> Any:
    if content is None:
        meddler.rpush(key, "x")
    else:
        meddler.set(key, content)
    return meddler.dump(key)


@shared
@pytest.mark.parametrize("content", LEDGERS)
async def test_an_unreadable_ledger_is_its_own_error_and_the_others_are_debited(
    place: Place, meddler: Any, content: bytes | None
) -> None:
    key = Keys(place.namespace).ledger(b"bad")
    before = corrupt(meddler, key, content)
    accounts = await place.store.spend_each(
        principals=[b"good", b"bad", b"good", b"bad", b"last"], charge=ONE, limit=Limit()
    )
    assert [type(each) for each in accounts[1::2]] == [StoreUnavailable] * 2
    assert list(accounts[::2]) == [
        Account(True, ONE),
        Account(True, Charge(200, 10, 2)),
        Account(True, ONE),
    ]
    assert meddler.dump(key) == before, "what cannot be read was written over"


@shared
@pytest.mark.parametrize("content", [b"x" * 7, b"x" * 9, b"x" * 1_001, None])
async def test_an_unreadable_cell_is_its_own_error_and_the_others_are_read(
    place: Place, meddler: Any, content: bytes | None
) -> None:
    corrupt(meddler, Keys(place.namespace).cell(b"bad"), content)
    await place.store.learn(**learning(b"good")._asdict())
    sums, failed = await place.store.read_rows(
        addresses=[b"bad", b"good", b"absent", b"bad", b"good"], fields=2
    )
    assert {place: type(error) for place, error in failed.items()} == {
        0: StoreUnavailable,
        3: StoreUnavailable,
    }
    assert sums.tolist() == [[0, 0], [1, 0], [0, 0], [0, 0], [1, 0]]


@shared
async def test_an_empty_cell_is_read_as_nothing(place: Place, meddler: Any) -> None:
    meddler.set(Keys(place.namespace).cell(b"empty"), b"")
    sums, failed = await place.store.read_rows(addresses=[b"empty"], fields=2)
    assert (sums.tolist(), failed) == ([[0, 0]], {})


@shared
@pytest.mark.parametrize("content", [b"x" * 7, b"nine bytes", None])
async def test_an_unreadable_cell_learns_nothing_and_the_others_do(
    place: Place, meddler: Any, content: bytes | None
) -> None:
    keys = Keys(place.namespace)
    before = corrupt(meddler, keys.cell(b"bad"), content)
    outcomes = await place.store.learn_each(
        learnings=[learning(b"good"), learning(b"bad"), learning(b"good", b"d")]
    )
    assert outcomes[0] == Learned(Claim.COUNTED, 1)
    assert isinstance(outcomes[1], StoreUnavailable)
    assert outcomes[2] == Learned(Claim.COUNTED, 2)
    assert meddler.dump(keys.cell(b"bad")) == before
    assert not meddler.exists(keys.claim(b"bad", b"c"))


@shared
async def test_flushed_scripts_lose_no_entry_and_double_none(place: Place, meddler: Any) -> None:
    meddler.script_flush()
    principals = [b"%d" % (number % 700) for number in range(1_400)]
    accounts = await place.store.spend_each(principals=principals, charge=ONE, limit=Limit())
    assert all(isinstance(each, Account) and each.granted for each in accounts)
    for number in (0, 350, 699):
        assert await place.store.balance(principal=b"%d" % number) == Charge(200, 10, 2)


# What is refused at the call


@pytest.mark.parametrize(
    ("principals", "most"),
    [([ADA, b""], 9), ([ADA, "text"], 9), ([ADA, b"x" * 129], 9), ([ADA] * 3, 2)],
)
async def test_nobody_is_debited_beside_a_principal_that_cannot_be(
    store: Store, monkeypatch: pytest.MonkeyPatch, principals: list[Any], most: int
) -> None:
    monkeypatch.setattr(checks, "MOST_NAMES", most)
    with pytest.raises(InvalidArgument) as caught:
        store.spend_each(principals=principals, charge=ONE, limit=Limit())
    assert caught.value.argument == "principals"
    assert await store.balance(principal=ADA) == Charge()


@pytest.mark.parametrize(
    ("addresses", "fields", "culprit"),
    [
        ([ADA, b""], 1, "addresses"),
        ([ADA, None], 1, "addresses"),
        ([ADA], 0, "fields"),
        ([ADA], -1, "fields"),
        ([ADA], True, "fields"),
        ([ADA], 2.0, "fields"),
        ([], checks.MOST_FIELDS + 1, "fields"),
    ],
)
async def test_rows_that_cannot_be_asked_for_are_named_at_the_call(
    store: Store, addresses: list[Any], fields: Any, culprit: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        store.read_rows(addresses=addresses, fields=fields)
    assert caught.value.argument == culprit


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        ({"address": b""}, "address"),
        ({"claim": b""}, "claim"),
        ({"increments": [(0, 2**63)]}, "increments"),
        ({"increments": [(-1, 1)]}, "increments"),
        ({"reward": True}, "reward"),
        ({"reward": 2**63}, "reward"),
        ({"claim_ttl": 0}, "claim_ttl"),
    ],
)
async def test_nothing_is_learned_beside_what_cannot_be(
    store: Store, change: dict[str, Any], culprit: str
) -> None:
    good, bad = learning(b"a"), learning(b"a", b"d")._replace(**change)
    with pytest.raises(InvalidArgument) as caught:
        store.learn_each(learnings=[good, bad])
    assert caught.value.argument == culprit
    assert (await store.read(addresses=[b"a"]))[0].tolist() == []
    assert await store.learn(**good._asdict()) == Learned(Claim.COUNTED, 1)
