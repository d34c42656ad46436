"""A trial: one learner in one world, added up in blocks."""

import pickle

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.suite.stretches import BLOCK
from discreet.research.suite.trials import (
    SuiteTrial,
    missing_rivals,
    open_world,
)


def trial(world: str, learner: str, answers: float | None = None, **others: object) -> SuiteTrial:
    fields = {"feedback": None, "rounds": 1_000, "seed": 0, "rate": 200.0, "compared": (answers,)}
    return SuiteTrial(world, learner, answers, **{**fields, **others})  # type: ignore[arg-type]


def test_sums_are_those_of_the_world() -> None:
    result = trial("popularity", "chance", compared=(None, 1.0)).run()
    (stretch,) = open_world("popularity", seed=0).stretches(rounds=1_000, seed=0)
    np.testing.assert_allclose(result.fixed.sum(axis=0), stretch.means.sum(axis=0))
    # Everybody likes the same item best, so privacy costs the optimum nothing.
    np.testing.assert_allclose(result.ceilings[None], BLOCK * stretch.means[0].max())
    np.testing.assert_allclose(result.ceilings[1.0], result.ceilings[None])
    assert result.earned.sum() == pytest.approx(1_000 * stretch.means.mean(), rel=0.05)


def test_items_that_are_not_on_offer_have_no_sum() -> None:
    result = trial("come-and-go", "popular", rounds=2_000).run()
    assert np.isnan(result.fixed[-1, 0])
    assert not np.isnan(result.fixed[0, 0])
    assert result.items == 20


@pytest.mark.parametrize("learner", ["p-dap", "linucb", "vw", "popular"])
def test_a_learner_does_better_than_chance(learner: str) -> None:
    """In the world that everybody likes alike; chance earns 0.74 of the best item there."""
    chance = trial("popularity", "chance", rounds=3_000).run()
    result = trial("popularity", learner, rounds=3_000).run()
    assert result.earned[6:].sum() > 1.05 * chance.earned[6:].sum()


def test_popularity_is_learned_from_private_feedback_too() -> None:
    exact = trial("popularity", "popular", rounds=6_000).run()
    private = trial("popularity", "popular", rounds=6_000, feedback=1.0).run()
    assert private.earned[:8].sum() < exact.earned[:8].sum()  # before its first release
    assert private.earned[16:].sum() > 0.9 * exact.earned[16:].sum()


def test_no_rival_is_missing_where_tests_run() -> None:
    assert missing_rivals() == []


def test_a_trial_can_be_given_to_another_process() -> None:
    one = trial("bumps", "p-dap", 2.0)
    assert pickle.loads(pickle.dumps(one)) == one
    result = one.run()
    again = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(result.earned, again.earned)
    np.testing.assert_array_equal(result.earned, one.run().earned)


def test_an_unknown_world_is_refused_with_the_names() -> None:
    with pytest.raises(InvalidArgument, match="there are bumps, logistic-8"):
        open_world("flat", seed=0)
