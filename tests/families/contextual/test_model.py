"""Decisions from the released model: the law, lists, exploration, new items."""

import math

import numpy as np
import pytest

from discreet.families.choice import COIN_SIDES
from discreet.families.contextual.cells import CellSpace
from discreet.families.contextual.learning import fit
from discreet.families.contextual.model import (
    AnswerRule,
    ContextualModel,
    ContextualQuestion,
)
from discreet.families.contextual.spaces import LinearSpace, space_for
from discreet.families.contextual.sums import ContextualSums
from discreet.research.noise import SeededNoise
from tests.families.contextual.people import summed

RNG = np.random.default_rng(3)


def model(
    dimensions: int = 2,
    *,
    epsilon: float | None = 2.0,
    items: int = 6,
    visible: int | None = None,
    rate: float = 0.02,
    people: int = 8_000,
) -> ContextualModel:
    """Return a model of people who like items by where they are."""
    space = space_for(dimensions)
    contexts = RNG.random((people, dimensions))
    places = np.linspace(0, 1, items)
    means = 0.1 + 0.8 * np.exp(-((contexts[:, :1] - places) ** 2) / 0.015)
    sums = summed(space, contexts, means, seed=0)
    return made(space, sums, epsilon=epsilon, visible=visible or items, rate=rate)


def made(
    space: CellSpace | LinearSpace,
    sums: ContextualSums,
    *,
    epsilon: float | None,
    visible: int,
    rate: float = 0.02,
) -> ContextualModel:
    sums = sums.fitted(visible)
    return ContextualModel(
        space,
        sums,
        fit(space, sums, np.arange(visible)),
        rule=AnswerRule(epsilon, 1),
        visible=np.arange(visible),
        exploration_rate=rate,
    )


def question(context: tuple[float, ...], limit: int = 1, items: int = 6) -> ContextualQuestion:
    return ContextualQuestion(
        b"client", limit, context=context, available=np.arange(items), whole=limit == 1
    )


def test_people_get_what_their_neighbours_like() -> None:
    exact = model(epsilon=None)
    for place, best in ((0.02, 0), (0.98, 5)):
        assert exact.first_choices(np.array([[place, 0.5]]))[0] == best


@pytest.mark.parametrize("dimensions", [2, 6])
def test_answers_have_the_law_of_randomised_response(dimensions: int) -> None:
    """20,000 draws: a share that is wrong by 30% is more than 10 standard errors off."""
    learned = model(dimensions)
    outlook = learned.outlook
    context = (0.02, *(0.5 for _ in range(dimensions - 1)))
    drawn = learned.decide([question(context)] * 20_000, SeededNoise(1))
    best = int(learned.first_choices(np.array([context]))[0])
    share = np.mean([choices[0].slot == best for choices, _ in drawn])
    size, explored = len(outlook.listed), outlook.coin / COIN_SIDES
    expected = (1 - explored) * math.exp(2.0) / (math.exp(2.0) + size - 1)
    expected += explored * outlook.curiosity[best] / outlook.curiosity.sum()
    assert abs(share - expected) < 0.02
    stated = {choices[0].slot: choices[0].propensity for choices, _ in drawn}
    assert abs(stated[best] - expected) < 1e-6


def test_the_law_that_a_release_expects_is_the_law_of_answers() -> None:
    learned = model(2)
    law = learned.law()
    assert np.allclose(law.sum(axis=0), 1.0)
    cells = learned.space.rows(np.array([[0.02, 0.5]]))[0].argmax()
    drawn = learned.decide([question((0.02, 0.5))] * 20_000, SeededNoise(2))
    counts = np.bincount([choices[0].slot for choices, _ in drawn], minlength=6)
    assert np.abs(counts / 20_000 - law[:, cells]).max() < 0.02


def test_before_anything_is_known_every_item_is_drawn_alike() -> None:
    space = space_for(5)
    blank = made(
        space,
        ContextualSums.blank(slots=4, entries=6, products=15, apart=False),
        epsilon=2.0,
        visible=4,
    )
    drawn = blank.decide([question((0.5,) * 5, items=4)] * 4_000, SeededNoise(3))
    counts = np.bincount([choices[0].slot for choices, _ in drawn], minlength=4)
    assert counts.min() > 850
    assert np.allclose(blank.law(), 0.25)


def test_a_new_item_gets_half_of_the_exploration() -> None:
    learned = model(2, visible=7)
    weights = learned.outlook.curiosity
    assert weights[6] / weights.sum() > 0.5
    assert learned.outlook.coin / COIN_SIDES >= 0.02


def test_nothing_is_explored_if_the_document_says_so() -> None:
    assert model(2, rate=0.0).outlook.coin == 0


def test_exploration_falls_as_there_is_less_to_gain() -> None:
    few, many = (model(2, people=people, rate=0.001) for people in (100, 8_000))
    assert few.outlook.coin > 3 * many.outlook.coin


def test_little_is_explored_where_private_answers_could_not_use_it() -> None:
    """The less an answer may tell, the less there is to gain by knowing who likes what."""
    little, much = (model(2, epsilon=epsilon, people=400, rate=0.001) for epsilon in (0.1, 4.0))
    assert little.outlook.coin < 0.3 * much.outlook.coin


def test_where_optimism_explores_no_more_answers_do_so_by_chance_than_can_gain() -> None:
    """Both dials off: nothing of the rate, and all of it while an item is new."""
    tried, new, private = (
        model(2, epsilon=epsilon, visible=visible).outlook.coin / COIN_SIDES
        for epsilon, visible in ((None, 6), (None, 7), (2.0, 6))
    )
    assert tried < 0.01
    assert min(new, private) >= 0.02


def test_unprotected_answers_are_more_optimistic() -> None:
    learned = model(2, people=400)
    unprotected, private = (
        made(learned.space, learned.sums, epsilon=epsilon, visible=6) for epsilon in (None, 2.0)
    )
    rows, slots = np.eye(36), np.arange(6)
    more = unprotected.utilities(rows, slots) - private.utilities(rows, slots)
    assert more.min() > 0


def test_lists_are_of_different_items_and_only_the_first_is_personal() -> None:
    learned = model(2)
    for choices, _ in learned.decide([question((0.5, 0.5), limit=4)] * 50, SeededNoise(4)):
        slots = [choice.slot for choice in choices]
        assert len(slots) == len(set(slots)) == 4


def test_the_answer_to_anybody_ignores_the_context() -> None:
    learned = model(2)
    for seed in range(20):
        one, two = (
            learned.decide_for_anybody(question(at, limit=3), SeededNoise(seed))
            for at in ((0.0, 0.0), (1.0, 1.0))
        )
        assert one == two


def test_one_question_in_a_batch_is_decided_as_alone() -> None:
    exact = model(5, epsilon=None, rate=0.0)
    contexts = [tuple(row) for row in RNG.random((20, 5)).tolist()]
    together = exact.decide([question(each) for each in contexts], SeededNoise(0))
    for context, decided in zip(contexts, together, strict=True):
        (alone,) = exact.decide([question(context)], SeededNoise(0))
        assert alone[0] == decided[0]
        assert alone[1] == decided[1]


def test_the_expected_regret_is_that_of_the_answers_by_the_models_own_means() -> None:
    learned = model(2)
    assert learned.estimates is not None
    contexts = [tuple(row) for row in RNG.random((4_000, 2)).tolist()]
    drawn = learned.decide([question(each) for each in contexts], SeededNoise(5))
    means = learned.estimates.means(learned.space.rows(np.array(contexts)), np.arange(6))
    chosen = [choices[0].slot for choices, _ in drawn]
    lost = (means.max(axis=1) - means[np.arange(len(chosen)), chosen]).mean()
    assert abs(learned.expected_regret() - lost) < 0.03


@pytest.mark.parametrize("seed", range(8))
def test_a_release_of_hardly_anybody_is_noise_and_does_not_end_exploring(seed: int) -> None:
    space = space_for(2, items=16, exact=False)
    rng = np.random.default_rng(seed)
    few = summed(space, rng.random((40, 2)), np.full((40, 16), 0.3), seed=seed, deviation=1.8)
    assert made(space, few, epsilon=2.0, visible=16).outlook.coin > 0.5 * COIN_SIDES
    # A thousand times as many are heard through the same noise.
    many = summed(space, rng.random((40_000, 2)), np.full((40_000, 16), 0.3), seed=9, deviation=1.8)
    assert made(space, many, epsilon=2.0, visible=16).outlook.coin < 0.1 * COIN_SIDES
