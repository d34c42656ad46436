"""Sampled worlds: equal ones cannot be told apart, and a deterministic difference always is.

Noise is seeded. The bound that n runs of a world can reach is stated, and reached.
"""

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet.audit.claims import FALSE_ALARM, SHARES, AuditRun
from discreet.audit.closed_loop.faulty import releases_by_feedback
from discreet.audit.closed_loop.sampled import SampledRuns, examine_by_sampling
from discreet.audit.closed_loop.stage import NOTHING_PLANTED, Planted
from discreet.audit.closed_loop.stories import rounds
from discreet.audit.closed_loop.story import Races, Story
from discreet.audit.families.p_dap.closed_loop import CAST, PartitionLoop
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.research.noise import SeededNoise

RUNS = 120
STORY = Story(
    name="two rounds",
    document=CAST.document(feedback=0.1, answers=0.01),
    steps=[*rounds(2)],
    others=CAST.others,
    person=CAST.silent(),
)


def run(seed: int) -> AuditRun:
    return AuditRun(quick=True, noise=SeededNoise(seed))


def test_equal_worlds_give_no_bound() -> None:
    same = replace(STORY, person=(STORY.person[0], STORY.person[0]))
    found = examine_by_sampling(run(1), same, PartitionLoop(), runs=RUNS, delta=1e-6)
    assert found.holds
    assert found.measured == 0


def test_the_ledger_bounds_what_is_seen() -> None:
    found = examine_by_sampling(run(2), STORY, PartitionLoop(), runs=RUNS, delta=1e-6)
    assert found.holds
    assert 0.02 < found.claimed < 1, "two answers at 0.01, and two records at 0.1"


def test_a_difference_for_certain_is_bounded_by_the_number_of_runs_alone() -> None:
    planted = Planted(recommender=releases_by_feedback(PartitionRecommender, records=3))
    found = examine_by_sampling(
        run(3), STORY, PartitionLoop(), runs=RUNS, delta=0.0 + 1e-6, planted=planted
    )
    assert not found.holds
    low = (FALSE_ALARM / SHARES / 2) ** (2 / RUNS)
    assert found.measured == pytest.approx(math.log((low - 1e-6) / (1 - low)), rel=1e-6)


async def _views(world: int, seed: int) -> np.ndarray:
    runs = SampledRuns(STORY, world, PartitionLoop(), NOTHING_PLANTED, 5)
    views, _, _ = await runs.play(SeededNoise(seed))
    return views


@pytest.mark.anyio
async def test_a_view_has_answers_moments_models_and_the_ledger_and_is_repeatable() -> None:
    views = await _views(0, 4)
    # Eight answers of two numbers, two releases of a flag, a moment and five sums, and the ledger.
    assert views.shape == (5, 8 * 2 + 2 * 7 + 1)
    assert np.array_equal(views, await _views(0, 4))
    assert len({tuple(row) for row in views.tolist()}) == 5, "runs are independent"
    assert np.allclose(views[:, -1], 0.02)


@pytest.mark.anyio
async def test_a_story_with_races_cannot_be_sampled() -> None:
    racing = replace(STORY, steps=[Races()])
    with pytest.raises(ValueError, match="questions, feedback and releases"):
        await SampledRuns(racing, 0, PartitionLoop(), NOTHING_PLANTED, 1).play(SeededNoise(5))
