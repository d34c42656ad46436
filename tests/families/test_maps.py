"""Maps: drawn from the released model alone, once each, and never finer than they may cost."""

from typing import Any

import numpy as np
import pytest

from discreet.errors import UnknownRecommender
from discreet.families.maps import COARSEST, FINEST, ModelMap, fields_across
from discreet.families.p_dap.recommender import PartitionRecommender, own_note
from discreet.research.noise import SeededNoise
from tests.families.p_dap.places import recommender

UNIT = 2**20
"""One observation, as sums hold it."""


def teach(one: PartitionRecommender, number: int) -> None:
    """Release a model of people who like "c" if their first number is small, and else "b"."""
    tree = one.current.model.own.statistics.tree
    gathered: dict[bytes, Any] = {}
    for cell in tree.leaves.tolist():
        liked, disliked = np.zeros(4, np.int64), np.full(4, 300 * UNIT)
        # A cell that lies on both sides, as the first one does, has people of both kinds.
        middle = tree.centre(cell, 2)[0]
        for slot, share in ((2, middle <= 0.5), (1, middle >= 0.5)):
            liked[slot] += 200 * UNIT * share
            disliked[slot] -= 200 * UNIT * share
        gathered[own_note(cell)] = np.stack([liked, disliked], axis=1).reshape(-1)
    model = one.release(one.current.model, gathered, SeededNoise(number))
    one.adopt(number=number, released_at=0.0, model=model)


def taught(**changes: Any) -> PartitionRecommender:
    one = recommender(**{"privacy": {"answers": {"epsilon": 8.0}, "feedback": "exact"}, **changes})
    for number in range(1, 6):
        teach(one, number)
    return one


def test_before_the_first_release_there_is_no_map() -> None:
    drawn = recommender().part(ModelMap).drawn()
    assert (drawn.release, drawn.items, drawn.first) == (0, (), ())


@pytest.mark.parametrize("answers", [{"epsilon": 8.0}, "exact"])
def test_a_map_shows_which_item_comes_first_where(answers: Any) -> None:
    drawn = taught(privacy={"answers": answers, "feedback": "exact"}).part(ModelMap).drawn()
    assert drawn.release == 5
    assert drawn.items == ("b", "c")
    assert len(drawn.first) == len(drawn.first[0]) == FINEST
    for row in drawn.first:
        assert row == (1,) * (FINEST // 2) + (0,) * (FINEST // 2)


def test_a_map_is_what_answers_are_most_likely_to_be() -> None:
    one = taught()
    drawn = one.part(ModelMap).drawn()
    own, rng = one.current.model.own, np.random.default_rng(3)
    outlook = own.outlook(one.rule)
    for row, column in rng.integers(0, FINEST, (40, 2)).tolist():
        context = np.array([[(column + 0.5) / FINEST, (row + 0.5) / FINEST]])
        cell = int(own.statistics.tree.locate(context)[0])
        odds = own.odds(outlook, one.visible, own.levels[cell])
        law = odds.law(outlook.best[cell])
        assert (
            one.id_of[max(law, key=lambda slot: law[slot])] == drawn.items[drawn.first[row][column]]
        )


def test_a_map_is_drawn_once_for_each_model_and_from_no_sums() -> None:
    one = taught()
    drawn = one.part(ModelMap).drawn()
    assert one.part(ModelMap).drawn() is drawn
    teach(one, 6)
    assert one.part(ModelMap).drawn().release == 6


def test_hidden_items_are_on_no_map() -> None:
    items = ["a", {"id": "b", "hidden": True}, "c", "d"]
    assert "b" not in taught(items=items).part(ModelMap).drawn().items
    none = [{"id": name, "hidden": True} for name in "abcd"]
    drawn = taught(items=none).part(ModelMap).drawn()
    assert (drawn.release, drawn.items, drawn.first) == (5, (), ())


@pytest.mark.parametrize("dimensions", [1, 3])
def test_only_two_numbers_can_be_drawn(dimensions: int) -> None:
    with pytest.raises(UnknownRecommender, match="a map of first choices"):
        recommender(context={"dimensions": dimensions}).part(ModelMap)


def test_the_more_items_the_coarser() -> None:
    sizes = [fields_across(items) for items in (0, 1, 16, 195, 196, 1_000, 10_000, 10**9)]
    assert sizes == [FINEST, FINEST, FINEST, FINEST, 31, 14, COARSEST, COARSEST]
