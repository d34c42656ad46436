"""The card says where both dials stand."""

from tests.families.mirror_descent.nodes import built, node


def test_the_card_of_the_defaults_covers_the_closed_loop() -> None:
    card = built(node(privacy={"answers": {"epsilon": 2.0}})).guarantee()
    assert card.closed_loop
    assert (card.answers.epsilon, card.answers.budget_epsilon) == (2.0, 8.0)
    assert (card.feedback.epsilon, card.feedback.delta) == (1.0, 1e-6)
    assert (card.feedback.budget_epsilon, card.feedback.budget_delta) == (8.0, 1e-6)
    assert card.release == 0
    assert card.as_json()["algorithm"] == "mirror-descent"


def test_a_dial_that_is_off_says_so() -> None:
    answers = built(node()).guarantee()
    assert answers.answers.epsilon is None
    assert "without noise" in answers.answers.mechanism
    assert not answers.closed_loop
    assert any("own question" in line for line in answers.not_covered)
    feedback = built(node(privacy={"answers": {}, "feedback": "exact"})).guarantee()
    assert feedback.feedback.epsilon is None
    assert not feedback.closed_loop
