"""Answers kept under event ids: sealed, erased with their client, and never another's."""

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
    ("first", "second"),
    [
        ({"candidates": ["a", "b"]}, {"candidates": ["b", "a"]}),
        ({"context": [0.1, 0.2]}, {"context": [0.2, 0.1]}),
    ],
)
async def test_another_question_is_another_request(
    services: DecisionServices, first: dict[str, object], second: dict[str, object]
) -> None:
    await ask(services, event_id="click-1", **first)
    with pytest.raises(EventReused):
        await ask(services, event_id="click-1", **second)


async def test_features_are_part_of_the_question(services: DecisionServices) -> None:
    fingerprint = services.recommend._stored._fingerprint
    plain = Ask("films", "c", candidates=["a"])
    sparse = plain._replace(candidates=[Candidate("a", Sparse((1,), (0.5,)))])
    dense = plain._replace(candidates=[Candidate("a", (0.5,))])
    assert len({fingerprint(one) for one in (plain, sparse, dense)}) == 3


async def test_an_event_that_was_not_answered_has_no_recommendation(
    services: DecisionServices,
) -> None:
    with pytest.raises(UnknownDecision):
        await services.recommend._stored.recommendation_id("never")
