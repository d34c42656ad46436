"""Answers from a released model and the client's own sums."""

from collections.abc import Sequence

import numpy as np
import pytest

from discreet.errors import InvalidArgument, UnknownDecision
from discreet.families.choice import UtilityChoice
from discreet.families.fclub.evidence import Knowledge
from discreet.families.fclub.features import coordinates, decoded
from discreet.families.fclub.model import (
    BUDGET_SPENT,
    EXACT_ANSWERS,
    MOST_KINDS,
    NO_FEEDBACK,
    NOTHING_TO_CHOOSE,
    ClusterModel,
    ClusterQuestion,
    Ranking,
    UserKinds,
    features_shown,
    note_bytes,
    position_of,
)
from discreet.families.fclub.own_rows import OwnEncoding
from discreet.families.fclub.sums import SumsEncoding
from discreet.families.questions import Choice, Decision, PendingDecision
from discreet.research.noise import SeededNoise
from discreet.state.stores import Vector

D = 2
VARIETY = 0.25
ENCODING = SumsEncoding(dimensions=D)
NOTHING = np.zeros(0, dtype=np.int64)
IDS = ("right", "left", "up", "down")
ROWS = ((0.9, 0.0), (-0.9, 0.0), (0.0, 0.9), (0.0, -0.9))


class Released(ClusterModel):
    """A model that knows some kinds of users."""

    def __init__(self, *tastes: Sequence[float], weight: float = 500.0) -> None:
        matrices = np.array([weight * np.eye(D)] * len(tastes)).reshape(-1, D, D)
        vectors = weight * np.array(tastes).reshape(-1, D)
        self.kinds = UserKinds(Knowledge(matrices, vectors), np.ones(len(tastes)), VARIETY)
        self.updates = ()

    @property
    def clusters(self) -> int:
        return len(self.kinds.shares)


def question(*, client: bytes = b"c" * 16, limit: int = 1, most: int = 4) -> ClusterQuestion:
    steps = np.array(
        [coordinates(row, dimensions=D, scale=False, field="f") for row in ROWS[:most]],
        dtype=np.int16,
    ).reshape(-1, D)
    return ClusterQuestion(
        client=client, limit=limit, ids=IDS[:most], steps=steps, features=decoded(steps)
    )


def ranking(epsilon: float | None = None, exploration: float = 0.7) -> Ranking:
    return Ranking(
        own=OwnEncoding(ENCODING),
        reward_variance=0.2,
        exploration=exploration,
        choice=UtilityChoice(epsilon),
    )


def taught(x: Sequence[float], reward: float, times: int) -> Vector:
    return times * ENCODING.observation(x=x, reward=reward)


def test_without_kinds_a_user_is_known_by_their_own_sums() -> None:
    own = Knowledge(np.array([np.diag([30.0, 0.0])]), np.array([[15.0, 0.0]]))
    estimate, covariance = Released().kinds.preferences(own)
    assert np.allclose(estimate, [[15 / 34, 0.0]])
    assert np.allclose(covariance[0], np.diag([1 / 34, VARIETY]))


def test_a_kind_that_fits_is_believed_and_one_that_does_not_soon_counts_for_nothing() -> None:
    kinds = Released((0.45, 0.0), (-0.45, 0.0)).kinds
    weak = Knowledge(np.array([np.diag([30.0, 0.0])]), np.array([[13.5, 0.0]]))
    estimate, covariance = kinds.preferences(weak)
    # Alone: 13.5 / 34. The kind that fits adds what it knows, also of the other coordinate.
    assert 0.41 < estimate[0, 0] < 0.46
    assert covariance[0, 1, 1] < VARIETY
    strange = Knowledge(np.array([2_000 * np.eye(D)]), np.array([[0.0, 900.0]]))
    estimate, _ = kinds.preferences(strange)
    assert np.allclose(estimate[0], [0.0, 0.45], atol=0.002)


def test_many_users_are_known_as_each_alone() -> None:
    kinds = Released((0.45, 0.0), (0.0, -0.45)).kinds
    rng = np.random.default_rng(1)
    count = 7
    own = Knowledge(
        np.array([np.diag(rng.random(D) * 50) for _ in range(count)]), rng.normal(size=(count, D))
    )
    together = kinds.preferences(own)
    for place in range(count):
        alone = kinds.preferences(own[place : place + 1])
        assert np.allclose(together.estimate[place], alone.estimate[0])
        assert np.allclose(together.covariance[place], alone.covariance[0])


@pytest.mark.parametrize("dimensions", [3, 10, 37, 40])
def test_users_are_known_as_the_mixture_of_all_kinds_by_direct_inverses(dimensions: int) -> None:
    rng = np.random.default_rng(dimensions)
    drawn = rng.normal(size=(9, 2 * dimensions, dimensions))
    matrices = np.swapaxes(drawn, 1, 2) @ drawn
    vectors = 0.2 * (matrices @ rng.normal(size=(9, dimensions, 1)))[..., 0]
    known, own = Knowledge(matrices[:4], vectors[:4]), Knowledge(matrices[4:], vectors[4:])
    kinds = UserKinds(known, np.array([1.0, 2.0, 3.0, 4.0]), VARIETY)
    found = kinds.preferences(own)
    prior = np.eye(dimensions) / VARIETY
    alike = [(np.zeros_like(prior), np.zeros(dimensions), 0.5)]
    alike += zip(known.matrix, known.vector, kinds.shares / 20, strict=True)
    for place in range(len(own)):
        fits, means, covariances = [], [], []
        for matrix, vector, share in alike:
            both, moment = prior + matrix + own.matrix[place], vector + own.vector[place]
            covariances.append(np.linalg.inv(both))
            means.append(covariances[-1] @ moment)
            before = vector @ np.linalg.inv(prior + matrix) @ vector
            gained = moment @ means[-1] - before - np.linalg.slogdet(both)[1]
            fits.append(np.log(share) + 0.5 * (gained + np.linalg.slogdet(prior + matrix)[1]))
        weights = np.exp(np.array(fits) - max(fits))
        weights /= weights.sum()
        estimate = weights @ np.array(means)
        apart = np.array(means) - estimate
        within = np.tensordot(weights, np.array(covariances), axes=1)
        assert found.estimate[place] == pytest.approx(estimate, rel=1e-9, abs=1e-11)
        between = np.einsum("k,ki,kj->ij", weights, apart, apart)
        assert found.covariance[place] == pytest.approx(within + between, rel=1e-9, abs=1e-11)


def test_users_are_compared_with_the_largest_kinds_only() -> None:
    count = MOST_KINDS + 5
    knowledge = Knowledge(np.array([np.eye(D)] * count), np.zeros((count, D)))
    shares = np.arange(count, dtype=np.float64)
    kept = UserKinds(knowledge, shares, VARIETY).largest()
    assert kept.shares.tolist() == list(range(5, count))
    some = UserKinds(knowledge[:3], np.array([0.0, 2.0, 0.0]), VARIETY).largest()
    assert some.shares.tolist() == [2.0]


def test_the_clients_own_sums_decide_and_others_sums_do_not() -> None:
    own = [taught((0.9, 0.0), 1.0, 60), taught((-0.9, 0.0), 1.0, 60)]
    decided = ranking().decide(Released(), [question(), question()], own, SeededNoise(1))
    assert [one.items for one in decided] == [("right",), ("left",)]
    assert all(one.personalised and one.reason == EXACT_ANSWERS for one in decided)


def test_what_is_unknown_is_explored() -> None:
    own = taught((0.0, 0.9), 0.5, 500) + taught((0.9, 0.0), 0.5, 2)
    bold = ranking(exploration=5.0).decide(Released(), [question()], [own], SeededNoise(1))
    assert bold[0].items[0] in ("right", "left")


def test_who_gave_no_feedback_is_answered_by_the_model_and_that_is_said() -> None:
    (one,) = ranking().decide(Released((0.0, 0.45)), [question()], [NOTHING], SeededNoise(1))
    assert one.items == ("up",)
    assert (one.personalised, one.reason) == (False, NO_FEEDBACK)
    # A protected answer must not tell whether there is feedback.
    (private,) = ranking(1.0).decide(Released(), [question()], [NOTHING], SeededNoise(1))
    assert (private.personalised, private.reason) == (True, None)


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_one_item_is_no_choice(epsilon: float | None) -> None:
    model, own = Released(), [taught((0.9, 0.0), 1.0, 9)]
    (one,) = ranking(epsilon).decide(model, [question(most=1)], own, SeededNoise(1))
    assert (one.items, one.personalised, one.reason) == (("right",), False, NOTHING_TO_CHOOSE)
    (none,) = ranking(epsilon).decide(model, [question(most=0)], own, SeededNoise(1))
    assert (none.items, none.choices, none.note, none.personalised) == ((), (), b"", False)


def test_a_spent_budget_is_answered_without_looking_at_the_client() -> None:
    asked = [question(client=bytes([n]) * 16, limit=2) for n in range(3)]
    decided = ranking(1.0).decide_for_anybody(Released((0.45, 0.0)), asked, SeededNoise(1))
    assert {one.items for one in decided} == {decided[0].items}
    assert decided[0].items[0] == "right"
    assert all((one.personalised, one.reason) == (False, BUDGET_SPENT) for one in decided)


def test_private_answers_lean_to_what_is_liked() -> None:
    """At epsilon 4 the best of four has the largest odds; 400 draws, far from 1/4 by 6 sigmas."""
    own = [taught((0.9, 0.0), 1.0, 200) + taught((-0.9, 0.0), 0.0, 200)] * 400
    decided = ranking(4.0, exploration=0.0).decide(
        Released(), [question()] * 400, own, SeededNoise(2)
    )
    share = np.mean([one.items == ("right",) for one in decided])
    assert share > 0.38
    assert all(0 < one.choices[0].propensity < 1 for one in decided)


def test_deciding_is_a_function_of_its_arguments() -> None:
    own = [taught((0.9, 0.0), 1.0, 5)] * 3
    before = [vector.copy() for vector in own]
    asked = [question(limit=3)] * 3

    def decided() -> list[Decision]:
        return ranking(1.0).decide(Released((0.1, 0.1)), asked, own, SeededNoise(3))

    assert decided() == decided()
    assert all(np.array_equal(a, b) for a, b in zip(own, before, strict=True))


def pending(decision: Decision, note: bytes | None = None) -> PendingDecision:
    return PendingDecision(
        generation=b"g" * 8,
        decision_id=b"d" * 12,
        expires_at=0,
        principal=b"c" * 16,
        personalised=True,
        choices=decision.choices,
        note=decision.note if note is None else note,
    )


def test_a_recommendation_carries_what_was_shown() -> None:
    (decision,) = ranking().decide(Released(), [question(limit=3)], [NOTHING], SeededNoise(1))
    held = pending(decision)
    assert len(held.note) == 3 * note_bytes(D)
    for place, item in enumerate(decision.items):
        assert position_of(held, item, dimensions=D) == place
        steps = np.frombuffer(features_shown(held, place, D), dtype="<i2")
        assert steps.tolist() == question().steps[IDS.index(item)].tolist()
    with pytest.raises(InvalidArgument, match="must name the item"):
        position_of(held, None, dimensions=D)
    with pytest.raises(InvalidArgument, match="not one of the items"):
        position_of(held, "elsewhere", dimensions=D)
    with pytest.raises(UnknownDecision):
        position_of(held, decision.items[0], dimensions=D + 1)
    with pytest.raises(UnknownDecision):
        features_shown(held, 0, D + 1)


def test_an_empty_recommendation_takes_no_feedback() -> None:
    nothing = Decision(items=(), choices=(), personalised=False)
    with pytest.raises(InvalidArgument, match="empty"):
        position_of(pending(nothing), None, dimensions=D)
    one = Decision(items=("a",), choices=(Choice(0, 1.0),), personalised=False)
    assert position_of(pending(one, bytes(note_bytes(D))), None, dimensions=D) == 0
