"""Answers kept under event ids: sealed, erased with their client, and never another's."""

from typing import Any

import pytest

from discreet.decisions.services import DecisionServices
from discreet.errors import EventReused, UnknownDecision
from discreet.families.questions import Ask, Candidate, Sparse
from discreet.state.memory import MemoryStore
from tests.decisions.conftest import Clock, ask, document

pytestmark = pytest.mark.anyio


async def test_what_is_stored_shows_nothing(services: DecisionServices, store: MemoryStore) -> None:
    await services.registry.put("films", document(items=["a-very-telling-title", "another"]))
    await ask(services, event_id="click-1")
    assert "telling" not in repr(vars(store)["_events"]._entries)


async def test_an_answer_is_forgotten_in_time(services: DecisionServices, clock: Clock) -> None:
    first = await ask(services, event_id="click-1")
    clock.now += 86_400
    again = await ask(services, event_id="click-1")
    assert again.recommendation_id != first.recommendation_id


async def test_the_reason_is_kept(services: DecisionServices) -> None:
    for _ in range(5):
        await ask(services)
    first = await ask(services, event_id="click-1")
    assert first.reason is not None
    assert await ask(services, event_id="click-1") == first


@pytest.mark.parametrize(
    "change",
    [
        {"context": [0.9, 0.1]},
        {"candidates": ["b", "a"]},
        {"exclude": ["c"]},
        {"candidates": ["a", "b"], "exclude": ["a"]},
    ],
)
async def test_a_retry_gets_the_stored_answer_whatever_else_it_says(
    services: DecisionServices, change: dict[str, Any]
) -> None:
    first = await ask(services, event_id="click-1")
    assert await ask(services, event_id="click-1", **change) == first


async def test_guessing_the_context_of_an_event_teaches_nothing(
    services: DecisionServices,
) -> None:
    """The attack: ask again under a known event id with every context on a grid.

    If a retry were compared with the first question, the one context that is not refused would be
    the visitor's.
    """
    secret = [0.3, 0.7]
    first = await ask(services, event_id="click-1", context=secret)
    seen = set()
    for x in range(11):
        for y in range(11):
            try:
                seen.add(await ask(services, event_id="click-1", context=[x / 10, y / 10]))
            except EventReused:
                seen.add("refused")
    assert seen == {first}


@pytest.mark.parametrize("change", [{"limit": 2}, {"client": "another"}, {"recommender": "books"}])
async def test_what_is_public_is_compared(
    services: DecisionServices, change: dict[str, Any]
) -> None:
    await services.registry.put("books", document())
    await ask(services, event_id="click-1")
    with pytest.raises(EventReused, match="client, recommender or limit"):
        await ask(services, event_id="click-1", **change)


async def test_nothing_private_is_in_the_fingerprint(services: DecisionServices) -> None:
    fingerprint = services.recommend._stored._fingerprint
    plain = Ask("films", "c", candidates=["a"])
    others = [
        plain._replace(context=(0.5,)),
        plain._replace(features=Sparse((1,), (0.5,))),
        plain._replace(candidates=[Candidate("a", (0.5,))]),
        plain._replace(exclude=("b",)),
        plain._replace(category="crime"),
        plain._replace(round="monday"),
    ]
    assert {fingerprint(one) for one in others} == {fingerprint(plain)}


async def test_an_event_that_was_not_answered_has_no_recommendation(
    services: DecisionServices,
) -> None:
    with pytest.raises(UnknownDecision):
        await services.recommend._stored.recommendation_id("never")
