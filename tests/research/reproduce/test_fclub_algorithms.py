"""The served federation in a small world: it finds who is alike, pays once, and sharing helps."""

from functools import partial

import numpy as np
import pytest
from discreet.audit.mechanisms.scripted import Hum

from discreet.errors import InvalidArgument
from discreet.families.fclub.clusters import FederatedClusters
from discreet.research.noise import SeededNoise
from discreet.research.reproduce.fclub_algorithms import Contender, Federation
from discreet.research.reproduce.fclub_trials import FclubTrial, Outcome
from discreet.research.worlds.fclub import LinearWorld, synthetic

WORLD = partial(synthetic, users=12, clusters=2, servers=3, dimensions=5, arrangement="mixed")
ROUNDS = 8_000


def teach(player: Federation, world: LinearWorld, rounds: int) -> float:
    regret = 0.0
    for offers in world.offers(rounds=rounds):
        for place in range(len(offers.users)):
            user, items, means = int(offers.users[place]), offers.items[place], offers.means[place]
            chosen = player.choose(user, items)
            regret += float(means.max() - means[chosen])
            player.learn(user, items[chosen], float(offers.luck[place] < means[chosen]))
    return regret


def federation(**given: object) -> Federation:
    rule = FederatedClusters(dimensions=5, epsilon=1.0, delta=1e-6)
    return Federation(
        servers=WORLD(0).servers.tolist(),
        rule=rule,
        noise=given.pop("noise", SeededNoise(1)),  # type: ignore[arg-type]
        **given,  # type: ignore[arg-type]
    )


def test_noisy_letters_are_enough_to_find_who_is_alike() -> None:
    player = federation()
    teach(player, WORLD(0), ROUNDS)
    assert player.letters >= 12
    truth = np.arange(12) % 2
    for users in player.clusters():
        assert len(set(truth[users])) == 1
    assert len(player.clusters()) <= 4


def test_every_observation_is_in_at_most_one_letter() -> None:
    """Counts of all letters never exceed what was observed, and noise is drawn once for each."""
    hum = Hum()
    player = federation(noise=hum)
    teach(player, WORLD(0), 5_000)
    fields = player.rule.privatizer.fields - 1
    assert len(hum.gaussian) == player.letters * fields
    sent = sum(posted.letter.count for posted in player._posted)
    assert 0 < sent <= 5_000
    assert (player._sent <= player._count).all()
    assert sent == player._sent.sum()


def test_keeping_to_oneself_sends_nothing() -> None:
    player = federation(sharing=False, noise=Hum())
    teach(player, WORLD(0), 2_000)
    assert player.letters == player.communications == 0


@pytest.mark.parametrize("trigger", ["count", "determinant"])
def test_sharing_exactly_helps(trigger: str) -> None:
    rule = FederatedClusters(dimensions=5, epsilon=None)
    world = WORLD(0)
    regrets = [
        teach(
            Federation(
                servers=world.servers.tolist(),
                rule=rule,
                noise=SeededNoise(0),
                sharing=sharing,
                trigger=trigger,  # type: ignore[arg-type]
            ),
            world,
            ROUNDS,
        )
        for sharing in (True, False)
    ]
    assert regrets[0] < regrets[1]


def test_private_sharing_does_no_harm() -> None:
    regrets = [teach(federation(sharing=sharing), WORLD(0), ROUNDS) for sharing in (True, False)]
    assert regrets[0] < 1.02 * regrets[1]


def test_same_seed_same_result() -> None:
    trial = FclubTrial(Contender("fclub", "served", 1.0, 1e-6, "count"), WORLD, 1_500, 2, 2)
    one, two = trial.run(), trial.run()
    assert np.array_equal(one.regret, two.regret)
    assert one.ms_per_round > 0


def test_rows_have_what_programs_read() -> None:
    contender = Contender("cdp-fclub-dc", "published", 1.0, 0.1, "determinant")
    runs = tuple(FclubTrial(contender, WORLD, 300, seed, 2).run() for seed in (0, 1))
    row = Outcome(contender, runs).row(300)
    assert set(row) == {
        *("algorithm", "reading", "epsilon", "delta", "trigger"),
        *("regret_mean", "regret_std", "communications", "ms_per_round"),
    }
    ends = [run.regret[-1] for run in runs]
    assert row["regret_mean"] == pytest.approx(np.mean(ends))
    assert row["regret_std"] == pytest.approx(np.std(ends, ddof=1))


@pytest.mark.parametrize(
    "name", ["linucb", "club", "sclub", "fclub", "fclub-dc", "homo", "homo-dc"]
)
def test_every_rival_can_be_opened(name: str) -> None:
    assert FclubTrial(Contender(name), WORLD, 100, 0, 2).run().regret[-1] > 0


def test_refuses_names_that_nobody_has() -> None:
    with pytest.raises(InvalidArgument, match="algorithm"):
        Contender("nobody").open(servers=[0], dimensions=2, rounds=1, clusters=1, seed=0)
