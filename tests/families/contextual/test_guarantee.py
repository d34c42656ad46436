"""The card says where each dial stands."""

from tests.contracts.samples import build


def test_both_dials_make_a_closed_loop() -> None:
    card = build("contextual").guarantee()
    assert card.closed_loop
    assert card.answers.epsilon == 0.25
    assert (card.feedback.epsilon, card.feedback.delta) == (1.0, 1e-6)


def test_an_exact_dial_is_said_aloud() -> None:
    card = build("contextual", privacy={"answers": "exact"}).guarantee()
    assert not card.closed_loop
    assert card.answers.epsilon is None
    assert "nothing" in card.answers.protects
    card = build("contextual", privacy={"feedback": "exact"}).guarantee()
    assert not card.closed_loop
    assert card.feedback.epsilon is None
