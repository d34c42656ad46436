"""What the proof of p-rec presumes is counted where it can go wrong."""

import asyncio

import pytest

from discreet.audit.closed_loop.stage import NOTHING_PLANTED
from discreet.audit.families.p_rec.served import ServedElectorate, runs_not_charged


@pytest.mark.parametrize(("epsilon", "runs"), [(1e6, 3), (16.0, 1)])
def test_a_budget_pays_for_as_many_runs_as_it_admits(epsilon: float, runs: int) -> None:
    async def paid() -> int:
        electorate = ServedElectorate(NOTHING_PLANTED)
        await electorate.open(epsilon=epsilon)
        assert await runs_not_charged(electorate) == 0
        recommender = await electorate.recommender(0)
        (ledger,) = await electorate.store.ledgers([recommender.population])
        return int(ledger.answers.nano_rho // recommender.run_charge.nano_rho)

    assert asyncio.run(paid()) == runs
