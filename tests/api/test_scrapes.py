"""The attack by difference: read /metrics, let one person act, read /metrics again.

Two worlds differ in what is private about that person (the context or features of a question, the
reward, whether feedback came at all), and in nothing else. What a scrape shows must grow by the
same in both. Only requests themselves are seen, by route, as the network sees them.
"""

from collections.abc import Mapping
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from discreet.families.fclub.own_rows import MOST
from discreet.families.p_rec.votes import Vote, Votes
from discreet.families.questions import Sparse
from discreet.families.registration import read_document
from discreet.privacy.noise import SystemNoise
from tests.api.conftest import Caller, calling
from tests.contracts.samples import SAMPLES, Sample

pytestmark = pytest.mark.anyio

Scrape = dict[tuple[str, tuple[tuple[str, str], ...]], float]

NETWORK = {"discreet_request_duration_seconds_count", "discreet_store_duration_seconds_count"}
"""How often a route, or the store, was called."""
REQUESTS = {None, "spend", "learn", "own", "fold_own", "ledgers", "read_pages", "write_pages"}
"""What requests ask of the store. The background asks for other things, by the clock."""
SELDOM = {"seconds": 3_600.0, "growth": 0.0, "longest": 3_600.0}


def _fields(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {"indices": list(value.indices), "values": list(value.values)}
        if isinstance(value, Sparse)
        else list(value)
        for name, value in given.items()
    }


async def scrape(caller: Caller) -> Scrape:
    """Return everything that /metrics says, except durations and what the clock moves."""
    text = (await caller.get("/metrics")).text
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
        if not one.name.endswith(("_bucket", "_sum"))
        and one.labels.get("operation") in REQUESTS
        and one.labels.get("route") != "/metrics"
    }


async def prepared(caller: Caller, algorithm: str, sample: Sample, others: int = 20) -> None:
    """Make the sample's recommender, let others teach it, and release once."""
    often = {"releases": SELDOM} if sample.releases else {}
    document = read_document({"algorithm": algorithm, **sample.document, **often})
    services = caller.live["services"]
    await services.registry.put("tried", document)
    recommender = await services.registry.find("tried")
    await sample.prepare(recommender)
    for place in range(others):
        await act(caller, sample, place % 2, reward=place % 2, client=f"other {place}")
    if sample.releases:
        assert await services.releaser.release(recommender)
    # What an answer costs depends on the released model: an empty one answers for free. Real noise
    # leaves mirror descent with one now and then.
    while getattr(recommender.current.model, "nonzeros", 1) == 0:
        await act(caller, sample, 0, reward=1, client="one more")
        assert await services.releaser.release(recommender)
    # What the background shows comes by the clock, between two scrapes or not.
    await services.background.stop()


async def act(
    caller: Caller, sample: Sample, which: int, *, reward: int | None, client: str = "somebody"
) -> None:
    """Ask, and send feedback unless the reward is None."""
    body = {"recommender": "tried", "client": client, **_fields(sample.asks[which])}
    answer = await caller.post("/recommend", json=body)
    assert answer.status_code == 200, answer.text
    if reward is not None:
        told = {"recommendation_id": answer.json()["recommendation_id"], "reward": reward}
        assert (await caller.post("/feedback", json=told)).status_code == 200


async def growth(algorithm: str, which: int, reward: int | None) -> Scrape:
    """Return by how much one question, and feedback on it, make every series grow."""
    sample = SAMPLES[algorithm]
    async with calling() as caller:
        await prepared(caller, algorithm, sample)
        before = await scrape(caller)
        await act(caller, sample, which, reward=reward)
        after = await scrape(caller)
    return moved(before, after)


def moved(before: Scrape, after: Scrape) -> Scrape:
    """Return by how much each series grew that did."""
    assert before.keys() <= after.keys()
    grown = {series: value - before.get(series, 0.0) for series, value in after.items()}
    return {series: amount for series, amount in grown.items() if amount}


FAMILIES = sorted(SAMPLES)


@pytest.mark.parametrize("algorithm", FAMILIES)
async def test_a_scrape_tells_neither_the_context_nor_the_reward(algorithm: str) -> None:
    worlds = [await growth(algorithm, *world) for world in ((0, 0), (1, 1), (1, 0))]
    assert worlds[0] == worlds[1] == worlds[2]
    assert sum(name == "discreet_items_total" for name, _ in worlds[0]) == 1, "it was counted"


@pytest.mark.parametrize("algorithm", FAMILIES)
async def test_only_the_network_tells_whether_feedback_came(algorithm: str) -> None:
    silent, sent = await growth(algorithm, 0, None), await growth(algorithm, 0, 1)
    told = {
        series for series in silent.keys() | sent.keys() if silent.get(series) != sent.get(series)
    }
    assert {name for name, _ in told} == NETWORK
    routes = {value for _, labels in told for label, value in labels if label == "route"}
    assert routes == {"/feedback"}


async def test_feedback_that_is_not_paid_for_looks_like_any_other() -> None:
    """At the default budget six records of a client fit into one release, and the seventh not."""
    sample = SAMPLES["p-dap"]
    async with calling() as caller:
        await prepared(caller, "p-dap", sample)
        grown = []
        for _ in range(9):
            before = await scrape(caller)
            await act(caller, sample, 0, reward=1)
            all_moved = moved(before, await scrape(caller))
            # A client passes a share of the budget for answers by asking, which is public.
            shares = "discreet_clients_spent_total"
            grown.append({each: all_moved[each] for each in all_moved if each[0] != shares})
    for each in grown[2:]:
        assert each == grown[1]


async def test_a_scrape_does_not_tell_how_much_feedback_an_answer_is_made_from() -> None:
    """fclub folds what waits behind somebody's sums when they ask: nobody sees that it did."""
    sample, grown, waiting = SAMPLES["fclub"], [], []
    for reward in (None, 1):
        async with calling() as caller:
            await prepared(caller, "fclub", sample)
            for _ in range(MOST):
                await act(caller, sample, 0, reward=reward)
            before = await scrape(caller)
            await act(caller, sample, 0, reward=None)
            after = await scrape(caller)
            recommender = await caller.live["services"].registry.find("tried")
            (own,) = await recommender.store.own(
                generation=recommender.generation, principals=[recommender.principal("somebody")]
            )
        grown.append(moved(before, after))
        waiting.append((len(own) > 0, recommender._ranking.own.waiting(own)))
    assert waiting == [(False, 0), (True, 0)], "what there was to fold was folded"
    assert grown[0] == grown[1]


async def test_a_scrape_does_not_tell_whether_somebody_votes() -> None:
    sample = SAMPLES["p-rec"]
    async with calling() as caller:
        await prepared(caller, "p-rec", sample)
        recommender = await caller.live["services"].registry.find("tried")
        votes = recommender.part(Votes)
        await votes.rounds.make(round_id="last", objects=["yes", "no"])
        recommender._counted_at = float("-inf")
        await recommender.tend()
        before = await scrape(caller)
        await votes.cast([Vote("last", "somebody new", "yes")])
        recommender._counted_at = float("-inf")
        await recommender.tend()
        after = await scrape(caller)
    assert {name for name, _ in moved(before, after)} <= NETWORK


async def test_what_was_learned_is_shown_at_a_release_with_its_noise() -> None:
    """The release's noise has a deviation of 22 on the number of 300 rewards. It exceeds twelve of
    them, in either release, with probability below 1e-7."""
    sample = SAMPLES["p-dap"]
    shown = []
    for _ in range(2):
        async with calling() as caller:
            await prepared(caller, "p-dap", sample, others=300)
            found = await scrape(caller)
            shown.append(found["discreet_released_feedback", (("recommender", "tried"),)])
            recommender = await caller.live["services"].registry.find("tried")
            assert isinstance(recommender.noise, SystemNoise)
    assert len(set(shown)) == 2, "no two releases have the same noise"
    assert all(abs(value - 300) < 22 * 12 for value in shown)
