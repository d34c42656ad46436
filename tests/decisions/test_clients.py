"""What is kept about one client: shown, and erased."""

import pytest

from discreet.decisions.services import DecisionServices
from discreet.families.questions import Feedback
from tests.decisions.conftest import ask, document

pytestmark = pytest.mark.anyio


async def test_both_accounts_are_shown(services: DecisionServices) -> None:
    answer = await ask(services)
    await services.feedback.record(Feedback(1.0, recommendation_id=answer.recommendation_id))
    report = await services.clients.budget(recommender="films", client="someone")
    assert report.answers.spent is not None
    assert report.answers.spent.epsilon == 1.0
    assert report.feedback.spent is not None
    assert report.feedback.spent.epsilon == pytest.approx(1.0, abs=1e-3)
    assert report.feedback.remaining is not None
    assert report.feedback.remaining.epsilon == pytest.approx(7.0, abs=1e-3)


async def test_an_unknown_client_has_spent_nothing(services: DecisionServices) -> None:
    report = await services.clients.budget(recommender="films", client="nobody")
    assert report.answers.spent is not None
    assert report.answers.spent.epsilon == 0.0


async def test_erasing_covers_every_recommender(services: DecisionServices) -> None:
    await services.registry.put("books", document())
    await ask(services, event_id="one")
    await ask(services, recommender="books", event_id="two")
    erased = await services.clients.erase("someone")
    assert (erased.certificate.events, erased.certificate.records) == (2, {})
    assert (await services.clients.erase("someone")).certificate.events == 0
