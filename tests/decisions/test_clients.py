"""What is kept about one client: shown, and erased."""

import pytest

from discreet.decisions.registry import EXPERIMENT, RECOMMENDER
from discreet.decisions.services import DecisionServices
from discreet.errors import RecommenderUnreadable
from discreet.families.questions import Feedback
from discreet.state.memory import MemoryStore
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


async def test_nothing_is_certified_while_a_recommender_cannot_be_read(
    services: DecisionServices,
) -> None:
    await services.registry.put("songs", document())
    name = RECOMMENDER + "songs"
    standing = (await services.store.registry()).documents[name]
    for content in (b"{}", standing):
        # An experiment keeps nothing of anybody.
        for full, damaged in ((name, content), (EXPERIMENT + "shares", b"[]")):
            expected = (await services.store.registry()).documents.get(full)
            await services.store.put_document(name=full, document=damaged, expected=expected)
        await services.registry.refresh()
        if content is standing:
            assert (await services.clients.erase("ada")).certificate
        else:
            with pytest.raises(RecommenderUnreadable, match="recommender songs: it is damaged"):
                await services.clients.erase("ada")


@pytest.mark.parametrize("group", [None, "shared"])
async def test_what_an_erasure_leaves_under_a_removed_recommender_is_said(
    services: DecisionServices, store: MemoryStore, group: str | None
) -> None:
    """The ledger of a group is found by whoever is left of it; another is not looked for."""
    for name in ("gone", "left"):
        await services.registry.put(name, document(ledger=group))
    await ask(services, recommender="gone", event_id="click")
    await services.registry.remove("gone")
    erased = await services.clients.erase("someone")
    left = await store.find_event(event=services.recommend._stored._principals.event("click"))
    assert (left is None) == (group is not None)
    assert "stored answers" in erased.certificate.remains["removed_recommenders"]
