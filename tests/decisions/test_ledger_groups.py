"""Recommenders of one group share a ledger, and nobody gets a fresh budget by changing groups."""

from typing import Any

import pytest

from discreet.decisions.ledger_groups import LEDGER, fix_ledger
from discreet.decisions.services import DecisionServices
from discreet.errors import InvalidArgument
from discreet.families.questions import Ask, Feedback, Recommendation
from discreet.state.memory import MemoryStore
from tests.decisions.conftest import document, privacy

pytestmark = pytest.mark.anyio


async def put(services: DecisionServices, name: str, budget: float = 5.0, **changes: Any) -> None:
    await services.registry.put(name, document(privacy=privacy(budget=budget), **changes))


async def ask(services: DecisionServices, recommender: str, client: str = "ada") -> Recommendation:
    return await services.recommend.recommend(Ask(recommender, client, (0.2, 0.8)))


async def test_a_name_keeps_its_group(store: MemoryStore) -> None:
    await fix_ledger(store, "films", "shop")
    await fix_ledger(store, "films", "shop")
    await fix_ledger(store, "books", None)
    for name, group in (("films", None), ("films", "other"), ("books", "shop")):
        with pytest.raises(InvalidArgument, match="fresh budget"):
            await fix_ledger(store, name, group)
    assert await store.secret(name=LEDGER + "films", proposal=b"later") == b"shop"


async def test_recommenders_of_a_group_spend_from_one_ledger(services: DecisionServices) -> None:
    await put(services, "one", ledger="shop")
    await put(services, "two", ledger="shop")
    await put(services, "alone")
    answers = [await ask(services, name) for name in ("one", "two", "one", "two", "one", "two")]
    assert [answer.personalised for answer in answers] == [True] * 5 + [False]
    assert answers[-1].reason is not None
    assert (await ask(services, "alone")).personalised
    assert (await ask(services, "two", "bob")).personalised


async def test_each_recommender_checks_its_own_budget_against_the_shared_total(
    services: DecisionServices,
) -> None:
    await put(services, "generous", budget=5.0, ledger="shop")
    await put(services, "strict", budget=2.0, ledger="shop")
    assert [(await ask(services, "strict")).personalised for _ in range(3)] == [True, True, False]
    assert [(await ask(services, "generous")).personalised for _ in range(4)] == [True] * 3 + [
        False
    ]


async def test_feedback_is_paid_from_the_shared_ledger_and_counted_by_recommender(
    services: DecisionServices,
) -> None:
    """Two recommenders have two noises: the first record of each costs as a first one."""
    await put(services, "one", ledger="shop")
    await put(services, "two", ledger="shop")
    for name in ("one", "two"):
        answer = await ask(services, name)
        feedback = Feedback(1.0, recommendation_id=answer.recommendation_id)
        assert (await services.feedback.record(feedback)).learned
    reports = [
        await services.clients.budget(recommender=name, client="ada") for name in ("one", "two")
    ]
    assert reports[0] == reports[1]
    recommender = await services.registry.find("one")
    (ledger,) = await services.store.ledgers([recommender.principal("ada")])
    price = recommender._feedback_charge  # type: ignore[attr-defined]
    assert ledger.feedback.nano_rho == 2 * price.nano_rho


async def test_a_group_cannot_be_changed_or_left_not_even_by_beginning_anew(
    services: DecisionServices,
) -> None:
    await put(services, "one", ledger="shop")
    for ledger in (None, "other"):
        with pytest.raises(InvalidArgument, match="ledger"):
            await put(services, "one", ledger=ledger)
    await services.registry.remove("one")
    for ledger in (None, "other"):
        with pytest.raises(InvalidArgument, match="fresh budget"):
            await put(services, "one", ledger=ledger)
    await put(services, "one", ledger="shop")
