"""Decisions from a released model: private in the context, exactly."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.families.p_dap.model import ChoiceRule, PartitionQuestion, Population
from discreet.families.p_dap.statistics import CellStatistics
from discreet.privacy.events import RandomisedResponse
from discreet.research.noise import SeededNoise

SLOTS = 5
VISIBLE = np.arange(SLOTS, dtype=np.intp)


def population(seed: int = 0, *, releases: int = 4, rate: float = 0.02) -> Population:
    """A population of a few cells, whose favourites differ."""
    rng = np.random.default_rng(seed)
    statistics = CellStatistics.blank(segments=2, slots=SLOTS)
    for release in range(releases):
        blocks = {}
        for cell in statistics.tree.leaves.tolist():
            vector = np.zeros(2 * SLOTS, dtype=np.int64)
            for slot in range(SLOTS):
                shown = int(rng.integers(20, 200))
                liked = rng.binomial(shown, 0.8 if slot == (cell + seed) % SLOTS else 0.3)
                vector[2 * slot] = liked * 2**20
                vector[2 * slot + 1] = (shown - liked) * 2**20
            blocks[cell] = vector
        statistics = statistics.grown(
            blocks, live=VISIBLE, deviation=4.0, noise=SeededNoise(release)
        )
        statistics = statistics.divided(dimensions=2, base=50.0, growth=0.5, most_cells=64)
    return Population(statistics, dimensions=2, visible=VISIBLE, exploration_rate=rate)


def question(context: tuple[float, float], **given: Any) -> PartitionQuestion:
    fields: dict[str, Any] = {"client": b"c", "limit": 1, "available": VISIBLE, **given}
    fields["whole"] = fields["available"] is VISIBLE
    return PartitionQuestion(context=context, **fields)


def laws(people: Population, rule: ChoiceRule) -> list[dict[int, Fraction]]:
    """The exact law of one item's answer from every undivided cell."""
    outlook = people.outlook(rule)
    found = []
    for cell in people.statistics.tree.leaves.tolist():
        odds = people.odds(outlook, VISIBLE, people.levels[cell])
        found.append(odds.law(outlook.best[cell]))
    return found


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("similarity", [None, 0.5])
@pytest.mark.parametrize("seed", [0, 1])
def test_no_item_tells_two_contexts_apart_by_more_than_was_charged(
    epsilon: float, similarity: float | None, seed: int
) -> None:
    people = population(seed)
    rule = ChoiceRule(epsilon, similarity)
    (event,) = people.outlook(rule).events(1)
    assert isinstance(event, RandomisedResponse)
    bound = Fraction(math.exp(event.epsilon)) * (1 + Fraction(1, 2**40))
    found = laws(people, rule)
    assert len(found) > 4
    worst = max(
        one[slot] / other[slot] for one in found for other in found for slot in range(SLOTS)
    )
    assert worst <= bound
    if similarity is None and epsilon >= 1:
        assert worst > Fraction(math.exp(0.7 * epsilon)), "the bound is nearly reached"


def test_the_best_item_of_a_cell_is_answered_most() -> None:
    people = population()
    rule = ChoiceRule(4.0)
    tree = people.statistics.tree
    for cell in tree.leaves.tolist():
        outlook = people.outlook(rule)
        law = people.odds(outlook, VISIBLE, people.levels[cell]).law(outlook.best[cell])
        favourite = max(law, key=lambda slot: law[slot])
        shortlist = outlook.ranking[: outlook.size]
        assert favourite == shortlist[people.utilities[cell, shortlist].argmax()]


def test_draws_follow_the_law() -> None:
    """20,000 draws a cell: a share off by 0.02 is over five deviations."""
    people, rule = population(), ChoiceRule(1.0)
    tree, outlook = people.statistics.tree, people.outlook(rule)
    cell = int(tree.leaves[0])
    context = tree.centre(cell, 2)
    decided = people.decide([question(context)] * 20_000, rule, SeededNoise(8))  # type: ignore[arg-type]
    counts = np.bincount([choices[0].slot for choices, _ in decided], minlength=SLOTS)
    law = people.odds(outlook, VISIBLE, people.levels[cell]).law(outlook.best[cell])
    for slot in range(SLOTS):
        assert counts[slot] / 20_000 == pytest.approx(float(law[slot]), abs=0.02)
        expected = {choices[0].propensity for choices, _ in decided if choices[0].slot == slot}
        assert list(expected) == [pytest.approx(float(law[slot]))]


@pytest.mark.parametrize("rule", [ChoiceRule(1.0), ChoiceRule(0.5, 0.5), ChoiceRule(None)])
@pytest.mark.parametrize("rate", [0.0, 0.1])
def test_the_expected_regret_is_that_of_the_law(rule: ChoiceRule, rate: float) -> None:
    people = population(rate=rate)
    outlook, leaves = people.outlook(rule), people.statistics.tree.leaves.tolist()
    expected = 0.0
    for cell, share in zip(leaves, people.statistics.shares().tolist(), strict=True):
        odds = people.odds(outlook, VISIBLE, people.levels[cell])
        best = outlook.best[cell]
        if odds.response is None:
            best = int(people.utilities[cell, odds.ranking].argmax())
        means = people.means[cell]
        law = odds.law(best)
        earned = sum(float(chance) * means[slot] for slot, chance in law.items())
        expected += share * (means.max() - earned)
    assert people.expected_regret(rule) == pytest.approx(expected, abs=1e-6)
    assert people.expected_regret(rule) > (0.0 if rate or rule.epsilon else -1e-9)


def test_many_questions_are_decided_as_each_would_be() -> None:
    people, rule = population(), ChoiceRule(None)
    rng = np.random.default_rng(4)
    asked = [question(tuple(point)) for point in rng.random((40, 2)).tolist()]
    asked[7] = question((0.1, 0.9), limit=3)
    asked[9] = question((0.9, 0.9), available=np.array([1, 3], dtype=np.intp))
    exact = Population(people.statistics, dimensions=2, visible=VISIBLE, exploration_rate=0.0)
    together = exact.decide(asked, rule, SeededNoise(0))
    alone = [exact.decide([one], rule, SeededNoise(0))[0] for one in asked]
    assert together == alone


@pytest.mark.parametrize("limit", [1, 2, 5, 9])
def test_a_list_has_no_item_twice_and_nothing_that_is_not_available(limit: int) -> None:
    people = population()
    available = np.array([0, 2, 4], dtype=np.intp)
    for seed in range(20):
        one = question((0.3, 0.6), limit=limit, available=available)
        ((choices, _),) = people.decide([one], ChoiceRule(1.0), SeededNoise(seed))
        slots = [choice.slot for choice in choices]
        assert len(slots) == len(set(slots)) == min(limit, 3)
        assert set(slots) <= {0, 2, 4}


def test_without_the_client_the_law_does_not_depend_on_the_context() -> None:
    people = population()
    for seed in range(30):
        found = {
            people.decide_for_anybody(question(context), ChoiceRule(1.0), SeededNoise(seed))
            for context in ((0.1, 0.1), (0.9, 0.9), (0.1, 0.9))
        }
        assert len(found) == 1


def test_before_anything_is_known_every_item_is_as_likely() -> None:
    blank = Population(
        CellStatistics.blank(segments=2, slots=SLOTS),
        dimensions=2,
        visible=VISIBLE,
        exploration_rate=0.02,
    )
    law = blank.odds(blank.outlook(ChoiceRule(1.0)), VISIBLE, 0).law(0)
    assert set(law.values()) == {Fraction(1, SLOTS)}


def test_a_zero_exploration_rate_never_explores() -> None:
    assert population(rate=0.0).outlook(ChoiceRule(1.0)).coin == 0


def test_the_model_is_not_changed_by_deciding() -> None:
    people = population()
    before = people.statistics.liked.copy(), people.utilities.copy()
    people.decide([question((0.2, 0.2))] * 50, ChoiceRule(1.0), SeededNoise(1))
    assert np.array_equal(people.statistics.liked, before[0])
    assert np.array_equal(people.utilities, before[1])


def test_what_is_kept_of_rules_is_bounded() -> None:
    people = population()
    for place in range(300):
        people.outlook(ChoiceRule(1.0 + place / 1_000))
    assert len(people._outlooks) <= 64
