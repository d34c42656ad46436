"""The compared algorithms by name: each can be opened, and the same seed gives the same run."""

import asyncio
from functools import partial

import numpy as np
import pytest

from discreet.decisions.services import DecisionServices, open_simulation
from discreet.errors import InvalidArgument
from discreet.families.fclub.document import FederatedClustersDocument
from discreet.families.questions import Ask, Candidate, Feedback
from discreet.research.noise import SeededNoise
from discreet.research.reproduce.fclub import ALONE, BY_OBSERVATION, BY_PERSON
from discreet.research.reproduce.fclub_algorithms import RIVALS, ClusterAlgorithm
from discreet.research.reproduce.fclub_trials import ClusterTrial
from discreet.research.simulate.server import ARRIVALS_PER_SECOND, SimulatedClock
from discreet.research.worlds.fclub import synthetic
from discreet.state.memory import MemoryStore

WORLD = partial(synthetic, users=12, clusters=2, servers=3, dimensions=5, arrangement="mixed")


@pytest.mark.parametrize("name", [*RIVALS, "fclub", "fclub-dc", "homo", "homo-dc"])
def test_every_rival_can_be_opened(name: str) -> None:
    assert ClusterTrial(ClusterAlgorithm(name), WORLD, 100, 0, 2).run().regret[-1] > 0


@pytest.mark.parametrize("algorithm", [ALONE, BY_PERSON, BY_OBSERVATION])
def test_the_same_seed_gives_the_same_run(algorithm: ClusterAlgorithm) -> None:
    one, two = (ClusterTrial(algorithm, WORLD, 500, 2, 2).run() for _ in range(2))
    assert np.array_equal(one.regret, two.regret)
    assert np.array_equal(one.communications, two.communications)


def test_unknown_names_are_refused() -> None:
    opening = ClusterAlgorithm("nobody").open(
        servers=[0], dimensions=2, rounds=1, clusters=1, seed=0
    )
    with pytest.raises(InvalidArgument, match="algorithm"):
        asyncio.run(opening)


def test_labels_say_what_is_protected() -> None:
    assert BY_PERSON.label == "fclub (served) ε=1, δ=1e-06, by person"
    assert ALONE.label == "no sharing (served)"
    assert ClusterAlgorithm("fclub-dc").trigger == "determinant"
    assert BY_PERSON.trigger == "clock"


@pytest.mark.anyio
async def test_the_served_reading_is_the_shipped_decisions() -> None:
    """The same rounds, given to `recommend` and `feedback` by hand: the same regret to the bit."""
    rounds, seed, world = 400, 3, WORLD(3)
    clock = SimulatedClock(ARRIVALS_PER_SECOND)
    local = [await _opened(clock, seed=[seed, 0xFC, 1 + number]) for number in range(3)]
    regret = 0.0
    for offers in world.offers(rounds=rounds):
        for place, user in enumerate(offers.users.tolist()):
            clock.tick()
            services = local[world.servers[user]]
            (recommender,) = services.registry.loaded()
            if recommender.due(clock()):
                await services.releaser.release_if_due(recommender)
            candidates = [
                Candidate(str(row), tuple(x)) for row, x in enumerate(offers.items[place].tolist())
            ]
            answer = await services.recommend.recommend(
                Ask("shop", f"user {user}", candidates=candidates)
            )
            means, chosen = offers.means[place], int(answer.items[0])
            regret += float(means.max() - means[chosen])
            liked = float(offers.luck[place] < means[chosen])
            await services.feedback.record(Feedback(liked, answer.recommendation_id, scaled=True))
    for services in local:
        await services.close()
    played = await asyncio.to_thread(ClusterTrial(ALONE, WORLD, rounds, seed, 2).run)
    assert played.regret[-1] == regret


async def _opened(clock: SimulatedClock, *, seed: list[int]) -> DecisionServices:
    services = await open_simulation(
        store=MemoryStore(clock=clock), noise=SeededNoise(np.random.SeedSequence(seed)), clock=clock
    )
    document = FederatedClustersDocument.model_validate(
        {
            "algorithm": "fclub",
            "role": "local",
            "dimensions": 5,
            "privacy": {"feedback": "exact"},
            "reward": {"wait": None},
            "decision_ttl_seconds": 60,
        }
    )
    await services.registry.put("shop", document)
    return services
