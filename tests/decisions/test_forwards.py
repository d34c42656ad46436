"""Handles: what an asking vendor holds, and what it can and cannot do with them."""

import pytest

from discreet.decisions import changes
from discreet.decisions.services import DecisionServices
from discreet.errors import (
    NothingToRecommend,
    TokenExpired,
    TokenForged,
    UnknownDecision,
    UnknownItem,
    UnknownRecommender,
)
from discreet.families.questions import Feedback
from tests.decisions.conftest import Clock, ask, document

pytestmark = pytest.mark.anyio

CENTRE = (0.5, 0.5)


async def handle(services: DecisionServices) -> str:
    item = await services.forwards.answer(
        requester="them", recommender="films", centre=CENTRE, epsilon=1.0
    )
    return item.handle


async def test_handles_have_one_length_and_are_never_alike(services: DecisionServices) -> None:
    found = [await handle(services) for _ in range(20)]
    assert len(set(found)) == 20
    assert len({len(one) for one in found}) == 1


async def test_a_handle_opens_to_an_item(services: DecisionServices, clock: Clock) -> None:
    token = await handle(services)
    opened = await services.forwards.open(token)
    assert opened.recommender == "films"
    assert opened.item in {"a", "b", "c", "d"}
    clock.now = opened.expires_at
    with pytest.raises(TokenExpired):
        await services.forwards.open(token)


async def test_a_recommendation_is_no_handle(services: DecisionServices) -> None:
    with pytest.raises(TokenForged):
        await services.forwards.open((await ask(services)).recommendation_id)


async def test_what_is_gone_is_said(services: DecisionServices) -> None:
    token = await handle(services)
    for item in ("a", "b", "c", "d"):
        await services.registry.change("films", changes.remove_item(item))
    with pytest.raises(UnknownItem):
        await services.forwards.open(token)
    with pytest.raises(NothingToRecommend):
        await handle(services)
    await services.registry.remove("films")
    with pytest.raises(UnknownDecision):
        await services.forwards.open(token)
    with pytest.raises(UnknownRecommender):
        await handle(services)


async def test_feedback_needs_the_vendor_and_the_recommender_of_the_handle(
    services: DecisionServices,
) -> None:
    await services.registry.put("books", document())
    token = await handle(services)
    for requester, recommender in (("others", "films"), ("them", "books")):
        with pytest.raises(TokenForged):
            await services.forwards.record(
                requester=requester, recommender=recommender, handle=token, reward=1.0
            )
    await services.forwards.record(requester="them", recommender="films", handle=token, reward=1.0)
    again = await services.feedback.record(Feedback(1.0, recommendation_id=token))
    assert again.duplicate
