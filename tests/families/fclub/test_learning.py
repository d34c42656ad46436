"""A local server: what it counts, when it writes updates, and whom it believes."""

import inspect

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.fclub.evidence import Knowledge
from discreet.families.fclub.learning import (
    AT_ONCE,
    FederatedClusters,
    lot,
    own_sums_by_chunk,
)
from discreet.families.fclub.own_rows import OwnEncoding
from discreet.state.memory import MemoryStore
from discreet.state.stores import OWN, FeedbackRecord

D = 4
RULE = FederatedClusters(dimensions=D, first_update=100)
GENERATION = b"g" * 8


def taught(truth: list[int], *, count: int, seed: int = 0) -> Knowledge:
    """Exact knowledge of users who like one coordinate each."""
    rng = np.random.default_rng(seed)
    grams, moments = [], []
    for taste in truth:
        x = rng.normal(size=(count, D))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        y = (rng.random(count) < 0.5 + 0.45 * x[:, taste]) - 0.5
        grams.append(x.T @ x)
        moments.append(x.T @ y)
    return RULE.knowledge(grams=np.array(grams), moments=np.array(moments))


async def stored(people: int) -> MemoryStore:
    store = MemoryStore()
    await store.learn(
        [
            FeedbackRecord(
                principal=number.to_bytes(16, "big"),
                generation=GENERATION,
                claim=b"c" * 16,
                reward=0,
                claim_ttl=60,
                increments={OWN: [(0, number), (2, 7)]},
            )
            for number in range(people)
        ]
    )
    return store


@pytest.mark.anyio
async def test_own_sums_are_read_in_chunks_and_those_of_nobody_left_out() -> None:
    people = 2 * AT_ONCE + 3
    store = await stored(people)
    owners = await store.owners(generation=GENERATION)
    found = [
        chunk
        async for chunk in own_sums_by_chunk(
            store, generation=GENERATION, owners=owners, own=OwnEncoding(RULE.encoding)
        )
    ]
    # The first has given no feedback: its count is 0.
    assert [len(chunk.principals) for chunk in found] == [AT_ONCE - 1, AT_ONCE, 3]
    counts = [count for chunk in found for count in chunk.steps[:, 0].tolist()]
    assert counts == list(range(1, people))
    last = found[-1].steps[-1].tolist()
    assert last == [people - 1, 0, 7, *[0] * (RULE.encoding.fields + 2 - 3)]


def test_a_lot_is_drawn_anew_for_every_release_and_the_same_if_it_is_repeated() -> None:
    people = [number.to_bytes(16, "big") for number in range(2_000)]
    first, second = ([lot(one, number) for one in people] for number in (1, 2))
    assert [lot(one, 1) for one in people] == first
    # Uniform and independent: 5 standard errors of a mean and of a correlation of 2,000.
    for drawn in (first, second):
        assert abs(float(np.mean(drawn)) - 0.5) < 0.033
        assert 0 <= min(drawn) < 0.01
        assert 0.99 < max(drawn) < 1
    assert abs(float(np.corrcoef(first, second)[0, 1])) < 0.12


def test_a_first_update_is_about_one_user() -> None:
    assert RULE.due(counts=[100, 99, 250], sent=[0, 0, 0], groups={}) == [(0,), (2,)]


def test_introduced_users_share_updates_as_the_global_server_told() -> None:
    counts, sent = [180, 170, 199, 300], [100, 100, 100, 150]
    assert RULE.due(counts=counts, sent=sent, groups={}) == [(3,)]
    together = RULE.due(counts=[250, 250, 199, 300], sent=sent, groups={0: 5, 1: 5, 2: 5, 3: 7})
    assert together == [(0, 1, 2), (3,)]


def test_an_update_waits_until_much_has_come() -> None:
    rule = FederatedClusters(dimensions=D, first_update=100, growth=2.0)
    assert rule.due(counts=[299], sent=[100], groups={}) == []
    assert rule.due(counts=[300], sent=[100], groups={}) == [(0,)]
    # And never for less than a first update.
    eager = FederatedClusters(dimensions=D, first_update=100, growth=0.01)
    assert eager.due(counts=[199], sent=[100], groups={}) == []


def test_who_has_nothing_new_is_not_named() -> None:
    assert RULE.due(counts=[400, 100], sent=[100, 100], groups={0: 1, 1: 1}) == [(0,)]


def test_updates_depend_on_counts_and_groups_alone() -> None:
    """The signature is the guarantee: there is nothing else to look at."""
    assert set(inspect.signature(RULE.due).parameters) == {"counts", "sent", "groups"}


def test_introductions_are_later_where_there_is_more_noise() -> None:
    sizes = [
        FederatedClusters(dimensions=10, epsilon=epsilon, delta=delta).introduction
        for epsilon, delta in ((None, 0.1), (1.0, 0.1), (1.0, 1e-6), (0.5, 1e-6))
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] >= 200
    assert sizes[-1] < 2_000


def test_users_alike_share_what_they_taught() -> None:
    users = taught([0, 1, 0, 1], count=300)
    found = RULE.local_clusters(users=users)
    assert found.labels.tolist() == [0, 1, 0, 1]
    assert found.clusters == 2
    assert np.allclose(found.others.matrix[0], users.matrix[2])
    assert np.allclose(found.total.vector[1], users.vector[1] + users.vector[3])


def test_a_new_user_is_helped_by_other_servers() -> None:
    users = taught([2], count=25, seed=3)
    tastes = 0.45 * np.eye(D)
    foreign = Knowledge(np.array([2_000 * np.eye(D)] * 3), 2_000 * tastes[[0, 1, 2]])
    found = RULE.local_clusters(users=users, foreign=foreign)
    assert found.labels.tolist() == [2]
    estimate, covariance = RULE.posterior(own=users[0], others=found.others[0])
    alone, wide = RULE.posterior(own=users[0], others=Knowledge.nothing(dimensions=D))
    assert np.linalg.norm(estimate - tastes[2]) < 0.3 * np.linalg.norm(alone - tastes[2])
    assert np.trace(covariance) < np.trace(wide)


def test_what_others_say_is_loosened_when_own_data_contradict_it() -> None:
    users = taught([0, 0], count=4_000)
    wrong = 0.45 * np.eye(D)[0] + 0.12
    foreign = Knowledge(np.array([3_000 * np.eye(D)]), 3_000 * wrong[None])
    found = RULE.local_clusters(users=users, foreign=foreign)
    own = users[0] + users[1]
    estimate, _ = RULE.posterior(own=own, others=Knowledge.nothing(dimensions=D))
    believed = np.linalg.solve(
        RULE.clustering.prior(D) + found.total.matrix[found.labels[0]],
        found.total.vector[found.labels[0]],
    )
    truth = 0.45 * np.eye(D)[0]
    # Without loosening the mistake would be 0.04 a coordinate.
    assert np.linalg.norm(believed - truth) < np.linalg.norm(estimate - truth) + 0.01


def test_others_who_like_something_else_are_not_joined() -> None:
    users = taught([0, 0], count=200)
    foreign = Knowledge(np.array([3_000 * np.eye(D)]), 3_000 * 0.45 * np.eye(D)[[1]])
    assert RULE.local_clusters(users=users, foreign=foreign).labels.tolist() == [1, 1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"dimensions": 0},
        {"epsilon": -1.0},
        {"exploration": -0.1},
        {"reward_variance": 0.0},
        {"variety": 0.0},
        {"first_update": 0},
        {"growth": 0.0},
        {"margin": -1.0},
    ],
)
def test_parameters_that_mean_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidArgument):
        FederatedClusters(**{"dimensions": 3, **wrong})  # type: ignore[arg-type]


def test_counts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="sent"):
        RULE.due(counts=[1], sent=[2], groups={})
