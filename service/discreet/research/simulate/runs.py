"""A player in a world: regret by the world's true means, measured along the way."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from discreet.errors import InvalidArgument
from discreet.research.worlds.contexts import Respond, World
from discreet.research.worlds.environments import Floats

CHECKPOINTS = 60
"""Points of a curve."""

Progress = Callable[[int], None]


class Player(Protocol):
    """An algorithm at work in a world."""

    async def play(self, *, vendor: int, context: Floats, respond: Respond) -> int:
        """Recommend something to the arrival, learn its response, and return the position."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class WorldRun:
    """The results of one player in one world, added up to each checkpoint.

    `regret` compares true means, best minus chosen; `reward` is what people really said; `optimal`
    is what the best choice for everybody would have earned on average.
    """

    rounds: Floats
    regret: Floats
    reward: Floats
    optimal: Floats
    seconds: float

    @property
    def accuracy(self) -> float:
        """Return the paper's accuracy: total reward divided by arrivals."""
        return float(self.reward[-1] / self.rounds[-1])

    @property
    def share_of_optimal(self) -> float:
        """Return what was earned in mean reward, as a share of the best possible."""
        return float(1.0 - self.regret[-1] / self.optimal[-1])

    def late_share(self, part: float = 0.25) -> float:
        """Return the same over the last part of the rounds."""
        since = int(np.searchsorted(self.rounds, self.rounds[-1] * (1.0 - part)))
        optimal = self.optimal[-1] - self.optimal[since]
        return float(1.0 - (self.regret[-1] - self.regret[since]) / optimal)

    def accuracy_at(self, rounds: float) -> float:
        """Return the accuracy over the first rounds, at the nearest checkpoint."""
        at = int(np.abs(self.rounds - rounds).argmin())
        return float(self.reward[at] / self.rounds[at])


def checkpoints(rounds: int) -> list[int]:
    """Return evenly spaced rounds, the last of them the end; every quarter is among them."""
    if rounds < 1:
        raise InvalidArgument("rounds", "must be at least 1")
    return sorted({round(rounds * part / CHECKPOINTS) for part in range(1, CHECKPOINTS + 1)} - {0})


async def run(
    *, player: Player, world: World, rounds: int, seed: int, progress: Progress = lambda done: None
) -> WorldRun:
    """Play so many rounds. `progress` is called with how many more are done."""
    marks = checkpoints(rounds)
    kept: list[tuple[int, float, float, float]] = []
    regret = reward = optimal = 0.0
    done = 0
    began = time.perf_counter()
    for block in world.arrivals(rounds=rounds, seed=seed):
        best = block.means.max(axis=1).tolist()
        vendors, luck = block.vendors.tolist(), block.luck.tolist()
        for row, (context, means) in enumerate(zip(block.contexts, block.means, strict=True)):
            pleased: list[float] = []

            def respond(
                item: int, means: Floats = means, row: int = row, pleased: list[float] = pleased
            ) -> float:
                pleased.append(1.0 if luck[row] < means[item] else 0.0)  # noqa: B023
                return pleased[-1]

            item = await player.play(vendor=vendors[row], context=context, respond=respond)
            optimal += best[row]
            regret += best[row] - float(means[item])
            reward += pleased[0]
            done += 1
            if done == marks[len(kept)]:
                kept.append((done, regret, reward, optimal))
        progress(len(vendors))
    played, lost, said, possible = np.array(kept).T
    return WorldRun(
        rounds=played,
        regret=lost,
        reward=said,
        optimal=possible,
        seconds=time.perf_counter() - began,
    )
