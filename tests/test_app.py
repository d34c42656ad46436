"""The application of one worker: what its lifespan opens, watches and closes."""

import asyncio
import itertools
from typing import Any

import httpx
import pytest

from discreet.app import create_app
from discreet.errors import SeededNoiseRefused, StoreFenced, StoreUnavailable
from discreet.metrics import Metrics
from discreet.peers.gateway import HttpPeerGateway
from discreet.research.noise import SeededNoise
from discreet.settings import Settings
from discreet.state.memory import MemoryStore
from tests.api.conftest import KEY, Caller, calling
from tests.api.stores import GONE, MoodyStore
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio


async def test_the_application_refuses_to_start_with_seeded_noise() -> None:
    app = create_app(Settings(), opening=lambda _: MemoryStore(), noise=SeededNoise(7))
    with pytest.raises(SeededNoiseRefused):
        async with app.router.lifespan_context(app):
            pass


async def test_a_store_that_is_away_at_the_start_is_an_error() -> None:
    store = MoodyStore()
    store.mood = GONE
    app = create_app(Settings(), opening=lambda _: store)
    with pytest.raises(StoreUnavailable):
        async with app.router.lifespan_context(app):
            pass


async def test_a_refused_store_is_a_503_until_it_can_be_used() -> None:
    refusal: list[Exception] = [StoreFenced("it went back in time")]

    class Refused(MemoryStore):
        async def open(self) -> None:
            if refusal:
                raise refusal[0]

    anew = asyncio.Event()
    app = create_app(
        Settings(api_key=KEY), opening=lambda _: Refused(), begin_anew=lambda: anew.set()
    )
    async with app.router.lifespan_context(app) as live:

        async def with_state(scope: Any, receive: Any, send: Any) -> None:
            await app({**scope, "state": dict(live)}, receive, send)

        headers = {"Authorization": f"Bearer {KEY}"}
        transport = httpx.ASGITransport(app=with_state)
        async with Caller(transport=transport, base_url="http://test", headers=headers) as caller:
            for answer in (
                await caller.get("/health/ready"),
                await caller.get("/recommenders"),
                await caller.ask(),
            ):
                assert answer.status_code == 503
                assert answer.json()["type"] == "urn:discreet:problem:store-fenced"
                assert int(answer.headers["retry-after"]) > 0
            assert (await caller.get("/health/live")).status_code == 200
        refusal.clear()
        async with asyncio.timeout(PATIENCE):
            await anew.wait()


async def test_what_is_opened_is_closed() -> None:
    closed = []

    class Counting(MemoryStore):
        async def close(self) -> None:
            closed.append(True)

    before = {task for task in asyncio.all_tasks() if not task.done()}
    async with calling(Counting()) as caller:
        assert (await caller.ask()).status_code == 200
    assert closed == [True]
    assert {task for task in asyncio.all_tasks() if not task.done()} <= before


async def test_everything_is_closed_even_if_an_early_step_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[str] = []

    class Stuck(MemoryStore):
        async def close(self) -> None:
            raise OSError("the store does not close")

    async def close(_: HttpPeerGateway) -> None:
        closed.append("peers")

    def flush(_: Metrics) -> None:
        closed.append("metrics")

    monkeypatch.setattr(HttpPeerGateway, "close", close)
    peers = {"b": "a-key-of-some-length"}
    app = create_app(Settings(peer_keys=peers), opening=lambda _: Stuck())
    with pytest.raises(OSError, match="does not close"):
        async with app.router.lifespan_context(app):
            monkeypatch.setattr(Metrics, "flush", flush)
    assert closed == ["peers", "metrics"]


async def shows(caller: Caller, line: str) -> None:
    """Return once a scrape has a line that begins so."""
    async with asyncio.timeout(PATIENCE):
        for _ in itertools.count():
            text = (await caller.get("/metrics")).text
            if any(one.startswith(line) for one in text.splitlines()):
                return


async def test_the_store_and_the_recommenders_are_looked_at_all_the_time() -> None:
    store = MoodyStore()
    async with calling(store) as caller:
        # A recommender that nobody has asked yet is there, at zero.
        await shows(caller, 'discreet_items_total{algorithm="p-dap",recommender="films"} 0.0')
        for mood, up in ((GONE, 0), (KeyError("canary"), 0), (None, 1)):
            store.mood = mood
            await shows(caller, f"discreet_store_up {up}.0")


async def test_every_operation_has_an_id_a_tag_and_a_description() -> None:
    document = create_app(Settings()).openapi()
    operations = [one for methods in document["paths"].values() for one in methods.values()]
    assert len({one["operationId"] for one in operations}) == len(operations)
    for one in operations:
        assert one["tags"]
        assert one["description"]
    assert document["components"]["securitySchemes"] == {
        "ApiKey": {"type": "http", "scheme": "bearer"},
        "SubscriptionKey": {"type": "apiKey", "in": "header", "name": "Ocp-Apim-Subscription-Key"},
    }
    assert "GuaranteeCard" in document["components"]["schemas"]
