"""The card: voters are protected, clients are not, and the prices are those that are charged."""

from pathlib import Path

from discreet.families.p_rec.guarantee import guarantee_card
from tests.families.p_rec.conftest import Bench


def test_the_prices_are_those_that_are_charged(bench: Bench) -> None:
    card = bench.recommender.guarantee()
    assert card == guarantee_card(run=bench.recommender.run, budget=bench.recommender.voters_budget)
    assert card.algorithm == bench.recommender.algorithm
    assert card.answers.epsilon is not None
    assert abs(card.answers.epsilon - bench.run_epsilon) < 1e-8
    assert card.answers.delta == 1e-9
    assert (card.answers.budget_epsilon, card.answers.budget_delta) == (20.0, 1e-6)
    assert "60 rounds" in card.answers.unit


def test_voters_are_protected_with_feedback_on_and_clients_are_not(bench: Bench) -> None:
    card = bench.recommender.guarantee()
    assert "voter" in card.protected
    assert "all clients together" in card.against
    assert card.closed_loop
    assert card.feedback.epsilon is None
    assert "exact" in card.feedback.mechanism
    assert any("client likes" in each for each in card.not_covered)
    assert card.as_json()["answers"]["unit"]


def test_the_document_says_what_the_card_says(bench: Bench) -> None:
    page = Path(__file__).parents[3] / "docs" / "families" / "p-rec.md"
    written = page.read_text(encoding="utf-8")
    card = bench.recommender.guarantee()
    for promise in (
        f"| protected | {card.protected} |",
        f"| against | {card.against} |",
        f"| neighbours | {card.neighbours} |",
        f"| unit | {card.unit} |",
        f"| answers | {card.answers.mechanism} |",
        f"| feedback | {card.feedback.mechanism} |",
        *(f"- {each}\n" for each in card.not_covered),
    ):
        assert promise in written
