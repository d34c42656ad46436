"""How often one request goes to the store and back, counted on the wire."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from discreet.api.direct import FEEDBACK, RECOMMEND
from discreet.decisions.grants import KeyGrant
from discreet.decisions.services import DecisionServices, open_simulation
from discreet.families.p_dap.document import AdaptivePartitionDocument
from discreet.privacy.noise import SystemNoise
from discreet.state.redis_store import open_store
from tests.end_to_end.servers import document, private
from tests.state.servers import valkey

pytestmark = pytest.mark.anyio

ALL = KeyGrant("all", frozenset({"serve"}))
recommend_one, recommend_many = RECOMMEND.answer_one(), RECOMMEND.answer_many()
feedback_one, feedback_many = FEEDBACK.answer_one(), FEEDBACK.answer_many()


class Wire:
    """A proxy in front of a store, which counts how often the conversation turns.

    A round trip is something sent after everything before it was answered, or before any answer:
    bytes from the client that follow bytes from the store.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._speaking = "store"
        self.round_trips = 0

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(*self._target)
        await asyncio.gather(
            self._carry(reader, back, "client"), self._carry(there, writer, "store")
        )

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, who: str
    ) -> None:
        try:
            while data := await reader.read(2**20):
                if who == "client":
                    self.round_trips += self._speaking == "store"
                self._speaking = who
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    @asynccontextmanager
    async def counting(self) -> AsyncIterator[list[int]]:
        """Give a list that holds, in the end, the round trips made meanwhile."""
        counted: list[int] = []
        before = self.round_trips
        yield counted
        counted.append(self.round_trips - before)


@pytest.fixture
async def joined(
    anyio_backend: str, tmp_path: Path
) -> AsyncIterator[tuple[DecisionServices, Wire]]:
    """Services without background work, so that every byte belongs to a request."""
    with valkey(tmp_path / "store") as server:
        wire = Wire("127.0.0.1", server.port)
        proxy = await asyncio.start_server(wire.connect, "127.0.0.1", 0)
        port = proxy.sockets[0].getsockname()[1]
        store = open_store(f"redis://127.0.0.1:{port}")
        services = await open_simulation(store=store, noise=SystemNoise())
        await services.registry.put("films", AdaptivePartitionDocument.model_validate(document()))
        yield services, wire
        await services.close()
        proxy.close()


def asked(client: str, **more: object) -> bytes:
    body = {"recommender": "films", "client": client, "context": [0.3, 0.6], **more}
    return json.dumps(body).encode()


async def test_one_request_is_one_round_trip(joined: tuple[DecisionServices, Wire]) -> None:
    services, wire = joined
    for number in range(5):
        async with wire.counting() as recommend:
            answer = json.loads(await recommend_one(services, ALL, asked(f"client-{number}")))
        assert answer["personalised"]
        assert recommend == [1], "the debit"
        token = answer["recommendation_id"]
        body = json.dumps({"recommendation_id": token, "reward": 1}).encode()
        async with wire.counting() as feedback:
            await feedback_one(services, ALL, body)
        assert feedback == [1], "claim, charge and add"


async def test_awaiting_a_reward_costs_no_round_trip(joined: tuple[DecisionServices, Wire]) -> None:
    services, wire = joined
    waits = document(reward={"wait": "30m"}, privacy=private(epsilon=1.0, budget=1.0, delta=0.0))
    await services.registry.remove("films")
    await services.registry.put("films", AdaptivePartitionDocument.model_validate(waits))
    async with wire.counting() as recommend:
        answer = json.loads(await recommend_one(services, ALL, asked("client")))
    assert (answer["personalised"], answer["awaiting"]) == (True, True)
    assert recommend == [1], "the debit, which opens the decision"
    body = json.dumps({"recommendation_id": answer["recommendation_id"], "reward": 1}).encode()
    async with wire.counting() as feedback:
        await feedback_one(services, ALL, body)
    assert feedback == [1], "claim, charge, add, and note that it came"
    async with wire.counting() as degraded:
        answer = json.loads(await recommend_one(services, ALL, asked("client")))
    assert (answer["personalised"], answer["awaiting"]) == (False, True)
    assert degraded == [2], "the debit is refused, so that another decision is opened"


async def test_a_safe_retry_costs_three_more(joined: tuple[DecisionServices, Wire]) -> None:
    services, wire = joined
    async with wire.counting() as first:
        await recommend_one(services, ALL, asked("x", event_id="once"))
    async with wire.counting() as again:
        await recommend_one(services, ALL, asked("x", event_id="once"))
    assert first == [4], "claim; debit; store the answer; see that nobody erased the client"
    assert again == [2], "find the answer; see that nobody erased the client"


async def test_a_batch_travels_together(joined: tuple[DecisionServices, Wire]) -> None:
    services, wire = joined
    entries = b",".join(asked(f"client-{number}") for number in range(100))
    async with wire.counting() as recommend:
        answers = await recommend_many(services, ALL, b'{"requests":[' + entries + b"]}")
    tokens = [one["recommendation_id"] for one in json.loads(answers)["results"]]
    body = {"feedback": [{"recommendation_id": token, "reward": 1} for token in tokens]}
    async with wire.counting() as feedback:
        await feedback_many(services, ALL, json.dumps(body).encode())
    # Requests and replies may come in several pieces.
    assert recommend[0] <= 20
    assert feedback[0] <= 20
