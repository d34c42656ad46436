"""Runs: regret comes from true means, and what is kept along the way adds up."""

from collections.abc import Iterator

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.simulate.runs import checkpoints, run
from discreet.research.worlds.contexts import Arrivals, Respond
from discreet.research.worlds.environments import Floats


class Table:
    """Two items; the second is better for the first vendor's people, the first for the others."""

    dimensions = 1
    catalogues = (("a",), ("b",))

    def arrivals(self, *, rounds: int, seed: int) -> Iterator[Arrivals]:
        vendors = np.arange(rounds) % 2
        means = np.where(vendors[:, None] == 0, [[0.2, 0.5]], [[0.9, 0.4]])
        yield Arrivals(np.zeros((rounds, 1)), vendors, np.full(rounds, 0.45), means)


class Always:
    """Recommends one item, and remembers what was said."""

    def __init__(self, item: int) -> None:
        self.item = item
        self.responses: list[float] = []

    async def play(self, *, vendor: int, context: Floats, respond: Respond) -> int:
        self.responses.append(respond(self.item))
        return self.item

    async def close(self) -> None: ...


@pytest.mark.anyio
async def test_regret_is_of_means_and_reward_of_luck() -> None:
    player = Always(0)
    done: list[int] = []
    found = await run(player=player, world=Table(), rounds=120, seed=0, progress=done.append)
    # Half of the arrivals lose 0.5 - 0.2; the others nothing. Luck 0.45 pleases at 0.9, not at 0.2.
    assert found.regret[-1] == pytest.approx(60 * 0.3)
    assert found.optimal[-1] == pytest.approx(60 * 0.5 + 60 * 0.9)
    assert found.reward[-1] == 60
    assert player.responses == [0.0, 1.0] * 60
    assert found.accuracy == 0.5
    assert found.share_of_optimal == pytest.approx(1 - 18 / 84)
    assert found.late_share() == pytest.approx(1 - 18 / 84)
    assert found.accuracy_at(60) == 0.5
    assert sum(done) == 120


@pytest.mark.anyio
async def test_the_last_quarter_is_the_last_quarter() -> None:
    class Improves(Always):
        async def play(self, *, vendor: int, context: Floats, respond: Respond) -> int:
            respond(0)
            self.responses.append(0)
            late = len(self.responses) > 90
            return (1 if vendor == 0 else 0) if late else 0

    found = await run(player=Improves(0), world=Table(), rounds=120, seed=0)
    assert found.late_share() == pytest.approx(1.0)
    assert found.share_of_optimal < 1.0


@pytest.mark.parametrize("rounds", [1, 7, 60, 61, 1_000])
def test_checkpoints_end_at_the_end(rounds: int) -> None:
    marks = checkpoints(rounds)
    assert marks[-1] == rounds
    assert marks == sorted(set(marks))
    assert len(marks) == min(rounds, 60)


def test_no_rounds_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="rounds"):
        checkpoints(0)
