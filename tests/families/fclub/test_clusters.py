"""A local server: when it writes, whom it believes, and what it shows."""

import numpy as np
import pytest
from discreet.families.fclub.clusters import FederatedClusters, gathered
from discreet.families.fclub.letters import Sums

from discreet.errors import InvalidArgument
from discreet.families.fclub.evidence import Knowledge

D = 4
RULE = FederatedClusters(dimensions=D, first_letter=100)


def taught(truth: list[int], *, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    grams, moments = [], []
    for taste in truth:
        x = rng.normal(size=(count, D))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        y = (rng.random(count) < 0.5 + 0.45 * x[:, taste]) - 0.5
        grams.append(x.T @ x)
        moments.append(x.T @ y)
    return np.array(grams), np.array(moments)


def test_a_first_letter_is_about_one_user() -> None:
    assert RULE.due(counts=[100, 99, 250], sent=[0, 0, 0], groups={}) == [(0,), (2,)]


def test_introduced_users_share_letters_as_the_global_server_told() -> None:
    counts, sent = [180, 170, 199, 300], [100, 100, 100, 150]
    assert RULE.due(counts=counts, sent=sent, groups={}) == [(3,)]
    together = RULE.due(counts=[250, 250, 199, 300], sent=sent, groups={0: 5, 1: 5, 2: 5, 3: 7})
    assert together == [(0, 1, 2), (3,)]


def test_a_letter_waits_until_much_has_come() -> None:
    rule = FederatedClusters(dimensions=D, first_letter=100, growth=2.0)
    assert rule.due(counts=[299], sent=[100], groups={}) == []
    assert rule.due(counts=[300], sent=[100], groups={}) == [(0,)]
    # And never for less than a first letter.
    eager = FederatedClusters(dimensions=D, first_letter=100, growth=0.01)
    assert eager.due(counts=[199], sent=[100], groups={}) == []


def test_who_has_nothing_new_is_not_named() -> None:
    assert RULE.due(counts=[400, 100], sent=[100, 100], groups={0: 1, 1: 1}) == [(0,)]


def test_letters_depend_on_counts_and_groups_alone() -> None:
    """The signature is the guarantee: there is nothing else to look at."""
    import inspect

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
    grams, moments = taught([0, 1, 0, 1], count=300)
    users = RULE.knowledge(grams=grams, moments=moments)
    outlook = RULE.outlook(users=users)
    assert outlook.labels.tolist() == [0, 1, 0, 1]
    assert outlook.clusters == 2
    assert np.allclose(outlook.others.matrix[0], users.matrix[2])
    assert np.allclose(outlook.total.vector[1], users.vector[1] + users.vector[3])


def test_a_new_user_is_helped_by_other_servers() -> None:
    grams, moments = taught([2], count=25, seed=3)
    tastes = 0.45 * np.eye(D)
    foreign = Knowledge(np.array([2_000 * np.eye(D)] * 3), 2_000 * tastes[[0, 1, 2]])
    users = RULE.knowledge(grams=grams, moments=moments)
    outlook = RULE.outlook(users=users, foreign=foreign)
    assert outlook.labels.tolist() == [2]
    estimate, covariance = RULE.posterior(own=users[0], others=outlook.others[0])
    alone, wide = RULE.posterior(own=users[0], others=Knowledge.nothing(dimensions=D))
    assert np.linalg.norm(estimate - tastes[2]) < 0.3 * np.linalg.norm(alone - tastes[2])
    assert np.trace(covariance) < np.trace(wide)


def test_what_others_say_is_loosened_when_own_data_contradict_it() -> None:
    grams, moments = taught([0, 0], count=4_000)
    users = RULE.knowledge(grams=grams, moments=moments)
    wrong = 0.45 * np.eye(D)[0] + 0.12
    foreign = Knowledge(np.array([3_000 * np.eye(D)]), 3_000 * wrong[None])
    outlook = RULE.outlook(users=users, foreign=foreign)
    own = users[0] + users[1]
    estimate, _ = RULE.posterior(own=own, others=Knowledge.nothing(dimensions=D))
    believed = np.linalg.solve(
        RULE.clustering.prior(D) + outlook.total.matrix[outlook.labels[0]],
        outlook.total.vector[outlook.labels[0]],
    )
    truth = 0.45 * np.eye(D)[0]
    # Without loosening the mistake would be 0.04 a coordinate.
    assert np.linalg.norm(believed - truth) < np.linalg.norm(estimate - truth) + 0.01


def test_others_who_like_something_else_are_not_joined() -> None:
    grams, moments = taught([0, 0], count=200)
    users = RULE.knowledge(grams=grams, moments=moments)
    foreign = Knowledge(np.array([3_000 * np.eye(D)]), 3_000 * 0.45 * np.eye(D)[[1]])
    outlook = RULE.outlook(users=users, foreign=foreign)
    assert outlook.labels.tolist() == [1, 1]


def test_recommends_what_is_liked_and_explores_what_is_unknown() -> None:
    grams, moments = taught([1], count=500)
    own = Sums(gram=grams[0], moment=moments[0], count=500)
    nothing = Knowledge.nothing(dimensions=D)
    assert RULE.recommend(own=own, others=nothing, items=np.eye(D)) == 1
    narrow = Sums(gram=np.diag([500.0, 500.0, 500.0, 0.0]), moment=np.zeros(D), count=1_500)
    assert RULE.recommend(own=narrow, others=nothing, items=np.eye(D)) == 3


def test_gathers_sums_into_stacks() -> None:
    one = Sums(gram=np.eye(D), moment=np.ones(D), count=3)
    grams, moments, counts = gathered([one, one], dimensions=D)
    assert grams.shape == (2, D, D)
    assert moments.shape == (2, D)
    assert counts.tolist() == [3, 3]
    assert gathered([], dimensions=D)[0].shape == (0, D, D)


@pytest.mark.parametrize(
    "wrong",
    [
        {"dimensions": 0},
        {"epsilon": -1.0},
        {"exploration": -0.1},
        {"reward_variance": 0.0},
        {"variety": 0.0},
        {"first_letter": 0},
        {"growth": 0.0},
        {"margin": -1.0},
    ],
)
def test_refuses_parameters_that_mean_nothing(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidArgument):
        FederatedClusters(**{"dimensions": 3, **wrong})  # type: ignore[arg-type]


def test_refuses_counts_and_items_that_do_not_fit() -> None:
    with pytest.raises(InvalidArgument, match="sent"):
        RULE.due(counts=[1], sent=[2], groups={})
    own = Sums(gram=np.zeros((D, D)), moment=np.zeros(D), count=0)
    with pytest.raises(InvalidArgument, match="items"):
        RULE.recommend(own=own, others=Knowledge.nothing(dimensions=D), items=np.eye(3))
