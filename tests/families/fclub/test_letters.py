"""Letters: each observation in one of them, paid first, whatever fails in between."""

import asyncio
import json
import random
from collections.abc import Awaitable
from typing import Any

import numpy as np
import pytest
from discreet.families.fclub.desk import load_desk
from discreet.families.fclub.sent import close_record, open_record, read_sent
from discreet.families.fclub.users import read_users
from discreet.watching import MANY, OPERATIONS

from discreet.decisions.clients import erase_client
from discreet.errors import InvalidArgument, StoreUnavailable
from discreet.families.fclub import mail
from discreet.families.fclub.document import FederatedClustersDocument
from discreet.privacy.charges import Charge, Limit
from discreet.state.memory import MemoryStore
from tests.families.fclub.servers import LOCAL, NAME, Server, Wire

pytestmark = pytest.mark.anyio

EXACT = LOCAL | {"sharing": {"mode": "none", "first_letter": 20}}
NOISY = LOCAL | {"sharing": {"epsilon": 1.0, "delta": 1e-6, "first_letter": 20}}
RIGHT = np.array([0.5, 0.0])
LEFT = np.array([-0.5, 0.0])


async def exact_total(server: Server) -> list[int]:
    users = await read_users(server.runtime, await server.found())
    return users.steps.sum(axis=0).tolist()


def kept(hub: Server) -> list[tuple[list[int], list[int]]]:
    """Every letter that the global server has: members and steps."""
    letters = []
    for content in hub.store._pages.values():
        place = 0
        while place < len(content):
            size = int.from_bytes(content[place : place + 4], "big")
            *_, members, steps = json.loads(content[place + 4 : place + 4 + size])
            letters.append((members, steps))
            place += 4 + size
    return letters


def total(letters: list[tuple[list[int], list[int]]]) -> list[int]:
    return np.array([steps for _, steps in letters]).sum(axis=0).tolist()


async def test_a_letter_is_written_once_there_is_enough(
    shop: Server, hub: Server, wire: Wire
) -> None:
    await shop.put(**NOISY)
    rng = np.random.default_rng(1)
    await shop.play("ada", RIGHT, 19, rng)
    assert not await shop.cycle()
    await shop.play("ada", RIGHT, 6, rng)
    assert await shop.cycle()
    ((members, steps),) = kept(hub)
    assert members == [0]
    assert steps[0] == 25
    exact = await exact_total(shop)
    # Noise of deviation above 5 million steps is 0 with probability below 1e-7 in each of five.
    assert all(noisy != true for noisy, true in zip(steps[1:], exact[1:], strict=True))
    for _ in range(3):
        await shop.cycle()
    assert len(wire.letters()) == 1
    desk = await load_desk(shop.runtime, await shop.found())
    assert (desk.next, desk.waiting, desk.draft) == (1, (), None)


async def test_every_observation_is_in_exactly_one_letter(shop: Server, hub: Server) -> None:
    await shop.put(**EXACT)
    rng = np.random.default_rng(2)
    written = []
    for _ in range(8):
        for client, theta in (("ada", RIGHT), ("bob", LEFT), ("cyd", RIGHT)):
            await shop.play(client, theta, 15, rng)
        await shop.cycle()
        await hub.cycle()
        await shop.cycle()
        written.append(len(kept(hub)))
    # Introductions at 30 each, then again when as much has come as was sent.
    assert written == sorted(written)
    assert written[-1] >= 5
    letters = kept(hub)
    counts = sum(steps[0] for _, steps in letters)
    exact = await exact_total(shop)
    assert counts <= exact[0] == 360
    await shop.put(**EXACT | {"sharing": {**EXACT["sharing"], "growth": 0.01}})
    await shop.cycle()
    # What is left over is fewer than a first letter's worth for any group.
    left = np.array(exact) - np.array(total(kept(hub)))
    assert 0 <= left[0] < 60


async def test_users_whom_the_global_server_joins_share_letters(shop: Server, hub: Server) -> None:
    await shop.put(**EXACT)
    rng = np.random.default_rng(3)
    for client, theta in (("ada", RIGHT), ("bob", LEFT), ("cyd", RIGHT), ("dan", LEFT)):
        await shop.play(client, theta, 200, rng)
    await shop.cycle()
    assert sorted(len(members) for members, _ in kept(hub)) == [1, 1, 1, 1]
    await hub.cycle()
    await shop.cycle()
    for client, theta in (("ada", RIGHT), ("bob", LEFT), ("cyd", RIGHT), ("dan", LEFT)):
        await shop.play(client, theta, 250, rng)
    await shop.cycle()
    together = [set(members) for members, _ in kept(hub)[4:]]
    assert len(together) == 2
    assert {len(members) for members in together} == {2}
    assert total(kept(hub)) == await exact_total(shop)


async def test_an_account_is_debited_before_a_letter_is_kept_or_sent(
    hub: Server, wire: Wire
) -> None:
    order: list[str] = []

    class Noting(MemoryStore):
        def spend(self, **arguments: Any) -> Awaitable[Any]:
            order.append("paid")
            assert arguments["charge"] == Charge(1_000_000_000, arguments["charge"].nano_rho, 10**6)
            assert arguments["limit"] == Limit(nano_epsilon=1_000_000_000, pico_delta=10**6)
            return super().spend(**arguments)

        def save(self, **arguments: Any) -> Awaitable[Any]:
            order.append("kept")
            return super().save(**arguments)

        def write_page(self, **arguments: Any) -> Awaitable[Any]:
            order.append("noted")
            return super().write_page(**arguments)

    class Sending(Wire):
        async def post(self, **arguments: Any) -> tuple[int, bytes]:
            order.append("sent" if b"letters" in arguments["content"] else "asked")
            return await super().post(**arguments)

    server = await Server(Noting(), Sending("shop-a", wire.to)).open()
    await server.put(**NOISY)
    rng = np.random.default_rng(4)
    for client in ("ada", "bob"):
        await server.play(client, RIGHT, 25, rng)
    order.clear()
    await server.cycle()
    assert order == ["paid", "paid", "kept", "noted", "kept", "sent", "kept", "asked"]


async def test_an_account_admits_one_letter(shop: Server) -> None:
    recommender = await shop.found()
    charge, limit = recommender.privatizer.charge, recommender.letter_limit
    for granted in (True, False):
        account = await shop.store.spend(principal=b"x", charge=charge, limit=limit)
        assert account.granted is granted


async def test_while_letters_wait_none_is_written(shop: Server, hub: Server, wire: Wire) -> None:
    await shop.put(**EXACT)
    rng = np.random.default_rng(5)
    wire.dead = True
    await shop.play("ada", RIGHT, 25, rng)
    await shop.cycle()
    await shop.play("bob", LEFT, 500, rng)
    await shop.play("ada", RIGHT, 500, rng)
    for _ in range(3):
        await shop.cycle()
    desk = await load_desk(shop.runtime, await shop.found())
    assert [one.steps[0] for one in desk.waiting] == [25]
    assert kept(hub) == []
    wire.dead = False
    for _ in range(3):
        await shop.cycle()
    # What gathered meanwhile came in one letter each.
    assert sorted(steps[0] for _, steps in kept(hub)) == [25, 500, 500]
    assert total(kept(hub)) == await exact_total(shop)


async def test_a_letter_whose_receipt_was_lost_counts_once(
    shop: Server, hub: Server, wire: Wire
) -> None:
    await shop.put(**NOISY)
    wire.deaf = True
    await shop.play("ada", RIGHT, 25, np.random.default_rng(6))
    for _ in range(3):
        await shop.cycle()
    wire.deaf = False
    await shop.cycle()
    sent = wire.letters()
    assert len(sent) == 4
    assert all(one == sent[0] for one in sent)
    assert len(kept(hub)) == 1
    assert (await load_desk(shop.runtime, await shop.found())).waiting == ()


class Failing(MemoryStore):
    """Fails once, at an operation of the background work: before it is done, or after."""

    def __init__(self) -> None:
        super().__init__()
        self.at = -1
        self.afterwards = False
        self.count = 0


class Lost:
    def __await__(self) -> Any:
        yield from ()
        raise StoreUnavailable("gone")


def _failing(name: str) -> Any:
    def call(self: Failing, **arguments: Any) -> Awaitable[Any]:
        answer: Awaitable[Any]
        perform = getattr(MemoryStore, name)
        self.count += 1
        failing = self.count == self.at
        answer = Lost() if failing else perform(self, **arguments)
        if failing and self.afterwards:
            perform(self, **arguments)
        return answer

    return call


for _name in (*OPERATIONS, *MANY):
    setattr(Failing, _name, _failing(_name))


@pytest.mark.parametrize("afterwards", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("document", [EXACT, NOISY], ids=["exact", "noisy"])
async def test_wherever_it_stops_nothing_is_sent_twice_or_lost(
    hub: Server, document: dict[str, Any], afterwards: bool
) -> None:
    """The store fails at each operation of a cycle in turn; another process goes on."""
    rng = np.random.default_rng(7)
    at, finished = 0, False
    while not finished:
        at += 1
        store = Failing()
        wire = Wire(f"shop-{at}", lambda: hub.runtime)
        server = await Server(store, wire).open()
        await server.put(**{**document, "sharing": {**document["sharing"], "first_letter": 5}})
        for client, theta in (("ada", RIGHT), ("bob", LEFT)):
            await server.play(client, theta, 6, rng)
        store.at, store.count, store.afterwards = at, 0, afterwards
        try:
            await server.cycle()
            finished = store.count < at
        except StoreUnavailable:
            pass
        store.at = -1
        again = await Server(store, wire).open()
        # The lease of the one that stopped runs out.
        store._leases.remove((await again.found()).key(b"lease"))
        for _ in range(3):
            await again.cycle()
        by_sequence: dict[int, set[str]] = {}
        for letter in wire.letters():
            by_sequence.setdefault(letter["sequence"], set()).add(json.dumps(letter))
        assert all(len(versions) == 1 for versions in by_sequence.values()), at
        letters = [
            (one["members"], one["steps"])
            for one in {one["sequence"]: one for one in wire.letters()}.values()
        ]
        assert sorted(members for members, _ in letters) == [[0], [1]], at
        assert [steps[0] for _, steps in letters] == [6, 6], at
        if document is EXACT:
            assert total(letters) == await exact_total(again), at
    assert at > 8


class Pausing(MemoryStore):
    """Answers after the others have had a few turns, how many is drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = random.Random(17)
        self.too_late = 0


def _pausing(name: str) -> Any:
    def call(self: Pausing, **arguments: Any) -> Awaitable[Any]:
        async def later() -> Any:
            for _ in range(self.turns.randrange(6)):
                await asyncio.sleep(0)
            answer = await getattr(MemoryStore, name)(self, **arguments)
            for _ in range(self.turns.randrange(6)):
                await asyncio.sleep(0)
            self.too_late += name == "save" and answer is None
            return answer

        return asyncio.ensure_future(later())

    return call


for _name in (*OPERATIONS, *MANY):
    setattr(Pausing, _name, _pausing(_name))


async def test_workers_that_all_believe_to_hold_the_lease_do_no_harm(
    hub: Server, wire: Wire
) -> None:
    """Their steps interleave; what is in letters and what is left are all there was, exactly."""
    store = Pausing()
    workers = [await Server(store, wire).open() for _ in range(3)]
    await workers[0].put(**EXACT | {"sharing": {**EXACT["sharing"], "first_letter": 5}})
    for worker in workers:
        await worker.runtime.registry.refresh()
    rng = np.random.default_rng(8)
    for turn in range(8):
        for client, theta in (("ada", RIGHT), ("bob", LEFT)):
            await workers[0].play(client, theta, 6 + 10 * turn, rng)
        found = [(worker.runtime, await worker.found()) for worker in workers]
        await asyncio.gather(*(mail.exchange(*one) for one in found * 2))
    for _ in range(3):
        await mail.exchange(*found[0])
    letters = kept(hub)
    assert len(letters) > 6
    assert store.too_late > 3, "the workers hardly ever met"
    sent = await read_sent(*found[0])
    noted = sent.steps.sum(axis=0).tolist()
    assert total(letters) == noted
    assert (sent.steps[:, 0] <= (await read_users(*found[0])).steps[:, 0].max()).all()


async def test_one_worker_at_a_time(shop: Server, hub: Server) -> None:
    await shop.put(**EXACT)
    other = await Server(shop.store, shop.peers).open()
    await shop.play("ada", RIGHT, 25, np.random.default_rng(9))
    assert await shop.cycle()
    await shop.play("ada", RIGHT, 30, np.random.default_rng(9))
    assert not await other.cycle()
    assert len(kept(hub)) == 1
    assert await shop.cycle()
    assert len(kept(hub)) == 2


# Erasure


async def test_who_was_erased_begins_anew(shop: Server, hub: Server) -> None:
    await shop.put(**EXACT)
    rng = np.random.default_rng(10)
    await shop.play("ada", RIGHT, 30, rng)
    await shop.cycle()
    await shop.play("ada", RIGHT, 10, rng)
    assert (await erase_client(shop.runtime, client="ada")).records == 1
    assert await exact_total(shop) == [0] * 6
    await shop.cycle()
    await shop.play("ada", LEFT, 45, rng)
    await shop.cycle()
    (first, second) = kept(hub)
    assert first[1][0] == 30
    assert second[1] == await exact_total(shop)
    assert second[1][0] == 45


async def test_a_draft_from_before_an_erasure_is_thrown_away(shop: Server, hub: Server) -> None:
    await shop.put(**EXACT)
    rng = np.random.default_rng(11)
    recommender = await shop.found()
    erased = asyncio.Event()

    class Slow(MemoryStore):
        def save(self, **arguments: Any) -> Awaitable[Any]:
            answer = super().save(**arguments)
            if arguments["key"] == recommender.key(b"desk") and not erased.is_set():
                erased.set()
                return asyncio.ensure_future(self._meanwhile(answer))
            return answer

        async def _meanwhile(self, answer: Awaitable[Any]) -> Any:
            await erase_client(shop.runtime, client="ada")
            return await answer

    await shop.play("ada", RIGHT, 30, rng)
    shop.store.__class__ = Slow
    await shop.cycle()
    assert erased.is_set()
    await shop.cycle()
    assert kept(hub) == []
    await shop.play("ada", LEFT, 25, rng)
    await shop.cycle()
    assert [steps[0] for _, steps in kept(hub)] == [25]
    assert total(kept(hub)) == await exact_total(shop)


async def test_nothing_is_written_about_a_closed_record(shop: Server, hub: Server) -> None:
    """An erasure that stopped half-way: the sums may be old or new, and nobody can tell."""
    await shop.put(**EXACT)
    rng = np.random.default_rng(12)
    await shop.play("ada", RIGHT, 30, rng)
    await shop.cycle()
    recommender = await shop.found()
    await close_record(shop.runtime, recommender, 0)
    await shop.play("ada", RIGHT, 100, rng)
    for _ in range(2):
        await shop.cycle()
    assert len(kept(hub)) == 1
    # Another erasure does not open what the first one may still be about to erase.
    assert (await erase_client(shop.runtime, client="ada")).records == 1
    await shop.play("ada", RIGHT, 100, rng)
    await shop.cycle()
    assert len(kept(hub)) == 1
    assert (await shop.ask("ada")).items == ("right",)
    # Once the first is done as well, the user begins anew.
    await erase_client(shop.runtime, client="ada")
    await open_record(shop.runtime, recommender, 0)
    await shop.play("ada", RIGHT, 25, rng)
    await shop.cycle()
    assert [steps[0] for _, steps in kept(hub)] == [30, 25]


@pytest.mark.parametrize(
    ("sharing", "field"),
    [
        ({"epsilon": 3.0}, "sharing.epsilon"),
        ({"delta": 1e-3}, "sharing.delta"),
        ({"mode": "none"}, "sharing.mode"),
    ],
)
async def test_what_was_observed_under_one_promise_is_not_sent_under_another(
    shop: Server, sharing: dict[str, Any], field: str
) -> None:
    await shop.put(**NOISY)
    changed = FederatedClustersDocument.model_validate(
        {"algorithm": "fclub", **LOCAL, "sharing": NOISY["sharing"] | sharing}
    )
    with pytest.raises(InvalidArgument) as caught:
        await shop.runtime.registry.put(NAME, changed)
    assert caught.value.argument == field


async def test_removing_a_recommender_leaves_nothing_of_it(
    shop: Server, hub: Server, wire: Wire
) -> None:
    await shop.put(**NOISY)
    await shop.play("ada", RIGHT, 25, np.random.default_rng(13))
    for _ in range(2):
        await shop.cycle()
        await hub.cycle()
    assert shop.store._blobs
    assert hub.store._pages
    for server in (shop, hub):
        await server.runtime.registry.remove(NAME)
        store = server.store
        for held in (store._blobs, store._pages, store._rosters, store._cells):
            assert not held
        assert not any(store._indexes.values())
    assert sum(ledger.nano_epsilon for ledger in shop.store._ledgers.values()) == 10**9
