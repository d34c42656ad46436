"""Ranking by a released model: what depends on what, and the law of a private draw."""

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from discreet.families.choice import UtilityChoice
from discreet.families.mirror_descent.model import (
    MirrorModel,
    MirrorQuestion,
    MirrorRanking,
    NodeSums,
    blank_sums,
    combined,
    read_sums,
)
from discreet.families.mirror_descent.reading import NO_FEATURES
from discreet.families.mirror_descent.sparse import (
    Crossing,
    SparseRow,
    SparseRows,
    joined,
    on_grid,
    read_rows,
)
from discreet.research.noise import SeededNoise

CROSSING = Crossing(clients=3, items=4)
ITEMS = read_rows([([0, 2], [1.0, 0.5]), ([1], [1.0]), ([3], [-0.3])], dimension=4)


def model_of(weights: Any, **changes: Any) -> MirrorModel:
    return MirrorModel(blank_sums(2), None, np.array(weights, dtype=np.float32), **changes)


def question(rows: SparseRows, **changes: Any) -> MirrorQuestion:
    fields: dict[str, Any] = {
        "client": b"ada",
        "limit": len(rows),
        "features": NO_FEATURES,
        "rows": rows,
        "slots": np.arange(len(rows)),
        "ids": None,
        "personal": True,
        **changes,
    }
    return MirrorQuestion(**fields)


def ranking(epsilon: float | None = None, **changes: Any) -> MirrorRanking:
    plain = MirrorRanking(None, 1.0, 0.0, UtilityChoice(epsilon))
    return replace(plain, **changes)


def places(ranked: Any) -> list[list[int]]:
    return [[choice.slot for choice in choices] for choices in ranked]


def test_sums_are_kept_and_weighted() -> None:
    sums = NodeSums(np.array([1.5, -2.0]), count=3.0, squares=6.0)
    again = read_sums(sums.encode(), 2)
    assert (again.gradients.tolist(), again.count, again.squares) == ([1.5, -2.0], 3.0, 6.0)
    assert sums.theta.tolist() == [0.75, -1.0]
    assert not blank_sums(2).theta.any()
    half = combined([(0.5, sums), (0.5, blank_sums(2))])
    assert (half.gradients.tolist(), half.count, half.squares) == ([0.75, -1.0], 1.5, 3.0)
    # A share of everything is as good an estimate of its share of the records.
    assert half.theta.tolist() == [0.375, -0.5]


@pytest.mark.parametrize("content", [b"", bytes(31), NodeSums(np.array([np.nan, 0])).encode()])
def test_sums_that_cannot_be_read_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="sums"):
        read_sums(content, 2)


def test_margins_without_crossing_are_those_of_crossed_rows() -> None:
    model = model_of(np.random.default_rng(0).normal(size=19))
    features = SparseRow([0, 2], [0.3, -1.5])
    client = joined([features])
    crossed = [
        model.margins(on_grid(CROSSING.crossed(client, ITEMS.take([place])), bound=1.0))[0]
        for place in range(3)
    ]
    asked = question(ITEMS, features=features)
    assert ranking(crossing=CROSSING).margins(model, asked) == pytest.approx(crossed, abs=1e-4)


def test_margins_that_were_worked_out_ahead_are_the_same_for_every_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = model_of(np.random.default_rng(1).normal(size=19))
    rows = read_rows([([0, 2], [1.0, 0.5]), ([], []), ([0, 2], [1.0, 0.5])], dimension=4)
    clients = [SparseRow([], []), SparseRow([1], [0.4]), SparseRow([0, 2], [0.3, -1.5])]
    plain = ranking(crossing=CROSSING)
    for client in clients:
        whole = plain.margins(model, question(rows, features=client, whole=True))
        named = plain.margins(model, question(rows.take([0, 1, 2]), features=client))
        assert whole == pytest.approx(named, abs=1e-12)
        assert whole[0] == whole[2], "equals are equal to the last bit: they are in random order"
    monkeypatch.setattr("discreet.families.mirror_descent.model._MOST_CROSSED", 0)
    other = model_of(model.weights)
    for client in clients:
        late = plain.margins(other, question(rows, features=client, whole=True))
        known = plain.margins(model, question(rows, features=client, whole=True))
        assert late == pytest.approx(known, abs=1e-12)


@pytest.mark.parametrize("most", [1, 9, 2**20])
@pytest.mark.parametrize("whole", [True, False])
def test_margins_of_a_turn_are_those_of_each_question(
    monkeypatch: pytest.MonkeyPatch, most: int, whole: bool
) -> None:
    """However many features are looked at together, and with clients of none among them."""
    monkeypatch.setattr("discreet.families.mirror_descent.model._MOST_CROSSED", most)
    weights = np.random.default_rng(2).normal(size=19)
    clients = [[], [1], [0, 2], [], [], [0, 1, 2], [2], []]
    asked = [
        question(ITEMS, features=SparseRow(one, [0.3 + place for place in one]), whole=whole)
        for one in clients
    ]
    plain = ranking(crossing=CROSSING)
    together = plain._margins(model_of(weights), asked)
    alone = [plain.margins(model_of(weights), one) for one in asked]
    assert together.tolist() == [one.tolist() for one in alone]


def test_questions_about_other_rows_are_ranked_beside_each_other() -> None:
    model = model_of([5.0, -5.0, 0, 0], reach=0.5)
    liked = read_rows([([0], [1.0]), ([1], [1.0])], dimension=4)
    turned = read_rows([([1], [1.0]), ([0], [1.0]), ([1], [1.0])], dimension=4)
    asked = [question(rows, limit=1) for rows in (liked, turned, liked, turned.take([]))]
    ranked = ranking().rank(model, asked, SeededNoise(0))
    assert places(ranked) == [[0], [1], [0], []]


def test_items_are_ranked_for_the_client() -> None:
    weights = np.zeros(19)
    weights[7 + 0 * 4 + 0] = 1.0  # client feature 0 likes item feature 0
    weights[7 + 1 * 4 + 1] = 1.0  # client feature 1 likes item feature 1
    asked = [
        question(ITEMS.take([0, 1]), features=SparseRow([feature], [1.0])) for feature in (0, 1)
    ]
    ranked = ranking(crossing=CROSSING).rank(model_of(weights), asked, SeededNoise(0))
    assert places(ranked) == [[0, 1], [1, 0]]


@pytest.mark.parametrize("epsilon", [None, 2.0])
def test_the_same_noise_gives_the_same_answers_and_a_question_does_not_see_the_others(
    epsilon: float | None,
) -> None:
    model = model_of([1.0, -1.0, 0.5, 0.2])
    asked = [question(ITEMS, personal=personal) for personal in (True, False, True)]
    before = ITEMS.values.copy()
    one = ranking(epsilon, exploration=0.5).rank(model, asked, SeededNoise(4))
    two = ranking(epsilon, exploration=0.5).rank(model, asked, SeededNoise(4))
    assert one == two
    assert (ITEMS.values == before).all()
    # One draw a question, and no coins: the first is drawn with the same bits in any company.
    single = [replace(each, limit=1) for each in asked]
    together = ranking(epsilon).rank(model, single, SeededNoise(4))
    assert ranking(epsilon).rank(model, single[:1], SeededNoise(4)) == together[:1]


def test_equal_margins_and_blank_models_are_in_random_order() -> None:
    """40 answers of one order have probability 2**-39."""
    noise = SeededNoise(1)
    equal = read_rows([([0], [1.0]), ([0], [1.0])], dimension=4)
    for model, rows in (
        (model_of([1.0, 0, 0, 0]), equal),
        (model_of([0.0] * 4), ITEMS.take([0, 1])),
    ):
        ranked = ranking().rank(model, [question(rows)] * 40, noise)
        assert {tuple(order) for order in places(ranked)} == {(0, 1), (1, 0)}


def test_answers_that_explore_are_in_random_order() -> None:
    """A share of 1: 60 answers name every one of three items first but for chance 1e-10."""
    explored = ranking(exploration=1.0).rank(
        model_of([9.0, 1.0, 0, 0]), [question(ITEMS)] * 60, SeededNoise(2)
    )
    assert {order[0] for order in places(explored)} == {0, 1, 2}


def test_private_answers_that_explore_are_any_items_and_have_the_odds_of_both_ways() -> None:
    """A share of 1: 3,000 answers name each of three items first 1,000 times, within 5 deviations
    of 26. An item drawn 30% too often would be 300 off."""
    model, noise = model_of([9.0, 1.0, 0, 0]), SeededNoise(2)
    explored = ranking(2.0, exploration=1.0).rank(model, [question(ITEMS)] * 3_000, noise)
    assert {tuple(sorted(order)) for order in places(explored)} == {(0, 1, 2)}
    firsts = Counter(order[0] for order in places(explored))
    assert all(abs(count - 1_000) < 5 * 26 for count in firsts.values())
    mixed = ranking(2.0, exploration=0.5)
    law = mixed.law(model, question(ITEMS))
    for first, *_ in mixed.rank(model, [question(ITEMS)] * 60, noise):
        assert first.propensity == pytest.approx(law[first.slot])


def test_a_private_draw_has_the_odds_of_the_exponential_mechanism() -> None:
    """Two candidates at both ends of the reach: odds of e^(1/2 epsilon); 4,000 draws, 4 deviations.

    Odds that were 30% off would move the share by more than 0.05, six deviations.
    """
    rows = read_rows([([0], [1.0]), ([0], [-1.0])], dimension=4)
    model = model_of([5.0, 0, 0, 0], reach=0.5)
    drawn = ranking(2.0).rank(model, [question(rows, limit=1)] * 4_000, SeededNoise(3))
    share = Counter(order[0] for order in places(drawn))[0] / 4_000
    expected = math.e / (1 + math.e)
    assert share == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / 4_000))


def test_a_question_without_features_of_the_client_is_ranked_exactly_and_free() -> None:
    rows = read_rows([([0], [1.0]), ([0], [-1.0])], dimension=4)
    model = model_of([5.0, 0, 0, 0], reach=0.5)
    drawn = ranking(0.1).rank(model, [question(rows, personal=False)] * 50, SeededNoise(3))
    assert {tuple(order) for order in places(drawn)} == {(0, 1)}
    assert ranking(0.1).rank(model, [question(rows.take([]))], SeededNoise(3)) == [()]
