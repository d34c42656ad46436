"""Statements: of every ledger, by recommender and day, and made from the ledger alone."""

import pytest

from discreet.decisions.services import DecisionServices
from discreet.state.stores import Account
from tests.decisions.conftest import Clock, ask, document, privacy

pytestmark = pytest.mark.anyio


async def test_days_follow_the_clock_and_windows_begin_anew(
    services: DecisionServices, clock: Clock
) -> None:
    both = privacy(budget=2.0)
    both["answers"]["budget"]["per"] = "1d"
    await services.registry.put("daily", document(privacy=both))
    for _ in range(3):
        found = [await ask(services, recommender="daily") for _ in range(3)]
        assert [one.personalised for one in found] == [True, True, False]
        clock.now += 86_400
    (daily, films) = await services.statements.statement("someone")
    assert [(line.uses, line.account) for line in daily.days] == [(2, Account.ANSWERS)] * 3
    assert daily.days[0].day < daily.days[1].day < daily.days[2].day
    assert daily.answers.report.spent is not None
    assert daily.answers.report.spent.epsilon == 0.0
    assert daily.answers.ever is not None
    assert daily.answers.ever.epsilon == 6.0
    assert daily.answers.report.resets_at == (int(clock.now) // 86_400 + 1) * 86_400
    assert films.days == ()


async def test_a_statement_is_for_the_recommenders_that_are_asked_for(
    services: DecisionServices,
) -> None:
    await services.registry.put("books", document())
    found = await services.statements.statement("someone", recommenders=frozenset({"books"}))
    assert [one.recommender for one in found] == ["books"]


async def test_an_exact_dial_is_said_to_be_unprotected(services: DecisionServices) -> None:
    await services.registry.put("bare", document(privacy={"answers": "exact"}))
    await ask(services, recommender="bare")
    bare, _ = await services.statements.statement("someone")
    assert bare.answers.budget is None
    assert bare.days[0].epsilon is None
