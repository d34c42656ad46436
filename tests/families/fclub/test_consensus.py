"""What noisy updates are worth, who is alike, and what each server may use."""

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.fclub.consensus import (
    Consensus,
    ServerUpdate,
    consensus,
    information,
    mean_moments,
    worth,
)
from discreet.families.fclub.evidence import Clustering, Knowledge
from discreet.families.fclub.sums import STEPS, LinearSums, Privatizer, SumsEncoding
from discreet.research.noise import SeededNoise

D = 4
TASTES = 0.45 * np.eye(D)[:3]
RULE = Clustering(variety=0.1)
ENCODING = SumsEncoding(dimensions=D)


def update(
    server: str,
    user: int,
    taste: int,
    *,
    count: int = 1_500,
    privatizer: Privatizer | None = None,
    members: tuple[int, ...] | None = None,
) -> ServerUpdate:
    """Return an update about a user who was mostly shown what they like."""
    privatizer = privatizer or Privatizer(dimensions=D)
    rng = np.random.default_rng([user, taste, len(server)])
    x = rng.normal(size=(count, D)) + 2 * np.eye(D)[taste]
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = rng.random(count) < 0.5 + x @ TASTES[taste]
    entries = [(x.T @ x)[np.triu_indices(D)], privatizer.weight * (x.T @ (y - 0.5))]
    pending = np.concatenate([[count], np.rint(np.concatenate(entries) * STEPS).astype(np.int64)])
    noise = SeededNoise(np.random.SeedSequence([user, taste]))
    written = privatizer.write(members=members or (user,), pending=pending, noise=noise)
    return ServerUpdate(server, written.value)


def found_in(received: list[ServerUpdate], reward_variance: float = 0.2) -> Consensus:
    return consensus(received, encoding=ENCODING, clustering=RULE, reward_variance=reward_variance)


def told_by(received: list[ServerUpdate], reward_variance: float = 0.2) -> Knowledge:
    return worth(
        [one.update for one in received],
        encoding=ENCODING,
        variety=0.1,
        reward_variance=reward_variance,
    )


@pytest.fixture(scope="module")
def received() -> list[ServerUpdate]:
    return [
        update(server, 10 * place + taste, taste, count=1_500)
        for place, server in enumerate(("north", "south", "west"))
        for taste in range(3)
    ]


def test_users_alike_are_found_across_servers(received: list[ServerUpdate]) -> None:
    found = found_in(received)
    assert found.clusters == 3
    for (_, user), label in found.labels.items():
        same = [other for (_, other), theirs in found.labels.items() if theirs == label]
        assert sorted(other % 10 for other in same) == [user % 10] * 3


def test_a_server_is_told_of_the_others_only(received: list[ServerUpdate]) -> None:
    found = found_in(received)
    total = found.shares.matrix.sum(axis=0)
    for place, server in enumerate(found.servers):
        foreign = found.foreign(server)
        assert np.allclose(foreign.matrix, total - found.shares.matrix[place])
    without = found_in([one for one in received if one.server != "north"])
    assert without.foreign("north").matrix.shape == (3, D, D)
    assert set(found.groups("south")) == {10, 11, 12}


def test_what_is_told_points_where_the_cluster_likes_it(received: list[ServerUpdate]) -> None:
    found = found_in(received)
    foreign = found.foreign("north")
    for label in range(3):
        taste = next(user % 10 for (_, user), own in found.labels.items() if own == label)
        prior = RULE.prior(D)
        estimate = np.linalg.solve(prior + foreign.matrix[label], foreign.vector[label])
        assert int(estimate.argmax()) == taste


def test_exact_updates_are_worth_their_sums() -> None:
    exact = Privatizer(dimensions=D, epsilon=None)
    one = update("north", 0, 0, privatizer=exact, count=400)
    sums = exact.sums(one.update.steps)
    known = told_by([one])
    assert np.allclose(known.matrix[0], sums.gram / 0.2, rtol=1e-5)
    assert np.allclose(known.vector[0], sums.moment / 0.2, rtol=1e-5)


def test_noise_takes_from_what_an_update_is_worth() -> None:
    exact = Privatizer(dimensions=D, epsilon=None)
    sizes = []
    for privatizer in (exact, Privatizer(dimensions=D, delta=0.1), Privatizer(dimensions=D)):
        many = [update("north", user, 0, privatizer=privatizer, count=100) for user in range(6)]
        sizes.append(np.trace(told_by(many).matrix.mean(axis=0)))
    assert sizes[1] < 0.9 * sizes[0]
    assert sizes[2] < 0.6 * sizes[0]


def test_an_update_of_a_few_observations_is_worth_little_of_its_sums() -> None:
    many = [update("north", user, 0, count=20) for user in range(6)]
    known = told_by(many)
    # Exact sums over 20 items of length 1 would have a trace of 20 / 0.2 = 100.
    assert np.trace(known.matrix.mean(axis=0)) < 0.2 * 100


def test_what_updates_claim_to_know_is_true() -> None:
    """Errors of the estimates are as large as stated, over 60 updates: chi-squared within 35%."""
    many = [update("north", user, user % 3, count=1_000) for user in range(60)]
    known = told_by(many, reward_variance=0.22)
    surprise = []
    for place in range(60):
        gap = known.vector[place] - known.matrix[place] @ TASTES[place % 3]
        surprise.append(float(gap @ np.linalg.solve(known.matrix[place] + 1e-9 * np.eye(D), gap)))
    assert np.mean(surprise) == pytest.approx(D, rel=0.35)


def test_updates_about_groups_belong_to_the_cluster_of_their_taste(
    received: list[ServerUpdate],
) -> None:
    group = update("north", 0, 1, members=(1, 7), count=3_000)
    found = found_in([*received, group])
    north = found.servers.index("north")
    assert found.counts[north, found.labels["north", 1]] == 1_500 + 3_000
    # Nobody is introduced by being named among others.
    assert ("north", 7) not in found.labels


def test_mean_moments_vary_as_tastes_do(received: list[ServerUpdate]) -> None:
    known, variety = mean_moments([one.update for one in received], encoding=ENCODING)
    means = np.linalg.solve(known.matrix, known.vector[..., None])[..., 0]
    assert [int(row.argmax()) for row in means] == [0, 1, 2] * 3
    assert 0.001 < variety < 0.1


def test_noisy_sums_of_no_noise_are_exact_knowledge() -> None:
    """Sums that come another way, as those of slots, are judged by the same rule."""
    sums = LinearSums(np.diag([4.0, 3.0, 2.0, 1.0])[None], np.ones((1, D)), np.array([10.0]))
    known = information(
        sums, gram_noise=np.zeros(1), moment_noise=np.zeros(1), variety=0.1, reward_variance=0.2
    )
    assert np.allclose(known.matrix[0], sums.gram[0] / 0.2)
    assert np.allclose(known.vector[0], sums.moment[0] / 0.2)


def test_what_cannot_be_merged_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="received"):
        found_in([])
    with pytest.raises(InvalidArgument, match="reward_variance"):
        found_in([update("north", 0, 0, count=30)], reward_variance=0.0)
