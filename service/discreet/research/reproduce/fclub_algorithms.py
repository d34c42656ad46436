"""Who plays in the worlds of federated clusters: the rivals by name, and the served federation.

`Federation` is a global server and its local ones in one process, without a network between them.
It decides, clusters, writes letters and reads them with the functions that the service runs; its
own is only that it keeps all servers' sums in arrays and looks at them at fixed counts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.families.fclub.clusters import FederatedClusters
from discreet.families.fclub.consensus import Consensus, Posted, consensus
from discreet.families.fclub.letters import STEPS
from discreet.families.fclub.linear import Bank
from discreet.privacy.noise import NoiseSource
from discreet.research.noise import SeededNoise
from discreet.research.published.fclub import Published
from discreet.research.rivals.fclub import CLUB, SCLUB, LinUCB
from discreet.research.worlds.environments import Floats

Trigger = Literal["count", "determinant"]

_LOOK = 64
"""Arrivals at a server between two looks at whether a letter is due."""

_ANEW = 1.25
"""A server looks at its clusters anew when it has seen so many times as much as the last time."""


class Player(Protocol):
    """Everybody who can be compared."""

    communications: int

    def choose(self, user: int, items: Floats) -> int:
        """Return which item to show."""
        ...

    def learn(self, user: int, x: Floats, y: float) -> None:
        """Hear what came of it."""
        ...


class Federation:
    """The served reading: local servers, and a global one unless they keep to themselves."""

    def __init__(
        self,
        *,
        servers: Sequence[int],
        rule: FederatedClusters,
        noise: NoiseSource,
        sharing: bool = True,
        trigger: Trigger = "count",
    ) -> None:
        where = np.asarray(servers, dtype=np.int64)
        d = rule.dimensions
        self.communications = 0
        self.letters = 0
        self.rule, self._noise, self._sharing, self._trigger = rule, noise, sharing, trigger
        self._server = where.tolist()
        self._people = [np.flatnonzero(where == one) for one in range(int(where.max()) + 1)]
        self._gram = np.zeros((len(where), d, d))
        self._moment = np.zeros((len(where), d))
        self._count = np.zeros(len(where), dtype=np.int64)
        self._sent_gram, self._sent_moment = self._gram.copy(), self._moment.copy()
        self._sent = self._count.copy()
        self._posted: list[Posted] = []
        self._consensus: Consensus | None = None
        self._read = 0
        self._told = [0] * len(self._people)
        # Clusters of a server live in the places of its users.
        self._models = Bank(models=len(where), dimensions=d, ridge=1.0)
        self._home = list(range(len(where)))
        self._arrived = [0] * len(self._people)
        self._next = [1.0] * len(self._people)
        self._width = rule.exploration * math.sqrt(rule.reward_variance)
        self._privatizer = rule.privatizer
        for server in range(len(self._people)):
            self._anew(server)

    def choose(self, user: int, items: Floats) -> int:
        """Return the item with the largest upper bound by everything the server believes."""
        return self._models.choose(self._home[user], items, self._width)

    def learn(self, user: int, x: Floats, y: float) -> None:
        """Learn at once; now and then write a letter, read the others', and look at clusters."""
        server, centred = self._server[user], y - self.rule.baseline
        self._gram[user] += x[:, None] * x
        self._moment[user] += centred * x
        self._count[user] += 1
        self._models.add(self._home[user], x, centred)
        self._arrived[server] += 1
        arrived = self._arrived[server]
        if self._sharing and arrived % _LOOK == 0:
            self._write(server)
        if arrived >= self._next[server]:
            self._next[server] = arrived * _ANEW
            self._anew(server)

    def clusters(self) -> list[list[int]]:
        """Return the global server's clusters of users."""
        found: dict[int, list[int]] = {}
        for (server, number), label in self._labels().items():
            found.setdefault(label, []).append(int(self._people[int(server)][number]))
        return sorted(sorted(users) for users in found.values())

    def _labels(self) -> dict[tuple[str, int], int]:
        return {} if self._consensus is None else dict(self._consensus.labels)

    def _anew(self, server: int) -> None:
        people = self._people[server]
        foreign = None
        if self._sharing and self._posted:
            known = self._agree()
            foreign = known.foreign(str(server))
            if self._told[server] != self._read:
                # The paper counts one communication for each cluster that is downloaded.
                self.communications += known.clusters
                self._told[server] = self._read
        outlook = self.rule.outlook(
            users=self.rule.knowledge(grams=self._gram[people], moments=self._moment[people]),
            foreign=foreign,
        )
        prior = self.rule.clustering.prior(self.rule.dimensions)
        variance = self.rule.reward_variance
        for label in np.unique(outlook.labels):
            members = people[outlook.labels == label]
            self._models.replace(
                int(members[0]),
                gram=variance * (prior + outlook.total.matrix[label]),
                moment=variance * outlook.total.vector[label],
                count=float(self._count[members].sum()),
            )
            for user in members:
                self._home[user] = int(members[0])

    def _agree(self) -> Consensus:
        if self._consensus is None or self._read != len(self._posted):
            self._consensus = consensus(
                self._posted,
                clustering=self.rule.clustering,
                reward_variance=self.rule.reward_variance,
            )
            self._read = len(self._posted)
        return self._consensus

    def _write(self, server: int) -> None:
        people = self._people[server]
        known = self._consensus
        groups = known.groups(str(server)) if known is not None else {}
        due = self._due_by_count if self._trigger == "count" else self._due_by_determinant
        for members in due(people, groups):
            users = people[list(members)]
            half = np.triu_indices(self.rule.dimensions)
            gram = (self._gram[users] - self._sent_gram[users]).sum(axis=0)[half]
            moment = (self._moment[users] - self._sent_moment[users]).sum(axis=0)
            pending = np.concatenate(
                [
                    [int((self._count[users] - self._sent[users]).sum())],
                    np.rint(gram * STEPS).astype(np.int64),
                    np.rint(self._privatizer.weight * moment * STEPS).astype(np.int64),
                ]
            )
            letter = self._privatizer.write(members=members, pending=pending, noise=self._noise)
            self._posted.append(Posted(str(server), letter.value, self._privatizer))
            self._sent_gram[users] = self._gram[users]
            self._sent_moment[users] = self._moment[users]
            self._sent[users] = self._count[users]
            self.communications += 1
            self.letters += 1

    def _due_by_count(
        self, people: npt.NDArray[np.intp], groups: dict[int, int]
    ) -> list[tuple[int, ...]]:
        return self.rule.due(counts=self._count[people], sent=self._sent[people], groups=groups)

    def _due_by_determinant(
        self, people: npt.NDArray[np.intp], groups: dict[int, int]
    ) -> list[tuple[int, ...]]:
        """Return the same letters when information, not counts, has grown as much.

        For comparison only: when a letter is written then tells something about raw observations.
        """
        together: dict[int, list[int]] = {}
        for number, user in enumerate(people):
            if self._sent[user] or self._count[user] >= self.rule.introduction:
                key = groups.get(number, -1 - number) if self._sent[user] else -1 - number
                together.setdefault(key, []).append(number)
        ridge = self.rule.introduction / self.rule.dimensions * np.eye(self.rule.dimensions)
        letters = []
        for members in together.values():
            users = people[members]
            before = np.linalg.slogdet(ridge + self._sent_gram[users].sum(axis=0))[1]
            after = np.linalg.slogdet(ridge + self._gram[users].sum(axis=0))[1]
            enough = self.rule.dimensions / 2 * math.log1p(self.rule.growth)
            if after - before >= enough or not self._sent[users].any():
                letters.append(tuple(members))
        return letters


@dataclass(frozen=True, slots=True)
class Contender:
    """An algorithm by name, with its privacy. `epsilon` None is without noise."""

    algorithm: str
    reading: Literal["published", "served"] = "published"
    epsilon: float | None = None
    delta: float | None = None
    trigger: Trigger | None = None
    threshold: float = 1.01

    @property
    def name(self) -> str:
        """The algorithm, with its thresholds where they are not the paper's."""
        other = self.threshold != 1.01
        return f"{self.algorithm} U=D={self.threshold:g}" if other else self.algorithm

    @property
    def label(self) -> str:
        """What to call it in tables and figures."""
        name = self.name if self.reading == "published" else f"{self.name} (served)"
        if self.epsilon is not None:
            name += f" ε={self.epsilon:g}, δ={self.delta:g}"
        return name + (", determinant" if self.served_by_determinant else "")

    @property
    def served_by_determinant(self) -> bool:
        """Tell whether it is the served reading with the trigger that is not served."""
        return self.reading == "served" and self.trigger == "determinant"

    def open(
        self, *, servers: Sequence[int], dimensions: int, rounds: int, clusters: int, seed: int
    ) -> Player:
        """Return a player who knows nothing yet."""
        noise = SeededNoise(np.random.SeedSequence([seed, 0xFC]))
        if self.reading == "served":
            rule = FederatedClusters(
                dimensions=dimensions, epsilon=self.epsilon, delta=self.delta or 1e-6
            )
            return Federation(
                servers=servers,
                rule=rule,
                noise=noise,
                sharing=self.algorithm != "no sharing",
                trigger=self.trigger or "count",
            )
        alone = {"linucb": LinUCB, "club": CLUB, "sclub": SCLUB}
        if self.algorithm in alone:
            return alone[self.algorithm](servers=servers, dimensions=dimensions, rounds=rounds)
        if self.algorithm not in ("cdp-fclub-dc", "fclub-dc", "fclub", "homo-dc", "homo"):
            raise InvalidArgument("algorithm", f"no algorithm is called {self.algorithm!r}")
        at_once = self.algorithm in ("fclub", "homo")
        return Published(
            servers=servers,
            dimensions=dimensions,
            rounds=rounds,
            noise=noise,
            epsilon=self.epsilon,
            delta=self.delta or 0.1,
            upload=1.0 if at_once else self.threshold,
            download=1.0 if at_once else self.threshold,
            clusters=clusters,
            detect=not self.algorithm.startswith("homo"),
        )
