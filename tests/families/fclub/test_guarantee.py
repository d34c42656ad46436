"""The card says what the document promises, and no more."""

from typing import Any

import pytest

from discreet.families.fclub import guarantee
from tests.families.fclub.servers import BY_OBSERVATION, UNPROTECTED, local, merging


def text(*lines: str) -> str:
    return " ".join(lines)


def test_a_person_is_protected_in_a_closed_loop() -> None:
    card = guarantee.card(local(privacy={"feedback": {"epsilon": 2.0}}), release=7)
    assert (card.closed_loop, card.release, card.algorithm) == (True, 7, "fclub")
    assert card.protected.startswith("a client")
    assert (card.feedback.epsilon, card.feedback.budget_epsilon) == (2.0, 8.0)
    # Answers are exact here, and the card says who is not protected from whom.
    assert card.answers.epsilon is None
    assert "answers to others" in card.against
    assert "this client's own answers" in text(*card.not_covered)


def test_private_answers_close_that_gap() -> None:
    card = guarantee.card(local(privacy={"answers": {"epsilon": 0.5}}), release=0)
    assert (card.answers.epsilon, card.answers.budget_epsilon) == (0.5, 8.0)
    assert "the client's own" in card.against
    assert "this client's own answers" not in text(*card.not_covered)


def test_an_observation_is_protected_outside_the_server_and_not_in_a_closed_loop() -> None:
    card = guarantee.card(local(privacy=BY_OBSERVATION), release=0)
    assert not card.closed_loop
    assert card.protected.startswith("one observation")
    assert card.against.startswith("everybody outside this server")
    assert (card.feedback.epsilon, card.feedback.budget_epsilon) == (1.0, None)
    assert "other users of this server" in text(*card.not_covered)
    assert "no budget bounds them" in text(*card.not_covered)


@pytest.mark.parametrize("privacy", [UNPROTECTED, UNPROTECTED | BY_OBSERVATION])
def test_exact_feedback_protects_nobody(privacy: dict[str, Any]) -> None:
    card = guarantee.card(local(privacy=privacy), release=0)
    assert (card.feedback.epsilon, card.answers.epsilon, card.closed_loop) == (None, None, False)
    assert card.against == "nobody"


def test_a_global_server_has_no_clients() -> None:
    card = guarantee.card(merging(), release=3)
    assert (card.answers.epsilon, card.feedback.epsilon, card.release) == (0.0, 0.0, 3)
    assert "local servers" in card.protected
