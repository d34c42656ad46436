"""The algorithms that are compared with CDP-FCLUB-DC, by name, each as a player for a world."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, Literal, Protocol

import numpy as np

from discreet.errors import InvalidArgument
from discreet.families.fclub.document import FederatedClustersDocument
from discreet.research.noise import SeededNoise
from discreet.research.published.fclub import PublishedClusters
from discreet.research.rivals.fclub import CLUB, SCLUB, LinUCB
from discreet.research.simulate.federation import GLOBAL, ServedFederation
from discreet.research.simulate.server import (
    ARRIVALS_PER_SECOND,
    NEVER_SPENT,
    TOKEN_SECONDS,
)
from discreet.research.worlds.environments import Floats

Reading = Literal["published", "served"]
Protects = Literal["person", "observation"]

NO_SHARING = "no sharing"
PROGRAM = "as programmed"
"""What the authors' program does under a name, where that is something else."""
PUBLISHED_NAMES = ("cdp-fclub-dc", "fclub-dc", "fclub", "homo-dc", "homo")
THRESHOLD = 1.01
"""The paper's U and D."""

RIVALS: Mapping[str, Callable[..., LinUCB]] = {
    "linucb": LinUCB,
    "club": CLUB,
    "sclub": SCLUB,
    # Edges go at an eighth of the distance, which soon leaves everybody alone.
    f"club {PROGRAM}": partial(CLUB, delete=0.25),
    f"sclub {PROGRAM}": partial(SCLUB, split=1.5, programmed=True),
    # Servers are merged only after a test that never fails has failed, so each has its own model.
    f"homo-dc {PROGRAM}": partial(CLUB, delete=inf),
}

Respond = Callable[[int], float]


class ClusterPlayer(Protocol):
    """An algorithm at work in a world of linear tastes."""

    @property
    def communications(self) -> int:
        """Return how often servers have spoken to each other."""
        ...

    async def play(self, user: int, items: Floats, respond: Respond) -> int:
        """Recommend one of the items to a user, learn the response, and return the row."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...


class ClusterLearner(Protocol):
    """An algorithm in memory: the published one, and the rivals."""

    communications: int

    def choose(self, user: int, items: Floats) -> int:
        """Return which item to show."""
        ...

    def learn(self, user: int, x: Floats, y: float) -> None:
        """Learn the response."""
        ...


class LearnerPlayer:
    """A learner in memory, as a player."""

    def __init__(self, learner: ClusterLearner) -> None:
        self.learner = learner

    @property
    def communications(self) -> int:
        """Return how often servers have spoken to each other."""
        return self.learner.communications

    async def play(self, user: int, items: Floats, respond: Respond) -> int:
        """Recommend one of the items to a user, and learn the response."""
        chosen = self.learner.choose(user, items)
        self.learner.learn(user, items[chosen], respond(chosen))
        return chosen

    async def close(self) -> None:
        """Nothing to let go of."""


@dataclass(frozen=True, slots=True)
class ClusterAlgorithm:
    """An algorithm by name, with its privacy. `epsilon` None is without noise.

    `protects` is of the served reading: one observation, or everything a person did, where
    `epsilon` is for one release. "no sharing" is the served one whose servers keep to themselves.
    """

    algorithm: str
    reading: Reading = "published"
    epsilon: float | None = None
    delta: float | None = None
    protects: Protects | None = None

    @property
    def label(self) -> str:
        """Return what to call it in tables and figures."""
        name = self.algorithm if self.reading == "published" else f"{self.algorithm} (served)"
        if self.epsilon is not None:
            name += f" ε={self.epsilon:g}, δ={self.delta:g}"
        return name if self.protects is None else f"{name}, by {self.protects}"

    @property
    def trigger(self) -> str | None:
        """Return what decides when servers speak to each other."""
        if self.reading == "served":
            return None if self.algorithm == NO_SHARING else "clock"
        return "determinant" if self.algorithm.endswith("-dc") else None

    async def open(
        self, *, servers: Sequence[int], dimensions: int, rounds: int, clusters: int, seed: int
    ) -> ClusterPlayer:
        """Return a player who knows nothing yet."""
        if self.reading == "served":
            return await ServedFederation.open(
                document=self._document(dimensions),
                servers=servers,
                seed=[seed, 0xFC],
                rate=ARRIVALS_PER_SECOND,
            )
        if self.algorithm in RIVALS:
            rival = RIVALS[self.algorithm]
            return LearnerPlayer(rival(servers=servers, dimensions=dimensions, rounds=rounds))
        if self.algorithm not in PUBLISHED_NAMES:
            raise InvalidArgument("algorithm", f"no algorithm is called {self.algorithm!r}")
        at_once = self.algorithm in ("fclub", "homo")
        return LearnerPlayer(
            PublishedClusters(
                servers=servers,
                dimensions=dimensions,
                rounds=rounds,
                noise=SeededNoise(np.random.SeedSequence([seed, 0xFC])),
                epsilon=self.epsilon,
                delta=self.delta or 0.1,
                upload=1.0 if at_once else THRESHOLD,
                download=1.0 if at_once else THRESHOLD,
                clusters=clusters,
                detect=not self.algorithm.startswith("homo"),
            )
        )

    def _document(self, dimensions: int) -> FederatedClustersDocument:
        """Return a local server's document with every default but privacy; budgets are lifted."""
        privacy: dict[str, Any] = {"feedback": "exact"}
        if self.epsilon is not None:
            privacy = {
                "protects": self.protects,
                "feedback": {
                    "epsilon": self.epsilon,
                    "delta": self.delta,
                    "budget": {"epsilon": NEVER_SPENT},
                },
            }
        fields: dict[str, Any] = {
            "algorithm": "fclub",
            "role": "local",
            "dimensions": dimensions,
            "privacy": privacy,
            "decision_ttl_seconds": TOKEN_SECONDS,
        }
        if self.algorithm != NO_SHARING:
            fields["global_server"] = {"name": GLOBAL, "url": f"http://{GLOBAL}.invalid"}
        return FederatedClustersDocument.model_validate(fields)
