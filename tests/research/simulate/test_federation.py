"""The served federation in a small world: it shares through noisy updates, and sharing helps."""

import asyncio
from functools import partial
from typing import Any, NamedTuple

import pytest

from discreet.families.fclub.document import FederatedClustersDocument
from discreet.research.simulate.federation import GLOBAL, NAME, ServedFederation
from discreet.research.worlds.environments import Floats
from discreet.research.worlds.fclub import synthetic

WORLD = partial(synthetic, users=6, clusters=2, servers=2, dimensions=4, arrangement="mixed")
ROUNDS = 1_200
TO_GLOBAL = {"global_server": {"name": GLOBAL, "url": f"http://{GLOBAL}.invalid"}}


class Played(NamedTuple):
    regret: float
    communications: int
    merged: int
    """How often the global server has merged updates."""


def play(**fields: Any) -> Played:
    return asyncio.run(_play(fields))


async def _play(fields: dict[str, Any]) -> Played:
    world = WORLD(0)
    document = FederatedClustersDocument.model_validate(
        {"algorithm": "fclub", "role": "local", "dimensions": 4, **fields}
    )
    # Twenty minutes: time enough for servers that speak every few seconds.
    federation = await ServedFederation.open(
        document=document, servers=world.servers.tolist(), seed=[0], rate=1.0
    )
    regret = 0.0
    for offers in world.offers(rounds=ROUNDS):
        for user, items, means, luck in zip(
            offers.users.tolist(), offers.items, offers.means, offers.luck, strict=True
        ):

            def respond(row: int, means: Floats = means, luck: float = luck) -> float:
                return float(luck < means[row])

            chosen = await federation.play(user, items, respond)
            regret += float(means.max() - means[chosen])
    (merging,) = federation.global_server.services.registry.loaded()
    assert merging.name == NAME
    played = Played(regret, federation.communications, merging.current.number)
    await federation.close()
    return played


@pytest.fixture(scope="module")
def alone() -> Played:
    return play(privacy={"feedback": "exact"})


def test_servers_that_keep_to_themselves_send_nothing(alone: Played) -> None:
    assert (alone.communications, alone.merged) == (0, 0)
    # Random play has a regret of about 300.
    assert 0 < alone.regret < 200


def test_exact_updates_are_merged_and_help(alone: Played) -> None:
    shared = play(privacy={"feedback": "exact"}, **TO_GLOBAL)
    assert shared.communications > 0
    assert shared.merged > 0
    assert shared.regret < alone.regret


@pytest.mark.parametrize("protects", ["person", "observation"])
def test_private_sharing_does_little_harm(protects: str, alone: Played) -> None:
    """What noisy updates say must not mislead for long. Seeded: it cannot fail by chance."""
    feedback = {"epsilon": 8.0, "budget": {"epsilon": 1e6}}
    private = play(privacy={"protects": protects, "feedback": feedback}, **TO_GLOBAL)
    assert private.regret < 1.5 * alone.regret
    if protects == "observation":  # three people are too few to stand out from a person's noise
        assert private.communications > 0
        assert private.merged > 0
