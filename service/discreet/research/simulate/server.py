"""The shipped decisions in one process, on a simulated clock.

A simulated server answers with `decisions.recommend` and learns with `decisions.feedback`, exactly
as the API does, over the store in memory. Time passes with arrivals, so many a second; a model is
released when the recommender's document says so by that clock. All noise follows from the seed, so
that the same seed gives the same run.
"""

from collections.abc import Sequence

import numpy as np

from discreet.decisions.services import DecisionServices, open_simulation
from discreet.errors import InvalidArgument
from discreet.families.contexts import Context, ContextDocument
from discreet.families.documents import RecommenderDocument
from discreet.families.peering import PeerGateway
from discreet.families.questions import Ask, Feedback, Recommendation
from discreet.families.rewards import RewardedDocument
from discreet.research.noise import SeededNoise
from discreet.research.worlds.callers import Describe, describing, plain
from discreet.research.worlds.contexts import Respond
from discreet.research.worlds.environments import Floats
from discreet.state.memory import MemoryStore

ARRIVALS_PER_SECOND = 200.0
CLIENTS = 997
"""People who take turns."""
TOKEN_SECONDS = 60
"""How long feedback is accepted; what has expired is forgotten, so that memory stays small."""
NEVER_SPENT = 1e6
"""A budget that no simulated client uses up, so that every answer is the one being measured."""


class SimulatedClock:
    """Seconds that pass with arrivals."""

    def __init__(self, rate: float = ARRIVALS_PER_SECOND) -> None:
        if not 1e-6 <= rate <= 1e6:
            raise InvalidArgument("rate", "must lie between 1e-6 and 1,000,000 arrivals a second")
        self._rate = rate
        self._arrivals = 0

    def __call__(self) -> float:
        """Return the time in seconds."""
        return self._arrivals / self._rate

    def tick(self, arrivals: int = 1) -> None:
        """Let so many more arrivals come."""
        self._arrivals += arrivals


class SimulatedServer:
    """One server, with recommenders in it."""

    def __init__(self, services: DecisionServices, clock: SimulatedClock) -> None:
        self.services = services
        self._clock = clock
        self._asked = 0

    @classmethod
    async def open(
        cls,
        *,
        seed: Sequence[int],
        clock: SimulatedClock | None = None,
        peers: PeerGateway | None = None,
    ) -> "SimulatedServer":
        """Open a server whose every draw follows from the seed."""
        clock = clock or SimulatedClock()
        services = await open_simulation(
            store=MemoryStore(clock=clock),
            noise=SeededNoise(np.random.SeedSequence(list(seed))),
            peers=peers,
            clock=clock,
        )
        return cls(services, clock)

    async def put(self, name: str, document: RecommenderDocument) -> None:
        """Create a recommender. Every reward is told at once here, so it waits for none."""
        if isinstance(document, RewardedDocument):
            told_at_once = document.reward.model_copy(update={"wait": None})
            document = document.model_copy(update={"reward": told_at_once})
        await self.services.registry.put(name, document)

    async def recommend(self, name: str, context: Context | Floats) -> Recommendation:
        """Answer the next arrival, one of the clients in turn, with one item."""
        self._clock.tick()
        self._asked += 1
        said = context.tolist() if isinstance(context, np.ndarray) else context
        return await self.ask(Ask(name, f"client {self._asked % CLIENTS}", said))

    async def ask(self, ask: Ask) -> Recommendation:
        """Release what is due, and answer a question."""
        await self.release_due()
        answer = await self.services.recommend.recommend(ask)
        if not answer.items:
            raise InvalidArgument("items", f"{ask.recommender} has nothing to recommend")
        return answer

    async def record(self, answer: Recommendation, reward: float) -> None:
        """Give feedback on an answer, a reward from 0 to 1."""
        feedback = Feedback(reward, answer.recommendation_id, scaled=True)
        await self.services.feedback.record(feedback)

    async def release_due(self) -> None:
        """Release the next model of every recommender whose time has come."""
        for recommender in self.services.registry.loaded():
            if recommender.due(self._clock()):
                await self.services.releaser.release_if_due(recommender)

    async def close(self) -> None:
        """Let go of everything."""
        await self.services.close()


class ServedRecommender:
    """All items in one recommender, whichever vendor the arrival came to."""

    def __init__(
        self, server: SimulatedServer, items: Sequence[str], describe: Describe = plain
    ) -> None:
        self.server = server
        self._describe = describe
        self._position = {item: position for position, item in enumerate(items)}

    @classmethod
    async def open(
        cls,
        *,
        document: RecommenderDocument,
        seed: Sequence[int],
        rate: float = ARRIVALS_PER_SECOND,
    ) -> "ServedRecommender":
        """Open a server with this recommender, whose items are in the order of the world's."""
        server = await SimulatedServer.open(seed=seed, clock=SimulatedClock(rate))
        await server.put("all", document)
        context: ContextDocument | None = getattr(document, "context", None)
        describe = plain if context is None else describing(context)
        return cls(server, [item.id for item in document.items], describe)

    async def play(self, *, vendor: int, context: Floats, respond: Respond) -> int:
        """Recommend from the whole catalogue, and learn what came of it."""
        item, answer = await self.recommend(self._describe(context))
        await self.record(answer, respond(item))
        return item

    async def recommend(self, context: Context | Floats) -> tuple[int, Recommendation]:
        """Recommend; return the item's position and the answer."""
        answer = await self.server.recommend("all", context)
        return self._position[answer.items[0]], answer

    async def record(self, answer: Recommendation, reward: float) -> None:
        """Learn from feedback on an answer."""
        await self.server.record(answer, reward)

    async def close(self) -> None:
        """Let go of the server."""
        await self.server.close()
