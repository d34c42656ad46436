"""One client cannot spend the voters' budget alone: runs are capped by client and window."""

import pytest

from discreet.errors import BudgetExhausted
from discreet.families.p_rec.clients import NO_RUN_LEFT
from discreet.families.questions import Ask
from tests.families.p_rec.conftest import NAME, Bench, stored_document

pytestmark = pytest.mark.anyio

DAY = 86_400.0
BUDGET_RUNS = 7
"""Runs that the bench's budget of (20, 1e-6) pays for."""


def runs_paid(bench: Bench, spent: float) -> int:
    return round(spent / bench.run_epsilon)


async def hostile(bench: Bench, attempts: int, client: str = "mallory") -> int:
    """Ask, have the client erased, ask again, …: return how many runs the voters paid for."""
    await bench.full_round("monday")
    for _ in range(attempts):
        answer = await bench.ask(client)
        await bench.recommender.forget(client)
    return runs_paid(bench, bench.spent(answer))


async def test_the_attack_as_it_was_and_as_it_is() -> None:
    """Without a cap worth the name the whole budget goes to one id; with it, one run does."""
    uncapped = Bench(stored=stored_document(client_runs={"most": 1_000_000}))
    assert await hostile(uncapped, 20) == BUDGET_RUNS
    capped = Bench()
    assert await hostile(capped, 20) == 1
    left = await capped.ask("an honest client")
    assert left.decision.personalised


async def test_a_client_without_a_run_left_is_answered_at_random_and_for_free(bench: Bench) -> None:
    await hostile(bench, 1)
    again = await bench.ask("mallory")
    assert not again.decision.personalised
    assert again.decision.reason == NO_RUN_LEFT
    assert bench.spent(again) == pytest.approx(bench.run_epsilon)


async def test_or_refused() -> None:
    privacy = {"budget": {"epsilon": 20.0, "delta": 1e-6}, "on_exhausted": "refuse"}
    bench = Bench(stored=stored_document(privacy=privacy))
    await hostile(bench, 1)
    with pytest.raises(BudgetExhausted):
        await bench.ask("mallory")


async def test_another_window_another_run() -> None:
    bench = Bench(stored=stored_document(client_runs={"most": 1, "window_seconds": DAY}))
    bench.clock.now = 100 * DAY
    await hostile(bench, 3)
    bench.clock.now += DAY - 1
    assert not (await bench.ask("mallory")).decision.personalised
    await bench.recommender.forget("mallory")
    bench.clock.now += 1
    assert (await bench.ask("mallory")).decision.personalised


async def test_an_answer_that_was_not_stored_is_not_counted_twice(bench: Bench) -> None:
    """A crash between the debits and the answer: the same run is begun again, and paid once."""
    await bench.full_round("monday")
    recommender = bench.recommender
    question = recommender.question(Ask(recommender=NAME, client="ann"))
    own = await recommender.clients.prepare(question.client, None)
    assert await recommender._pay([(question, own.history)]) == [True]
    assert await recommender._pay([(question, own.history)]) == [True]
    answer = await bench.ask()
    assert answer.decision.personalised
    assert runs_paid(bench, bench.spent(answer)) == 1
