"""What is measured of mirror descent is what is shipped.

The reproduction predicts and learns many records at once. Here the same records are asked about and
given feedback on one by one, at nodes that are the shipped decisions over the store in memory, with
the shipped releases by the clock and the shipped messages between neighbours.
"""

from functools import partial

import numpy as np
import pytest

from discreet.decisions.services import open_simulation
from discreet.families.mirror_descent.document import MirrorDescentDocument
from discreet.families.mirror_descent.recommender import MirrorDescentRecommender
from discreet.families.mirror_descent.sync import ModelMessage
from discreet.families.questions import Ask, Candidate, Sparse
from discreet.research.noise import SeededNoise
from discreet.research.reproduce.mirror_descent_trials import (
    DELTA,
    MIXINGS,
    STREAM_SECONDS,
    MirrorTrial,
)
from discreet.research.reproduce.node_topologies import Topology, edges_of
from discreet.research.simulate.server import NEVER_SPENT, SimulatedClock, SimulatedServer
from discreet.research.worlds.mirror_descent import LabelledRecords, social
from discreet.state.memory import MemoryStore

pytestmark = pytest.mark.anyio

NODES, RECORDS, DIMENSION, SEED = 4, 800, 400, 3
WORLD = partial(social, records=RECORDS, dimension=DIMENSION, interests=10)


class ReleaseNoise(SeededNoise):
    """The reproduction's noise for releases; what answers draw comes from elsewhere."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.SeedSequence([seed, 7]))
        self._others = SeededNoise(seed)

    def bits(self, count: int) -> int:
        return self._others.bits(count)


class Neighbours:
    """Answers with what nodes knew when a round of mixing began."""

    def __init__(self) -> None:
        self.messages: dict[str, ModelMessage] = {}

    def reachable(self, peer: str, *, urgent: bool = False) -> bool:
        return True

    async def post(
        self, *, peer: str, url: str, content: bytes, urgent: bool = False
    ) -> tuple[int, bytes]:
        return 200, self.messages[peer].encode()

    def distrust(self, *, peer: str, urgent: bool = False) -> None:
        raise AssertionError(f"{peer} sent what cannot be read")


def document(number: int, epsilon: float | None, topology: Topology) -> MirrorDescentDocument:
    linked = {j if i == number else i for i, j in edges_of(topology, NODES) if number in (i, j)}
    feedback = {"epsilon": epsilon, "delta": DELTA, "budget": {"epsilon": NEVER_SPENT}}
    return MirrorDescentDocument.model_validate(
        {
            "algorithm": "mirror-descent",
            "features": {"dimension": DIMENSION},
            "neighbours": [{"name": f"n{one}", "url": f"http://n{one}"} for one in sorted(linked)],
            "privacy": {"answers": "exact", "feedback": "exact" if epsilon is None else feedback},
        }
    )


async def shipped(epsilon: float | None, topology: Topology) -> tuple[float, float, int]:
    """Return the hinge loss of the mean model, the right predictions, and how many releases."""
    records: LabelledRecords = WORLD(SEED)
    turns = RECORDS // NODES
    clock, wire, noise = SimulatedClock(turns / STREAM_SECONDS), Neighbours(), ReleaseNoise(SEED)
    servers, nodes = [], []
    for number in range(NODES):
        services = await open_simulation(
            store=MemoryStore(clock=clock), noise=noise, peers=wire, clock=clock
        )
        server = SimulatedServer(services, clock)
        await server.put("feed", document(number, epsilon, topology))
        node = await services.registry.find("feed")
        assert isinstance(node, MirrorDescentRecommender)
        servers.append(server)
        nodes.append(node)
    loss = right = 0.0
    for turn in range(turns):
        released = nodes[0].current.number
        for server in servers:
            await server.release_due()
        if nodes[0].current.number > released:
            for _ in range(MIXINGS):
                wire.messages = {f"n{at}": node.message() for at, node in enumerate(nodes)}
                for node in nodes:
                    await node.mix()
        mean = np.mean([node.current.model.weights for node in nodes], axis=0)
        for at, (server, node) in enumerate(zip(servers, nodes, strict=True)):
            place = turn * NODES + at
            row, label = records.rows.take([place]), int(records.labels[place])
            margin = float(node.current.model.margins(row)[0])
            right += 0.5 if margin == 0 else float(label * margin > 0)
            loss += max(0.0, 1 - label * float(row.sums(mean[row.indices] * row.values)[0]))
            features = Sparse(row.indices.tolist(), row.values.tolist())
            candidate = Candidate(f"record {place}", features)
            answer = await server.ask(Ask("feed", f"client {place}", candidates=[candidate]))
            await server.record(answer, (1 + label) / 2)
        clock.tick()
    for server in servers:
        await server.close()
    return loss, right, nodes[0].current.number


@pytest.mark.parametrize(
    ("epsilon", "topology"), [(50.0, "ring"), (1.0, "complete"), (None, "ring")]
)
async def test_regret_and_accuracy_are_those_of_the_shipped_decisions(
    epsilon: float | None, topology: Topology
) -> None:
    """To a millionth of the regret: messages between nodes are in single precision."""
    trial = MirrorTrial("served", WORLD, RECORDS, SEED, epsilon, topology, NODES, lasso=2.0)
    measured = trial.run()
    loss, right, releases = await shipped(epsilon, topology)
    regret = loss - WORLD(SEED).best_loss
    assert regret == pytest.approx(float(measured.regret[-1]), rel=1e-6)
    assert right == float(measured.right[-1])
    # The reproduction releases once more, at the end.
    assert releases == measured.releases - 1 == 6
    # Runs that learn nothing would agree as well.
    if epsilon != 1.0:
        assert right > 0.6 * RECORDS
