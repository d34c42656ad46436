"""Who plays: recommenders driven round by round through the shipped decisions.

A player owns real runtimes over in-memory stores, asks `recommend` and answers with
`give_feedback`, exactly as the API does. What a round is, and what it earned, is the business of
`run`. Time is the number of the round, in seconds, so that tokens and claims expire after a while
and memory grows with what was learned, not with how long one plays.
"""

import math
import random
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from discreet.families.p_dap.contract import Decision
from discreet.decisions.feedback import Feedback, give_feedback
from discreet.families.p_dap.document import AdaptivePartitionDocument
from discreet.families.p_dap.learners import LearnerFactory, learner_for
from discreet.families.p_dap.vendors import VendorGateway
from discreet.decisions.recommend import Ask, Recommendation, recommend
from discreet.decisions.runtime import Runtime
from discreet.decisions.tokens import open_decision
from discreet.errors import InvalidArgument
from discreet.research.environments import Floats
from discreet.research.noise import SeededNoise
from discreet.state.memory import MemoryStore

CLIENTS = 997
"""People who take turns; budgets are set so that none of them runs out."""

TOKEN_SECONDS = 60

_SURVEY_EVERY = 50
_SURVEY_SHARE = 40
"""A survey after every 50 rounds, later after every fortieth part of the rounds so far."""

Respond = Callable[[int], float]
"""What the arrival says about an item, by the item's position in the world."""


class Player(Protocol):
    """An algorithm at play."""

    async def play(self, *, vendor: int, context: Floats, respond: Respond) -> int:
        """Recommend something to the arrival, hear what it says, and return the item's position."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Seat:
    """One runtime in which recommenders can be placed."""

    def __init__(self, runtime: Runtime, clock: Clock, *, surveys: bool) -> None:
        self.runtime = runtime
        self._clock = clock
        self._asked = 0
        self._next_survey: float = _SURVEY_EVERY if surveys else math.inf

    @classmethod
    async def open(
        cls,
        *,
        seed: Sequence[int],
        learners: LearnerFactory = learner_for,
        clock: Clock | None = None,
        vendors: VendorGateway | None = None,
    ) -> "Seat":
        """Open a runtime whose every draw follows from the seed."""
        clock = clock or Clock()
        entropy = np.random.SeedSequence(list(seed))
        # Which cells a survey samples is no secret; it only has to be the same again.
        rng = random.Random(int(entropy.generate_state(1)[0]))  # noqa: S311
        runtime = await Runtime.open_for_simulation(
            store=MemoryStore(clock=clock, rng=rng),
            noise=SeededNoise(entropy),
            clock=clock,
            learner_for=learners,
            vendors=vendors,
        )
        # As published, nothing looks at aggregates.
        return cls(runtime, clock, surveys=learners is learner_for)

    async def place(self, name: str, document: AdaptivePartitionDocument) -> None:
        """Put a recommender into the runtime."""
        await self.runtime.registry.put(name, document)

    async def ask(
        self, name: str, context: Floats, candidates: Sequence[str] | None = None
    ) -> Recommendation:
        """Ask for one item, as somebody whose turn it is."""
        self._asked += 1
        self._clock.now += 1.0
        if self._asked >= self._next_survey:
            await self.survey()
        answer = await recommend(
            self.runtime,
            Ask(
                recommender=name,
                client=f"client {self._asked % CLIENTS}",
                context=context,  # type: ignore[arg-type]  # an array is as good as a list
                candidates=candidates,
            ),
        )
        if not answer.items:
            raise InvalidArgument("items", f"recommender {name} has nothing to recommend")
        return answer

    async def tell(self, answer: Recommendation, reward: float) -> None:
        """Give feedback about an answer."""
        await give_feedback(
            self.runtime, Feedback(reward=reward, recommendation_id=answer.recommendation_id)
        )

    def decision(self, answer: Recommendation) -> Decision:
        """Return what an answer's token seals: the runtime is ours, and so is its key."""
        return open_decision(self.runtime.sealer, answer.recommendation_id).decision

    async def survey(self) -> None:
        """Let every learner look over what was learned, as a server does in the background."""
        for recommender in self.runtime.registry.held():
            await self.runtime.surveyor.prepare(recommender)
        self._next_survey = self._asked + max(_SURVEY_EVERY, self._asked // _SURVEY_SHARE)

    async def cells(self) -> int:
        """Return how many cells hold statistics."""
        return sum(
            [
                await self.runtime.store.count_cells(index=recommender.generation)
                for recommender in self.runtime.registry.held()
            ]
        )

    async def close(self) -> None:
        """Let go of the runtime."""
        await self.runtime.close()


class OneRecommender:
    """All items in one recommender, whichever vendor the arrival came to: served, and CAP."""

    def __init__(self, seat: Seat, items: Sequence[str]) -> None:
        self.seat = seat
        self._position = {item: position for position, item in enumerate(items)}

    @classmethod
    async def open(
        cls,
        *,
        document: AdaptivePartitionDocument,
        seed: Sequence[int],
        learners: LearnerFactory = learner_for,
    ) -> "OneRecommender":
        """Open a player of this document, whose items are in the order of the world's."""
        seat = await Seat.open(seed=seed, learners=learners)
        await seat.place("all", document)
        return cls(seat, [item.id for item in document.items])

    async def play(self, *, vendor: int, context: Floats, respond: Respond) -> int:
        """Recommend from the whole catalogue."""
        item, answer = await self.answer(context)
        await self.hear(answer, respond(item))
        return item

    async def answer(self, context: Floats) -> tuple[int, Recommendation]:
        """Recommend, without hearing anything yet; return the item's position and the answer."""
        answer = await self.seat.ask("all", context)
        return self._position[answer.items[0]], answer

    async def hear(self, answer: Recommendation, reward: float) -> None:
        """Learn from feedback about an answer."""
        await self.seat.tell(answer, reward)

    async def close(self) -> None:
        """Let go of the runtime."""
        await self.seat.close()
