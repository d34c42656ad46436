"""The adaptive partition as a recommender: prices, notes, lessons, models."""

import math

import numpy as np
import pytest

from discreet.errors import InvalidArgument, TokenForged
from discreet.families.p_dap.recommender import own_note, read_note
from discreet.families.questions import Ask, Choice, PendingDecision, Sparse
from discreet.privacy.charges import NANO
from discreet.research.noise import SeededNoise
from discreet.state.stores import EXACT, NO_CHARGE
from tests.families.p_dap.places import recommender

ASK = Ask("films", "someone", (0.2, 0.8))


@pytest.mark.parametrize(
    ("slots", "limit", "candidates", "epsilon"),
    [
        (1, 1, None, 1.0),
        (1, 100, None, 1.0),
        (2, 3, None, 2.0),
        (9, 3, None, 3.0),
        (9, 4, None, 3.0),
        (9, 10, None, 3.0),
        (1, 1, ["a"], 0.0),
        (2, 2, ["a", "b"], 1.0),
    ],
)
def test_the_price_is_of_the_draws_that_choose(
    slots: int, limit: int, candidates: list[str] | None, epsilon: float
) -> None:
    one = recommender(
        privacy={"answers": {"epsilon": 1.0, "personal_slots": slots, "budget": {"epsilon": 20}}}
    )
    question = one.question(ASK._replace(limit=limit, candidates=candidates))
    assert one.price(question).nano_epsilon == epsilon * NANO


def test_the_price_does_not_depend_on_the_context() -> None:
    one = recommender(
        privacy={"answers": {"mode": "geometric", "budget": {"epsilon": 100}}},
        partition={"base": 1.0, "growth": 0.1},
    )
    for _ in range(4):
        leaves = one.current.model.own.statistics.tree.leaves.tolist()
        gathered = {own_note(cell): np.full(8, 2**20 * 2_000) for cell in leaves}
        model = one.release(one.current.model, gathered, SeededNoise(2))
        one.adopt(number=1, released_at=0.0, model=model)
    assert one.current.model.own.deepest > 0
    rng = np.random.default_rng(0)
    asked = [ASK._replace(context=tuple(point)) for point in rng.random((200, 2)).tolist()]
    assert len({one.price(one.question(each)) for each in asked}) == 1
    deepest = one.rule.epsilon_at(one.current.model.own.deepest, 2)
    assert deepest is not None
    assert one.price(one.question(ASK)).nano_epsilon == pytest.approx(deepest * NANO, abs=1)


def test_exact_answers_are_priced_as_unlimited() -> None:
    one = recommender(privacy={"answers": "exact"})
    assert one.price(one.question(ASK)) == EXACT
    assert one.price(one.question(ASK._replace(candidates=["a"]))) == NO_CHARGE


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"context": (0.1,)}, "context"),
        ({"context": (0.1, 1.1)}, "context"),
        ({"context": (0.1, math.nan)}, "context"),
        ({"candidates": ["z"]}, "candidates"),
        ({"features": Sparse((0,), (1.0,))}, "features"),
        ({"category": "comedy"}, "category"),
        ({"round": "1"}, "round"),
    ],
)
def test_a_question_that_cannot_be_asked_names_the_field(
    change: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        recommender().question(ASK._replace(**change))  # type: ignore[arg-type]
    assert caught.value.argument == field


def test_a_note_names_its_cell() -> None:
    assert read_note(own_note(70_000)) == (b"o", 70_000)
    for wrong in (b"", b"o", b"x1234"):
        with pytest.raises(TokenForged):
            read_note(wrong)


def pending(slot: int, cell: int = 0) -> PendingDecision:
    return PendingDecision(
        b"generate", b"decision", 2_000, b"p" * 16, True, (Choice(slot, 0.5),), own_note(cell)
    )


def test_a_lesson_adds_to_the_cell_of_the_answer_and_has_a_price() -> None:
    one = recommender()
    lesson = one.learn(pending(2, cell=3), 0, 0.25)
    assert lesson.increments == {own_note(3): [(4, 2**18), (5, 3 * 2**18)]}
    assert lesson.charge.nano_rho == pytest.approx(0.02436 * NANO, rel=1e-3)


def test_the_price_of_feedback_does_not_depend_on_what_it_says() -> None:
    one = recommender()
    prices = {
        one.learn(pending(slot, cell), 0, reward).charge
        for slot in range(4)
        for cell in (0, 9)
        for reward in (0.0, 0.3, 1.0)
    }
    assert len(prices) == 1


def test_exact_feedback_is_booked_as_unlimited() -> None:
    one = recommender(privacy={"feedback": "exact"})
    assert one.learn(pending(0), 0, 1.0).charge == EXACT


def test_a_model_survives_items_that_come_and_go() -> None:
    one = recommender()
    gathered = {own_note(0): np.full(8, 2**20 * 10)}
    model = one.release(one.current.model, gathered, SeededNoise(0))
    content = one.encode(model)
    more = recommender(items=["a", "b", "c", "d", "e", "f"])
    again = more.decode(content)
    assert again.own.statistics.slots == 6
    assert np.array_equal(again.own.statistics.liked[:, :4], model.own.statistics.liked)


def test_the_same_seed_releases_the_same_model() -> None:
    one = recommender()
    gathered = {own_note(0): np.full(8, 2**20 * 10)}
    models = [one.release(one.current.model, gathered, SeededNoise(7)) for _ in range(2)]
    assert one.encode(models[0]) == one.encode(models[1])


def test_the_card_follows_the_document() -> None:
    card = recommender().guarantee()
    assert card.closed_loop
    assert (card.answers.epsilon, card.feedback.epsilon) == (0.25, 1.0)
    exact = recommender(privacy={"feedback": "exact"}).guarantee()
    assert not exact.closed_loop
    assert exact.feedback.epsilon is None
    assert "exact" in exact.feedback.mechanism
