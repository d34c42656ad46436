"""docs/privacy.md shows what the default budgets buy, as the code charges it; they last a month."""

import asyncio

import pytest

from discreet.families.documents import AnswersPrivacyDocument, FeedbackPrivacyDocument
from tests import defaults


def test_the_page_shows_what_the_code_charges() -> None:
    assert defaults.on_page() == defaults.rendered()


@pytest.mark.parametrize("algorithm", defaults.families())
def test_a_month_has_at_least_thirty_pages_with_something_personal(algorithm: str) -> None:
    found = asyncio.run(defaults.bought(algorithm))
    assert found.pages is None or found.pages >= 30
    assert found.apart >= 30


def test_the_defaults_are_for_a_month_and_their_sum_is_what_the_page_says() -> None:
    answers, feedback = AnswersPrivacyDocument(), FeedbackPrivacyDocument()
    assert answers.budget.seconds == feedback.budget.seconds == 30 * 86_400
    total = answers.budget.epsilon + feedback.budget.epsilon
    delta = answers.budget.delta + feedback.budget.delta
    page = defaults.PAGE.read_text(encoding="utf-8")
    assert f"({total:g}, {delta:g})" in page.replace("2·10^−6", "2e-06")
