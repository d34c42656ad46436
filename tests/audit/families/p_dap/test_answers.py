"""The model that the audit of p-dap's answers is about, and how laws are read off it."""

from fractions import Fraction

import pytest

from discreet.audit.families.p_dap.answers import (
    CONTEXTS,
    Batch,
    BatchTape,
    Place,
    charged,
    degraded,
    listed_law,
    odds_of,
    row_law,
    taught,
)
from discreet.families.choice import COIN_SIDES


def test_the_lesson_leaves_cells_that_disagree_at_different_depths() -> None:
    """Otherwise there would be nothing to find."""
    recommender = taught("geometric")
    found = [odds_of(recommender, context) for context in CONTEXTS]
    bests = {int(odds.ranking[utilities[: odds.size].argmax()]) for odds, utilities in found}
    assert bests == {0, 1, 2}
    assert len({odds.response for odds, _ in found}) > 1


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_lists_have_probability_one(limit: int) -> None:
    assert sum(listed_law(*odds_of(taught("uniform"), 0.3), limit).values()) == 1


def test_a_law_has_probability_one_and_the_models_share_of_exploration() -> None:
    recommender = taught("uniform")
    law = row_law(Batch(recommender, (0.04, 0.3, 0.95)), 1)
    assert sum(law.values()) == 1
    explored = Fraction(recommender.current.model.own.outlook(recommender.rule).coin, COIN_SIDES)
    assert 0 < explored < 1
    assert min(law.values()) > 0


def test_a_spent_budget_is_answered_by_one_law() -> None:
    recommender = taught("uniform")
    laws = [row_law(Batch(recommender, (context,), degraded), 0) for context in CONTEXTS]
    assert all(law == laws[0] for law in laws)


def test_a_list_costs_as_many_draws_as_it_has_items() -> None:
    recommender = taught("uniform")
    (one, _), (two, _) = charged(recommender), charged(recommender, limit=2)
    assert two == 2 * one == Fraction("1.4")


def test_a_tape_says_what_it_was_given_in_one_place_and_its_byte_everywhere_else() -> None:
    tape = BatchTape(0xA5, Place(1, 2), (7, 9))
    assert tape.bits(96) == int.from_bytes(b"\xa5" * 12, "little")
    assert tape.bits(960) == int.from_bytes(b"\xa5" * 120, "little")
    assert tape.bits(96).to_bytes(12, "little") == b"\xa5" * 8 + (7).to_bytes(4, "little")
    uniforms = tape.bits(960).to_bytes(120, "little")
    assert uniforms == b"\xa5" * 80 + (9).to_bytes(40, "little")
