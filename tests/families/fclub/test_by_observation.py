"""Releases that protect an observation: each is in one noisy update, whatever happens between."""

from typing import Any

import numpy as np
import pytest

from discreet.audit.scripted_noise import ConstantNoise
from discreet.families.fclub.by_observation import (
    MOST_UPDATES,
    ObservationModel,
    ObservationReading,
    ReportedSums,
)
from discreet.families.fclub.evidence import Knowledge
from discreet.families.fclub.recommender import ClusterRecommender
from discreet.families.fclub.sync.local_server import Deliveries
from discreet.families.fclub.sync.merged_model import MergedModel, MergedModelStore
from discreet.state.principals import DIGEST_BYTES
from tests.families.fclub.servers import (
    BY_OBSERVATION,
    LEFT,
    RIGHT,
    UNPROTECTED,
    answer,
    built,
    local,
    own_sums,
    play,
    release,
    total_sums,
)

pytestmark = pytest.mark.anyio


def server(privacy: dict[str, Any] = UNPROTECTED, **changes: Any) -> ClusterRecommender:
    """A server whose updates are exact, so that a test can add them up."""
    return built(local(privacy=privacy, **{"sharing": {"first_update": 20}, **changes}))


def reading(shop: ClusterRecommender) -> ObservationReading:
    assert isinstance(shop.reading, ObservationReading)
    return shop.reading


def model(shop: ClusterRecommender) -> ObservationModel:
    found = shop.current.model
    assert isinstance(found, ObservationModel)
    return found


def written(shop: ClusterRecommender) -> list[tuple[int, tuple[int, ...], int]]:
    """Of every total: its number, its members, and how many observations it is about."""
    return [(one.number, one.update.members, one.update.count) for one in model(shop).updates]


def sums_written(shop: ClusterRecommender) -> list[int]:
    total = np.zeros(6, dtype=np.int64)
    for one in model(shop).updates:
        total += one.update.steps
    steps: list[int] = total.tolist()
    return steps


async def deliver(shop: ClusterRecommender) -> None:
    """Let the global server have all updates."""
    deliveries = Deliveries(shop.store, shop.key(b"delivered"))
    await deliveries.save(model(shop).next_number)


async def tell(shop: ClusterRecommender, groups: dict[int, int], clusters: int = 1) -> None:
    """Let the global server say who is alike."""
    nothing = Knowledge.nothing(dimensions=2, pieces=clusters)
    merged = MergedModel(1, nothing, np.ones(clusters), groups)
    await MergedModelStore(shop.store, shop.key(b"merged"), 2).save(merged.encode())


async def test_an_update_is_written_once_there_is_enough() -> None:
    shop = server()
    rng = np.random.default_rng(1)
    await play(shop, "ada", RIGHT, 19, rng)
    await release(shop)
    assert written(shop) == []
    await play(shop, "ada", RIGHT, 6, rng)
    await release(shop)
    assert written(shop) == [(0, (0,), 25)]
    assert sums_written(shop) == await own_sums(shop, "ada")
    await deliver(shop)
    await release(shop)
    assert written(shop) == [(0, (0,), 25)]


async def test_noise_is_on_everything_but_the_count_and_as_much_as_was_promised() -> None:
    shop = server(BY_OBSERVATION)
    await play(shop, "ada", RIGHT, 25, np.random.default_rng(2))
    noise = ConstantNoise(3)
    await release(shop, noise)
    rule = reading(shop).rule.privatizer
    assert (rule.epsilon, rule.delta) == (1.0, 1e-6)
    assert noise.gaussian == [rule.gram_scale * 2**20] * 5
    difference = np.array(sums_written(shop)) - await own_sums(shop, "ada")
    assert difference.tolist() == [0, 3, 3, 3, 3, 3]
    assert model(shop).updates[0].update.deviation == rule.gram_scale


async def test_a_total_that_grows_has_the_noise_of_all_its_parts() -> None:
    shop = server(BY_OBSERVATION)
    rng = np.random.default_rng(3)
    for _ in range(2):
        await play(shop, "ada", RIGHT, 25, rng)
        await release(shop, ConstantNoise(3))
        await deliver(shop)
    assert written(shop) == [(1, (0,), 50)]
    difference = np.array(sums_written(shop)) - await own_sums(shop, "ada")
    assert difference.tolist() == [0, 6, 6, 6, 6, 6]
    scale = reading(shop).rule.privatizer.gram_scale
    assert model(shop).updates[0].update.deviation == pytest.approx(scale * 2**0.5)


async def test_every_observation_is_in_exactly_one_update() -> None:
    shop = server()
    rng = np.random.default_rng(4)
    numbers = set()
    for turn in range(8):
        for client, theta in (("ada", RIGHT), ("bob", LEFT), ("cyd", RIGHT)):
            await play(shop, client, theta, 15, rng)
        await release(shop)
        await deliver(shop)
        await tell(shop, {0: 0, 1: 0} if turn < 4 else {0: 0, 1: 1, 2: 0}, clusters=2)
        numbers |= {number for number, *_ in written(shop)}
        covered = model(shop).reported.covered.sum(axis=0)
        assert sums_written(shop) == covered.tolist()
    assert numbers == set(range(model(shop).next_number))
    left = np.array(await total_sums(shop)) - sums_written(shop)
    # Whoever is left over has less than was sent about them.
    assert 0 <= left[0] <= 180


async def test_users_whom_the_global_server_joins_share_updates() -> None:
    shop = server()
    rng = np.random.default_rng(5)
    clients = (("ada", RIGHT), ("bob", LEFT), ("cyd", RIGHT), ("dan", LEFT))
    for client, theta in clients:
        await play(shop, client, theta, 30, rng)
    await release(shop)
    assert sorted(members for _, members, _ in written(shop)) == [(0,), (1,), (2,), (3,)]
    await deliver(shop)
    await tell(shop, {0: 0, 1: 1, 2: 1, 3: 0}, clusters=2)
    for client, theta in clients:
        await play(shop, client, theta, 40, rng)
    await release(shop)
    assert [(members, count) for _, members, count in written(shop)[4:]] == [
        ((0, 3), 80),
        ((1, 2), 80),
    ]
    assert sums_written(shop) == await total_sums(shop)


async def test_while_updates_wait_none_is_written() -> None:
    shop = server()
    rng = np.random.default_rng(6)
    await play(shop, "ada", RIGHT, 25, rng)
    await release(shop)
    await play(shop, "ada", RIGHT, 100, rng)
    await play(shop, "bob", LEFT, 100, rng)
    for _ in range(2):
        await release(shop)
    assert written(shop) == [(0, (0,), 25)]
    await deliver(shop)
    await release(shop)
    # What gathered meanwhile comes in one update each.
    assert sorted(count for *_, count in written(shop)) == [100, 125]
    assert sums_written(shop) == await total_sums(shop)


async def test_who_shares_with_nobody_writes_no_updates() -> None:
    shop = server(global_server=None)
    await play(shop, "ada", RIGHT, 50, np.random.default_rng(7))
    await release(shop)
    assert (written(shop), model(shop).next_number, model(shop).clusters) == ([], 0, 1)


async def test_a_release_before_any_feedback_knows_nobody() -> None:
    shop = server()
    await release(shop)
    assert (shop.current.number, model(shop).clusters, model(shop).principals) == (1, 0, ())


async def test_a_release_that_was_not_stored_leaves_no_trace() -> None:
    """Its noise was seen by nobody: the next one covers the same observations."""
    shop = server(BY_OBSERVATION)
    await play(shop, "ada", RIGHT, 25, np.random.default_rng(8))
    gathered = await shop.gather(1)
    before = shop.encode(model(shop))
    shop.release(model(shop), gathered, ConstantNoise(1))
    assert shop.encode(model(shop)) == before
    await release(shop, ConstantNoise(2))
    assert written(shop) == [(0, (0,), 25)]


async def test_nothing_is_written_about_whoever_was_erased() -> None:
    shop = server()
    rng = np.random.default_rng(9)
    await play(shop, "ada", RIGHT, 30, rng)
    await play(shop, "bob", LEFT, 30, rng)
    await release(shop)
    await deliver(shop)
    assert await shop.forget("ada") == 1
    await release(shop)
    principal = shop.principal("ada")
    assert principal not in model(shop).principals
    assert principal not in model(shop).reported.principals
    assert principal not in shop.encode(model(shop))
    # Sums that begin anew could not be told from those that an update has covered.
    await play(shop, "ada", RIGHT, 200, rng)
    await play(shop, "bob", LEFT, 200, rng)
    for _ in range(2):
        await release(shop)
        await deliver(shop)
    assert sorted(count for *_, count in written(shop)) == [30, 230]
    assert (await answer(shop)).decision.items == ("right",)


async def test_whoever_is_erased_between_gathering_and_release_is_closed_afterwards() -> None:
    shop = server()
    await play(shop, "ada", RIGHT, 10, np.random.default_rng(10))
    await reading(shop).before_forgetting(shop.principal("ada"))
    await play(shop, "ada", RIGHT, 50, np.random.default_rng(10))
    await release(shop)
    assert written(shop) == []


async def test_users_alike_share_what_they_taught_and_newcomers_are_recognised() -> None:
    shop = server()
    rng = np.random.default_rng(11)
    for number in range(6):
        await play(shop, f"user-{number}", RIGHT if number % 2 else LEFT, 150, rng)
    await release(shop)
    assert model(shop).clusters == 2
    # What others tell about a user is the cluster's knowledge without the user's own.
    place = model(shop).places[shop.principal("user-0")]
    rows = [await own_sums(shop, f"user-{number}") for number in (2, 4)]
    gram = reading(shop).rule.encoding.sums(np.sum(rows, axis=0)).gram / 0.2
    assert np.allclose(model(shop).others[place, :3], gram[np.triu_indices(2)], rtol=1e-5)
    await play(shop, "newcomer", LEFT, 20, rng)
    assert (await answer(shop, "newcomer")).decision.items == ("left",)


async def test_a_model_survives_the_store() -> None:
    shop = server(BY_OBSERVATION)
    rng = np.random.default_rng(12)
    for client in ("ada", "bob"):
        await play(shop, client, RIGHT, 30, rng)
    gathered = await shop.gather(1)
    held = reading(shop).release(reading(shop).blank(), gathered, shop.noise)
    again = reading(shop).decode(shop.encode(held))
    assert (again.principals, again.places) == (held.principals, held.places)
    assert np.array_equal(again.others, held.others)
    assert again.reported.principals == held.reported.principals
    assert np.array_equal(again.reported.covered, held.reported.covered)
    assert (again.cluster_count, again.next_number) == (held.cluster_count, held.next_number)
    assert [one.number for one in again.updates] == [one.number for one in held.updates]


async def test_a_release_writes_so_many_updates_and_the_next_one_the_others() -> None:
    shop = server(sharing={"first_update": 1})
    rng = np.random.default_rng(13)
    for number in range(MOST_UPDATES + 3):
        await play(shop, f"user-{number}", RIGHT, 1, rng)
    await release(shop)
    assert len(written(shop)) == MOST_UPDATES
    await deliver(shop)
    await release(shop)
    assert len(written(shop)) == MOST_UPDATES + 3
    assert sums_written(shop) == await total_sums(shop)


def test_an_erased_users_row_is_nobodys_and_keeps_its_place() -> None:
    users = tuple(bytes([number]) * DIGEST_BYTES for number in (1, 2, 3))
    reported = ReportedSums(users, np.arange(9).reshape(3, 3))
    without = reported.without(frozenset({users[1]}))
    assert without.numbers() == {users[0]: 0, users[2]: 2}
    assert without.covered.tolist() == [[0, 1, 2], [0, 0, 0], [6, 7, 8]]
    assert reported.without(frozenset()) is reported
