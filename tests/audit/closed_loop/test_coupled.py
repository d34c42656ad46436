"""Two worlds in one view: what is measured is what was charged, and every difference has a reason.

Nothing here is sampled: paths are written down, and numbers are rationals.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from discreet.audit.closed_loop.claiming import examine_planted, story_named
from discreet.audit.closed_loop.coupled import Path, walk_paths
from discreet.audit.closed_loop.faulty import (
    decides_from_raw_sums,
    exactness_unbooked,
    releases_by_feedback,
)
from discreet.audit.closed_loop.losses import Loss, judge_answers, judge_feedback
from discreet.audit.closed_loop.stage import Planted
from discreet.audit.closed_loop.story import PERSON, Asks, Story, Tells, Waits
from discreet.audit.families.collaborative import closed_loop as collaborative
from discreet.audit.families.mirror_descent import closed_loop as mirror_descent
from discreet.audit.families.mirror_descent.records import LargeCount
from discreet.audit.families.p_dap import closed_loop as p_dap
from discreet.audit.mechanisms.stores import LinearPriceStore, UnpaidStore
from discreet.families.mirror_descent.recommender import MirrorDescentRecommender
from discreet.families.p_dap.recommender import PartitionRecommender

ONE = "one record, feedback epsilon 1"
THREE = "three records in each of two releases, feedback epsilon 1"


def losses(part: str, planted: Planted | None = None, paths: int = 2) -> list[Loss]:
    story = story_named(part, p_dap.stories())
    return list(walk_paths(story, p_dap.PartitionLoop(), paths, planted or Planted()))


@pytest.mark.parametrize(
    ("part", "times"),
    [
        (ONE, 1),
        (THREE, 18),
        ("feedback or none", Fraction(3, 2)),
        ("feedback now or after a release", 1),
        ("feedback soon, or late and all at once", 6),
    ],
)
def test_feedback_costs_what_was_charged_to_six_digits(part: str, times: Fraction) -> None:
    """A record costs rho, n in a release n**2 times that, and one that comes or goes half."""
    found = losses(part)
    rho = losses(ONE, paths=1)[0].feedback_charged
    assert rho is not None
    shares = []
    for loss in found:
        assert loss.because == ""
        assert loss.feedback is not None
        assert loss.feedback_charged == times * rho
        shares.append(loss.feedback / loss.feedback_charged)
    assert 0.999999 < max(shares) <= 1


def test_answers_lose_up_to_what_was_charged() -> None:
    silent, split = losses(THREE)
    assert silent.answers == 0, "before anything is known, all contexts are answered alike"
    assert split.answers is not None
    assert split.answers_charged == 3
    assert 2 < split.answers < 3


def test_nothing_is_lost_if_the_person_does_the_same_in_both_worlds() -> None:
    story = story_named(THREE, p_dap.stories())
    same = replace(story, person=(story.person[0], story.person[0]))
    for loss in walk_paths(same, p_dap.PartitionLoop(), 2):
        assert (loss.answers, loss.feedback, loss.because) == (0, 0, "")


@pytest.mark.parametrize(
    ("planted", "part", "reason"),
    [
        (Planted(recommender=decides_from_raw_sums(PartitionRecommender)), ONE, "two laws"),
        (
            Planted(recommender=releases_by_feedback(PartitionRecommender, records=3)),
            "feedback or none",
            "another moment",
        ),
        (
            Planted(recommender=exactness_unbooked(PartitionRecommender)),
            "exact feedback",
            "no noise can hide",
        ),
    ],
    ids=["raw sums", "moment", "exact"],
)
def test_what_tells_worlds_apart_is_named(planted: Planted, part: str, reason: str) -> None:
    found = losses(part, planted)
    assert any(reason in loss.because for loss in found)
    assert not (judge_answers(found).holds and judge_feedback(found).holds)


def test_the_unpaid_and_the_underpaid_are_measured_to_the_record() -> None:
    (honest, *_), (cheap, *_) = losses(THREE), losses(THREE, Planted(store=LinearPriceStore))
    assert cheap.feedback == honest.feedback
    assert cheap.feedback_charged is not None
    assert honest.feedback_charged is not None
    assert 3 * cheap.feedback_charged == honest.feedback_charged
    unpaid = losses("budgets spent", Planted(store=UnpaidStore))
    assert not judge_feedback(unpaid).holds
    assert judge_answers(unpaid).holds


class TooLargeACount(MirrorDescentRecommender):
    """A record that comes costs as much as one that turns round."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        honest = self.learner
        self.learner = LargeCount(
            dimension=honest.dimension,
            epsilon=honest.epsilon,
            delta=honest.delta,
            truncation=honest.truncation,
        )


def test_feedback_that_moves_to_another_release_must_not_cost_twice() -> None:
    """Every single release is covered by what is charged; only both together are not."""
    loop, planted = mirror_descent.MirrorLoop(), Planted(recommender=TooLargeACount)
    moved = story_named("feedback now or after a release", mirror_descent.stories())
    (loss,) = walk_paths(moved, loop, 1, planted)
    assert loss.feedback is not None
    assert loss.feedback_charged is not None
    assert loss.feedback / loss.feedback_charged == pytest.approx(2, rel=1e-5)
    assert not examine_planted(planted, moved, loop).holds
    one = story_named(ONE, mirror_descent.stories())
    assert examine_planted(planted, one, loop).holds


def test_an_unlimited_charge_covers_everything_and_a_limited_one_nothing_infinite() -> None:
    assert judge_feedback([Loss(feedback=None, feedback_charged=None)]).holds
    assert not judge_feedback([Loss(feedback=None, feedback_charged=Fraction(10**9))]).holds
    rows = [Loss(answers=Fraction(1), answers_charged=Fraction(2)), Loss()]
    assert judge_answers(rows).holds
    assert judge_answers(rows).measured == 0.0, "the one with the least room is shown"


def test_paths_differ_and_begin_with_the_first_and_the_second_answer() -> None:
    assert [Path(0).answer(at, 2) for at in range(4)] == [0, 0, 0, 0]
    assert [Path(1).answer(at, 2) for at in range(4)] == [1, 1, 1, 1]
    walked = {tuple(Path(number).answer(at, 2) for at in range(12)) for number in range(8)}
    assert len(walked) == 8


def _steps() -> Iterator[Any]:
    yield from (Asks(PERSON), Tells(PERSON), Waits(), Asks("first"))


def test_a_family_that_draws_nothing_is_walked_too() -> None:
    story = Story(
        name="short",
        document=collaborative.document(),
        steps=[*_steps()],
        others=collaborative.CAST.others,
        person=collaborative.CAST.opposites,
    )
    (loss,) = walk_paths(story, collaborative.CollaborativeLoop(), 1)
    assert loss.answers == 0
    assert loss.feedback is not None
    assert loss.feedback > 0
