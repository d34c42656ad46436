"""Explanations: what an answer is drawn from; whoever is looked at is booked before."""

from typing import Any

import pytest

from discreet.decisions.explanations import as_epsilon
from discreet.decisions.services import DecisionServices
from discreet.errors import InvalidArgument, StoreUnavailable, UnknownRecommender
from discreet.families.questions import Ask
from discreet.families.registration import FAMILIES, read_document
from discreet.state.stores import EXACT, Account
from tests.api.stores import GONE, MoodyStore
from tests.contracts.samples import SAMPLES, asks
from tests.decisions.conftest import opened

pytestmark = pytest.mark.anyio

TELLING = {"contextual", "p-dap", "mirror-descent", "fclub"}


async def put(services: DecisionServices, algorithm: str) -> Ask:
    fields = {"algorithm": algorithm, **SAMPLES[algorithm].document}
    await services.registry.put("sample", read_document(fields))
    return asks(algorithm)[0]._replace(recommender="sample", client="")


async def spent(services: DecisionServices, client: str) -> Any:
    recommender = await services.registry.find("sample")
    (ledger,) = await services.store.ledgers(principals=[recommender.principal(client)])
    return ledger.spent(Account.ANSWERS, 0)


@pytest.mark.parametrize("algorithm", sorted(FAMILIES))
async def test_every_family_explains_or_says_why_not(
    services: DecisionServices, algorithm: str
) -> None:
    ask = await put(services, algorithm)
    client = "ada" if algorithm == "fclub" else None
    if algorithm not in TELLING:
        with pytest.raises(UnknownRecommender, match=f"not supported by {algorithm}"):
            await services.explanations.explain(ask, client=client, most=10)
        return
    found = await services.explanations.explain(ask, client=client, most=10)
    items = SAMPLES[algorithm].document["items"]
    assert len(found.items) == len(items)
    assert sum(one.odds for one in found.items) == pytest.approx(1.0)
    assert sum(one.odds_unpaid for one in found.items) == pytest.approx(1.0)
    assert [one.odds for one in found.items] == sorted(one.odds for one in found.items)[::-1]
    assert found.booked == (algorithm == "fclub")
    listed = {one.shortlisted for one in found.items}
    assert (listed == {None}) == (algorithm in ("fclub", "mirror-descent"))
    assert len((await services.explanations.explain(ask, client=client, most=2)).items) == 2


@pytest.mark.parametrize("algorithm", sorted(TELLING - {"fclub"}))
async def test_nobody_is_booked_where_nobody_is_looked_at(
    services: DecisionServices, algorithm: str
) -> None:
    ask = await put(services, algorithm)
    with pytest.raises(InvalidArgument, match="nobody has to be booked"):
        await services.explanations.explain(ask, client="ada", most=10)
    await services.explanations.explain(ask, client=None, most=10)
    assert (await spent(services, "ada")) != EXACT


async def test_a_client_who_is_looked_at_is_booked_for_good(services: DecisionServices) -> None:
    ask = await put(services, "fclub")
    with pytest.raises(InvalidArgument, match="is required"):
        await services.explanations.explain(ask, client=None, most=10)
    await services.explanations.explain(ask, client="ada", most=10)
    assert (await spent(services, "ada")).nano_epsilon == EXACT.nano_epsilon


async def test_nothing_is_told_that_could_not_be_booked() -> None:
    store = MoodyStore()
    services = await opened(store)
    ask = await put(services, "fclub")
    store.mood = GONE
    store.calls.clear()
    with pytest.raises(StoreUnavailable):
        await services.explanations.explain(ask, client="ada", most=10)
    assert "own" not in store.calls
    store.mood = None
    await services.close()


async def test_a_price_is_an_epsilon() -> None:
    assert as_epsilon(EXACT) is None
