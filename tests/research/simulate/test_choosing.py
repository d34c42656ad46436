"""Trying epsilons: rejection is unbiased, and rows say what was measured."""

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.budgets import UNPROTECTED
from discreet.families.p_dap.document import AdaptivePartitionDocument, PartitionAnswersDocument
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.families.questions import Recommendation
from discreet.families.registration import read_document
from discreet.research.simulate.choosing import (
    EpsilonResult,
    EpsilonTrial,
    at_epsilon,
    feedback_epsilon,
    learns_from_vectors,
    replay,
    requests_per_budget,
    result_row,
    world_for,
)
from discreet.research.simulate.server import ServedRecommender
from discreet.research.worlds.contexts import ClusteredWorld, SparseWorld
from discreet.research.worlds.environments import Floats
from discreet.research.worlds.logged import Log


def document(**changes: object) -> AdaptivePartitionDocument:
    fields: dict[str, object] = {
        "algorithm": "p-dap",
        "items": ["a", "b", {"id": "c", "hidden": True}],
        "context": {"dimensions": 1},
    }
    return AdaptivePartitionDocument.model_validate(fields | changes)


def answers_of(document: AdaptivePartitionDocument) -> PartitionAnswersDocument:
    assert not isinstance(document.privacy.answers, str)
    return document.privacy.answers


def test_only_epsilon_changes_budgets_are_lifted_and_hidden_items_stay_hidden() -> None:
    changed = at_epsilon(document(privacy={"answers": {"mode": "geometric"}}), 0.25)
    assert answers_of(changed).epsilon == 0.25
    assert answers_of(changed).mode == "geometric"
    assert answers_of(changed).budget.epsilon == 1e6
    assert [item.id for item in changed.items] == ["a", "b"]


def test_feedback_keeps_its_own_epsilon() -> None:
    changed = at_epsilon(document(privacy={"feedback": {"epsilon": 3.0, "delta": 1e-7}}), 0.25)
    feedback = changed.privacy.feedback
    assert not isinstance(feedback, str)
    assert (feedback.epsilon, feedback.delta, feedback.budget.epsilon) == (3.0, 1e-7, 1e6)
    assert at_epsilon(document(privacy={"feedback": "exact"}), 1.0).privacy.feedback == "exact"


def test_feedback_may_be_tried_at_other_epsilons() -> None:
    written = document(privacy={"feedback": {"epsilon": 3.0, "delta": 1e-7}})
    other = at_epsilon(written, 0.25, 1.5).privacy.feedback
    assert (other.epsilon, other.delta, other.budget.epsilon) == (1.5, 1e-7, 1e6)
    assert at_epsilon(written, 0.25, "exact").privacy.feedback == "exact"
    off = at_epsilon(document(privacy={"feedback": "exact"}), 0.25, 2.0)
    assert feedback_epsilon(off) == 2.0


def test_what_has_a_context_and_two_dials_can_be_tried() -> None:
    assert learns_from_vectors(document())
    voters = {"algorithm": "p-rec", "objects": 3, "horizon": 20, "peers": 5}
    assert not learns_from_vectors(read_document(voters))


def test_without_epsilon_both_dials_are_off_and_with_one_both_may_be_on() -> None:
    neither = at_epsilon(document(), None)
    assert (neither.privacy.answers, neither.privacy.feedback) == ("exact", "exact")
    assert answers_of(at_epsilon(document(privacy={"answers": "exact"}), 2.0)).epsilon == 2.0


@pytest.mark.parametrize(
    ("budget", "epsilon", "requests"),
    [
        ({"epsilon": 1.0, "delta": 0.0}, 0.1, 10),
        ({"epsilon": 1.0, "delta": 0.0}, 3.0, 0),
        # zCDP at (8, 1e-6): rho 1.0524, and a randomised response at 0.1 costs 0.005 of it.
        ({"epsilon": 8.0, "delta": 1e-6}, 0.1, 210),
        # At 4 a response costs rho 8 x 0.1, and a sum of epsilons pays for two of them.
        ({"epsilon": 8.0, "delta": 1e-6}, 4.0, 2),
    ],
)
def test_requests_per_budget(budget: dict[str, float], epsilon: float, requests: int) -> None:
    given = document(privacy={"answers": {"budget": budget}})
    assert requests_per_budget(given, epsilon) == requests


def test_worlds_fit_the_recommender() -> None:
    assert isinstance(world_for(document(), 0), ClusteredWorld)
    many = world_for(document(context={"dimensions": 1_000}), 0)
    assert isinstance(many, SparseWorld)
    assert many.catalogues == (("a", "b"),)
    with pytest.raises(InvalidArgument, match="items"):
        world_for(document(items=[]), 0)


def test_a_recommender_with_named_fields_is_tried_through_them() -> None:
    fields = {
        "age": {"type": "number", "range": [0, 120]},
        "country": {"type": "category", "values": ["CH", "DE"]},
    }
    named = document(items=["a", "b"], context={"fields": fields})
    assert world_for(named, 0).dimensions == 2
    result = EpsilonTrial(named, 2.0, rounds=200, seed=0).run()
    assert result.counted == 200
    assert 0.0 < result.reward < 1.0


def log_of(rows: int, propensity_of_a: float, seed: int) -> Log:
    """A log in which item a earns 0.8 and b 0.2, whatever the context."""
    rng = np.random.default_rng(seed)
    items = (rng.random(rows) >= propensity_of_a).astype(np.intp)
    rewards = (rng.random(rows) < np.where(items == 0, 0.8, 0.2)).astype(np.float64)
    propensities = np.where(items == 0, propensity_of_a, 1 - propensity_of_a)
    return Log(rng.random((rows, 1)), items, rewards, propensities)


class Mostly:
    """Answers item a seven times in ten, whoever asks, and keeps the feedback."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(9)
        self.feedback: list[float] = []

    async def recommend(self, context: Floats) -> tuple[int, Recommendation]:
        item = int(self._rng.random() >= 0.7)
        return item, Recommendation("id", ("ab"[item],), False, UNPROTECTED, 0)

    async def record(self, answer: Recommendation, reward: float) -> None:
        self.feedback.append(reward)


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
    assert found.counted == len(player.feedback)
    assert found.reward == pytest.approx(0.62, abs=0.044)
    assert found.variance == pytest.approx(0.62 * 0.38, abs=0.02)


@pytest.mark.anyio
async def test_a_real_recommender_learns_from_the_rows_that_count() -> None:
    player = await ServedRecommender.open(
        document=at_epsilon(document(), None), seed=[1], rate=10.0
    )
    found = await replay(player=player, log=log_of(600, 0.5, seed=5), seed=0)
    (recommender,) = player.server.services.registry.loaded()
    assert isinstance(recommender, PartitionRecommender)
    released = recommender.current.model.own.statistics.arrivals().sum()
    await player.close()
    # What came after the last release is not in the model yet.
    assert 0 < released <= found.counted < 600
    # It has to find out that item a earns four times as much as b.
    assert found.reward > 0.6


def test_a_synthetic_trial_knows_its_regret() -> None:
    found = EpsilonTrial(document(), 1.0, 150, 0).run()
    assert found.counted == 150
    assert found.regret is not None
    assert found.optimal is not None
    assert 0 < found.regret < found.optimal
    assert found == EpsilonTrial(document(), 1.0, 150, 0).run()


def test_a_row_on_synthetic_streams() -> None:
    runs = [EpsilonResult(100, 0.5, 0.25, 0.1, 0.6), EpsilonResult(100, 0.6, 0.24, 0.2, 0.6)]
    cheap = document(privacy={"answers": {"budget": {"epsilon": 20.0, "delta": 0.0}}})
    row = result_row(document=cheap, epsilon=2.0, runs=runs, unprotected=runs)
    assert row["reward_mean"] == pytest.approx(0.55)
    assert row["regret_mean"] == pytest.approx(0.15)
    assert row["share_of_optimal"] == pytest.approx(0.75)
    assert row["reward_low"] < 0.55 < row["reward_high"]
    assert row["requests_per_budget"] == 10


def test_a_row_on_logs_compares_with_no_protection() -> None:
    free, private = [EpsilonResult(400, 0.7, 0.21)], [EpsilonResult(400, 0.6, 0.24)]
    row = result_row(document=document(), epsilon=1.0, runs=private, unprotected=free)
    assert row["regret_mean"] == pytest.approx(0.1)
    assert row["share_of_optimal"] is None
    assert row["reward_high"] - 0.6 == pytest.approx(1.96 * (0.24 / 400) ** 0.5, rel=1e-4)
    nothing = [EpsilonResult(0, float("nan"), float("nan"))]
    row = result_row(document=document(), epsilon=1.0, runs=nothing, unprotected=free)
    assert row["reward_mean"] is None
    assert row["reward_low"] is None
