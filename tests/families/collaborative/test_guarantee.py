"""The card says what is protected, and by whom; and nothing that is not."""

import json

from discreet.families.collaborative.guarantee import card
from tests.families.collaborative.library import Library, document


def test_raw_profiles_are_not_protected() -> None:
    shown = card(document(), release=3)
    assert shown.answers.epsilon is None
    assert "none" in shown.answers.mechanism
    assert shown.feedback.epsilon is None
    assert any(text.startswith("profiles: ") for text in shown.not_covered)
    assert any(text.startswith("feedback: ") for text in shown.not_covered)
    assert "histor" not in shown.protected
    assert shown.release == 3
    assert not shown.closed_loop


def test_profiles_that_were_protected_before_are_paid_for_elsewhere() -> None:
    shown = card(document(privacy={"answers": "on-device"}), release=0)
    assert shown.answers.epsilon is None
    assert "device keeps the account" in shown.answers.mechanism
    assert "one item of a history" in shown.unit
    assert any("the server cannot tell" in text for text in shown.not_covered)


def test_private_feedback_has_its_price() -> None:
    privacy = {"feedback": {"epsilon": 0.5, "delta": 1e-7, "budget": {"epsilon": 4.0}}}
    shown = card(document(privacy=privacy), release=0).feedback
    assert (shown.epsilon, shown.delta, shown.budget_epsilon) == (0.5, 1e-7, 4.0)
    assert "2n - 1" in shown.unit


def test_the_recommender_shows_it() -> None:
    books = Library().books
    assert json.loads(json.dumps(books.guarantee().as_json()))["algorithm"] == "collaborative"
