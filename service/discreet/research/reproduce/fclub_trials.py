"""One algorithm in one world of federated clusters, and the results of several seeds."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import log2
from typing import Any

import numpy as np

from discreet.research.reproduce.fclub_algorithms import ClusterAlgorithm, ClusterPlayer
from discreet.research.worlds.environments import Floats
from discreet.research.worlds.fclub import LinearWorld

POINTS = 50
"""Points of a curve."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusterRun:
    """Regret and communications after so many rounds, and how long a round took.

    `chance` is the regret of a uniform draw in the same rounds.
    """

    rounds: Floats
    regret: Floats
    communications: Floats
    ms_per_round: float
    chance: float

    def growth(self) -> float:
        """Return the power of T with which the regret grew over the second half."""
        half = float(np.interp(self.rounds[-1] / 2, self.rounds, self.regret))
        return log2(float(self.regret[-1]) / half)


@dataclass(frozen=True, slots=True)
class ClusterTrial:
    """An algorithm in a world; `world` makes it from the seed and must be picklable."""

    algorithm: ClusterAlgorithm
    world: Callable[[int], LinearWorld]
    rounds: int
    seed: int
    clusters: int = 4

    @property
    def label(self) -> str:
        """Return what to show while it runs."""
        return f"{self.algorithm.label}, seed {self.seed}"

    def run(self) -> ClusterRun:
        """Play it."""
        return asyncio.run(self._run())

    async def _run(self) -> ClusterRun:
        world = self.world(self.seed)
        player = await self.algorithm.open(
            servers=world.servers.tolist(),
            dimensions=world.dimensions,
            rounds=self.rounds,
            clusters=self.clusters,
            seed=self.seed,
        )
        try:
            return await self._play(player, world)
        finally:
            await player.close()

    async def _play(self, player: ClusterPlayer, world: LinearWorld) -> ClusterRun:
        """Play all rounds. Time is counted for the player alone, not for making the world."""
        marks = np.unique(np.linspace(0, self.rounds, POINTS + 1).astype(np.int64))[1:]
        regrets, talks = [], []
        regret, chance, spent, done, at = 0.0, 0.0, 0.0, 0, 0
        for offers in world.offers(rounds=self.rounds):
            best = offers.means.max(axis=1)
            chance += float((best - offers.means.mean(axis=1)).sum())
            started = time.process_time()
            for user, items, means, luck, top in zip(
                offers.users.tolist(), offers.items, offers.means, offers.luck, best, strict=True
            ):

                def respond(row: int, means: Floats = means, luck: float = luck) -> float:
                    return 1.0 if luck < means[row] else 0.0

                regret += top - means[await player.play(user, items, respond)]
                done += 1
                if done == marks[at]:
                    regrets.append(float(regret))
                    talks.append(float(player.communications))
                    at = min(at + 1, len(marks) - 1)
            spent += time.process_time() - started
        return ClusterRun(
            rounds=marks.astype(np.float64),
            regret=np.array(regrets),
            communications=np.array(talks),
            ms_per_round=1e3 * spent / self.rounds,
            chance=chance,
        )


@dataclass(frozen=True, slots=True, eq=False)
class ClusterOutcome:
    """An algorithm's runs, one a seed."""

    algorithm: ClusterAlgorithm
    runs: tuple[ClusterRun, ...]

    @property
    def rounds(self) -> int:
        """How long the runs are."""
        return int(self.runs[0].rounds[-1])

    @property
    def regrets(self) -> list[float]:
        """The regret of each seed at the end."""
        return [float(run.regret[-1]) for run in self.runs]

    @property
    def regret(self) -> float:
        """The mean regret at the end."""
        return float(np.mean(self.regrets))

    @property
    def communications(self) -> float:
        """How often servers spoke to each other, the mean over seeds."""
        return float(np.mean([run.communications[-1] for run in self.runs]))

    @property
    def ms_per_round(self) -> float:
        """The processor time of a round in milliseconds, the mean over seeds."""
        return float(np.mean([run.ms_per_round for run in self.runs]))

    @property
    def share_of_chance(self) -> float:
        """The regret divided by that of a uniform draw."""
        return self.regret / float(np.mean([run.chance for run in self.runs]))

    def regret_at(self, rounds: int) -> tuple[float, float]:
        """Return the mean and the standard deviation of the regret after so many rounds."""
        found = [float(np.interp(rounds, run.rounds, run.regret)) for run in self.runs]
        return float(np.mean(found)), float(np.std(found, ddof=1)) if len(found) > 1 else 0.0

    def row(self) -> dict[str, Any]:
        """Return the row that programs read, after all rounds that were played."""
        mean, deviation = self.regret_at(self.rounds)
        return {
            "algorithm": self.algorithm.algorithm,
            "reading": self.algorithm.reading,
            "epsilon": self.algorithm.epsilon,
            "delta": self.algorithm.delta,
            "trigger": self.algorithm.trigger,
            "protects": self.algorithm.protects,
            "rounds": self.rounds,
            "regret_mean": mean,
            "regret_std": deviation,
            "communications": self.communications,
            "ms_per_round": self.ms_per_round,
        }

    def detail(self) -> dict[str, Any]:
        """Return the row with the curves of every seed."""
        return {
            **self.row(),
            "curve": {
                "rounds": self.runs[0].rounds.tolist(),
                "regret": [run.regret.tolist() for run in self.runs],
                "communications": [run.communications.tolist() for run in self.runs],
            },
        }
