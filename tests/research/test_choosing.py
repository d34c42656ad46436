"""Trying epsilons: rejection is unbiased, and rows say what was measured."""

import numpy as np
import pytest

from discreet.families.p_dap.document import AdaptivePartitionDocument
from discreet.decisions.recommend import PrivacyReport, Recommendation
from discreet.errors import InvalidArgument
from discreet.research.simulate.choosing import (
    Measured,
    Try,
    answers_within_budget,
    at_epsilon,
    replay,
    summarised,
    world_for,
)
from discreet.research.worlds.environments import Floats
from discreet.research.worlds.logged import Log
from discreet.research.simulate.server import OneRecommender
from discreet.research.worlds.contexts import ClusteredWorld, SparseWorld


def document(**changes: object) -> AdaptivePartitionDocument:
    fields: dict[str, object] = {
        "algorithm": "p-dap",
        "items": ["a", "b", {"id": "c", "hidden": True}],
        "context": {"dimensions": 1},
    }
    return AdaptivePartitionDocument.model_validate(fields | changes)


def test_only_epsilon_changes_the_budget_is_lifted_and_hidden_items_stay_hidden() -> None:
    changed = at_epsilon(document(privacy={"mode": "geometric"}), 0.25)
    assert changed.privacy.epsilon == 0.25
    assert changed.privacy.mode == "geometric"
    assert changed.privacy.budget.epsilon == 1e6
    assert [item.id for item in changed.items] == ["a", "b"]
    assert at_epsilon(document(), None).privacy.mode == "none"
    assert at_epsilon(document(privacy={"mode": "none"}), 2.0).privacy.mode == "uniform"


@pytest.mark.parametrize(
    ("privacy", "epsilon", "answers"),
    [
        ({"budget": {"epsilon": 1.0}}, 0.1, 10),
        ({"budget": {"epsilon": 1.0}}, 3.0, 0),
        # zCDP at (8, 1e-6): rho 1.0524, and a randomised response at 0.1 costs 0.005 of it.
        ({"accounting": "zcdp", "budget": {"epsilon": 8.0, "delta": 1e-6}}, 0.1, 210),
    ],
)
def test_what_a_budget_buys(privacy: dict[str, object], epsilon: float, answers: int) -> None:
    assert answers_within_budget(document(privacy=privacy), epsilon) == answers


def test_worlds_fit_the_recommender() -> None:
    assert isinstance(world_for(document(), 0), ClusteredWorld)
    many = world_for(document(context={"dimensions": 1_000}), 0)
    assert isinstance(many, SparseWorld)
    assert many.catalogues == (("a", "b"),)
    with pytest.raises(InvalidArgument, match="items"):
        world_for(document(items=[]), 0)


def log_of(rows: int, propensity_of_a: float, seed: int) -> Log:
    """A log in which item a earns 0.8 and b 0.2, whatever the context."""
    rng = np.random.default_rng(seed)
    items = (rng.random(rows) >= propensity_of_a).astype(np.intp)
    rewards = (rng.random(rows) < np.where(items == 0, 0.8, 0.2)).astype(np.float64)
    propensities = np.where(items == 0, propensity_of_a, 1 - propensity_of_a)
    return Log(rng.random((rows, 1)), items, rewards, propensities)


class Mostly:
    """Answers item a seven times in ten, whoever asks, and remembers what it hears."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(9)
        self.heard: list[float] = []

    async def answer(self, context: Floats) -> tuple[int, Recommendation]:
        item = int(self._rng.random() >= 0.7)
        nothing = PrivacyReport(None, None, None)
        return item, Recommendation("id", ("ab"[item],), False, nothing, 0)

    async def hear(self, answer: Recommendation, reward: float) -> None:
        self.heard.append(reward)


@pytest.mark.anyio
@pytest.mark.parametrize("propensity", [0.5, 0.2, 0.9])
async def test_rejection_finds_what_the_recommender_would_earn(propensity: float) -> None:
    """It would earn 0.7 * 0.8 + 0.3 * 0.2 = 0.62, however the log was drawn.

    About 2,000 rows count: a standard deviation of 0.011, and the bound is 4 of them. Without
    regard to propensities, 0.2 and 0.9 would give 0.42 and 0.77.
    """
    least = min(propensity, 1 - propensity)
    player = Mostly()
    log = log_of(round(2_000 / least), propensity, seed=4)
    found = await replay(player=player, log=log, seed=0)
    assert 1_800 < found.counted < 2_200
    assert found.counted == len(player.heard)
    assert found.reward == pytest.approx(0.62, abs=0.044)
    assert found.variance == pytest.approx(0.62 * 0.38, abs=0.02)


@pytest.mark.anyio
async def test_a_real_recommender_learns_from_the_rows_that_count() -> None:
    player = await OneRecommender.open(document=at_epsilon(document(), None), seed=[1])
    found = await replay(player=player, log=log_of(600, 0.5, seed=5), seed=0)
    (vector,) = await player.seat.runtime.store.read(
        addresses=list(
            await player.seat.runtime.store.cells(
                index=player.seat.runtime.registry.held()[0].generation, most=9
            )
        )[:1]
    )
    await player.close()
    assert 0 < vector[0] <= found.counted < 600
    # It has to find out that item a earns four times as much as b.
    assert found.reward > 0.6


def test_a_synthetic_try_knows_its_regret() -> None:
    found = Try(document(), 1.0, 150, 0).run()
    assert found.counted == 150
    assert found.regret is not None
    assert found.optimal is not None
    assert 0 < found.regret < found.optimal
    assert found == Try(document(), 1.0, 150, 0).run()


def test_a_row_on_made_up_streams() -> None:
    runs = [Measured(100, 0.5, 0.25, 0.1, 0.6), Measured(100, 0.6, 0.24, 0.2, 0.6)]
    row = summarised(document=document(), epsilon=2.0, runs=runs, unprotected=runs)
    assert row["reward_mean"] == pytest.approx(0.55)
    assert row["regret_mean"] == pytest.approx(0.15)
    assert row["share_of_optimal"] == pytest.approx(0.75)
    assert row["reward_low"] < 0.55 < row["reward_high"]
    assert row["answers_within_budget"] == 10


def test_a_row_on_logs_compares_with_no_protection() -> None:
    free, private = [Measured(400, 0.7, 0.21)], [Measured(400, 0.6, 0.24)]
    row = summarised(document=document(), epsilon=1.0, runs=private, unprotected=free)
    assert row["regret_mean"] == pytest.approx(0.1)
    assert row["share_of_optimal"] is None
    assert row["reward_high"] - 0.6 == pytest.approx(1.96 * (0.24 / 400) ** 0.5, rel=1e-4)
    nothing = [Measured(0, float("nan"), float("nan"))]
    row = summarised(document=document(), epsilon=1.0, runs=nothing, unprotected=free)
    assert row["reward_mean"] is None
    assert row["reward_low"] is None
