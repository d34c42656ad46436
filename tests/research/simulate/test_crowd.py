"""Visit n is the same in every run with one seed, and a few clients come far more often."""

from collections import Counter

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.simulate.crowd import Crowd, Visit
from discreet.research.worlds.environments import ClusteredContexts

WORLD = ClusteredContexts(dimensions=2, clusters=4, spread=0.05, seed=0)


def crowd(*, clients: int = 500, seed: int = 1) -> Crowd:
    return Crowd(contexts=WORLD, clients=clients, name="someone", seed=seed)


def test_the_same_seed_brings_the_same_visits() -> None:
    one, two, other = crowd(), crowd(), crowd(seed=2)
    first = [one.visit() for _ in range(50)]
    assert first == [two.visit() for _ in range(50)]
    assert first != [other.visit() for _ in range(50)]


def test_a_client_comes_back_with_nearly_the_same_context() -> None:
    alone = crowd(clients=1)
    contexts = np.array([alone.visit().context for _ in range(300)])
    assert np.all((contexts >= 0) & (contexts <= 1))
    # 600 normal draws of deviation 0.02 leave seven deviations with probability below 1e-8.
    assert np.abs(contexts - contexts.mean(axis=0)).max() < 7 * 0.02 + 0.01
    assert len({tuple(row) for row in contexts}) > 1


def test_some_clients_are_much_keener_than_others() -> None:
    people = crowd(clients=100)
    visits = Counter(people.visit().client for _ in range(4_000))
    # Expected shares are 1/18.6 for the keenest and 1/186 for the hundredth: 215 and 21.5 visits.
    # Six deviations (88 and 28) keep both bounds; equally keen people (40 each) would break one.
    assert visits["someone-0"] > 125
    assert visits["someone-99"] < 50
    assert set(visits) <= {f"someone-{number}" for number in range(100)}


def test_rewards_follow_luck() -> None:
    visit = Visit(client="someone", context=(0.5,), luck=0.4)
    assert visit.reward(0.41) == 1.0
    assert visit.reward(0.4) == 0.0
    people = crowd()
    lucky = np.mean([people.visit().reward(0.3) for _ in range(4_000)])
    # Six standard errors (0.043); a mean that is 30% off, 0.21 or 0.39, is twelve away.
    assert abs(lucky - 0.3) < 6 * (0.3 * 0.7 / 4_000) ** 0.5


@pytest.mark.parametrize("clients", [0, -1, 1_000_001])
def test_a_crowd_has_a_sensible_size(clients: int) -> None:
    with pytest.raises(InvalidArgument) as caught:
        crowd(clients=clients)
    assert caught.value.argument == "clients"
