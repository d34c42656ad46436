"""Synthetic users of a running server: they ask for a recommendation and give feedback.

What they like is decided by a world whose truth is known (`worlds.environments`), so the regret
reported here is the true one: the best item's true mean minus the answered item's. The learner
never sees it. Load is bounded: a fixed rate for a fixed time with a fixed number of connections; a
server that cannot keep up is asked less often, and nothing queues.
"""

import asyncio
import ipaddress
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from pydantic import TypeAdapter

from discreet.errors import InvalidArgument
from discreet.families.contexts import ContextDocument
from discreet.research.simulate.connection import HttpAnswer, NoAnswer, ServerConnection
from discreet.research.simulate.crowd import MOST_CLIENTS, Crowd, Visit
from discreet.research.simulate.traffic_results import TrafficResults
from discreet.research.worlds.callers import coordinates, describing
from discreet.research.worlds.environments import BumpRewards, ClusteredContexts, regret

CLUSTERS = 4
SPREAD = 0.06
DEMO_WORLD = 124
"""A world in which each of the four groups of users has a favourite of its own among the demo's
films, so that learning is easy to see. Most worlds are harder."""

FAILING_SECONDS = 5.0
"""How long nothing at all may succeed before the traffic ends."""

_LONGEST_PAUSE_SECONDS = 5.0
_CONTEXT: TypeAdapter[ContextDocument] = TypeAdapter(ContextDocument)


@dataclass(frozen=True, slots=True)
class Traffic:
    """What to send, and where. `world` chooses what users like, `seed` who comes when.

    `clicks_only` leaves out feedback on what was not liked, as shops do that report clicks.
    """

    url: str
    key: str
    recommender: str
    rate: float = 400.0
    seconds: float = 60.0
    clients: int = 40_000
    seed: int = 0
    world: int = DEMO_WORLD
    name: str = "visitor"
    connections: int = 16
    allow_remote: bool = False
    clicks_only: bool = False

    def __post_init__(self) -> None:
        _within("rate", self.rate, 0.01, 10_000)
        _within("seconds", self.seconds, 0.1, 86_400)
        _within("clients", self.clients, 1, MOST_CLIENTS)
        _within("connections", self.connections, 1, 256)
        _within("seed", self.seed, 0, 2**63 - 1)
        if not self.key or not self.key.isascii() or not self.key.isprintable():
            raise InvalidArgument("key", "must be a key that the server gave out")
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise InvalidArgument("url", "must look like http://127.0.0.1:8000")
        if not self.allow_remote and not _is_loopback(parts.hostname):
            raise InvalidArgument(
                "url",
                f"{parts.hostname} is another machine, which would learn from synthetic feedback "
                "as if it were real; give --allow-remote to do it anyway",
            )


async def send_traffic(
    traffic: Traffic,
    *,
    stop: asyncio.Event | None = None,
    watch: Callable[[TrafficResults], None] = lambda results: None,
) -> TrafficResults:
    """Send the traffic and return the results; `stop` ends it early, after pending requests.

    Raises `InvalidArgument` naming `url`, `key` or `recommender` when it cannot even begin.
    """
    connections = [
        ServerConnection(url=traffic.url, key=traffic.key) for _ in range(traffic.connections)
    ]
    driver = _TrafficDriver(traffic, connections, stop or asyncio.Event(), watch)
    try:
        return await driver.run(await driver.learn_catalogue(connections[0]))
    finally:
        for connection in connections:
            connection.close()


class _TrafficDriver:
    def __init__(
        self,
        traffic: Traffic,
        connections: Sequence[ServerConnection],
        stop: asyncio.Event,
        watch: Callable[[TrafficResults], None],
    ) -> None:
        self._traffic = traffic
        self._connections = connections
        self._stop = stop
        self._watch = watch
        self._results = TrafficResults()
        self._last_success = time.monotonic()

    # Before the first visit.

    async def learn_catalogue(self, connection: ServerConnection) -> int:
        """Read the catalogue, and return how many numbers a context has.

        It is the first request, so it also finds out whether there is a server.
        """
        traffic = self._traffic
        document = await self._document(connection)
        if "context" not in document:
            raise InvalidArgument(
                "recommender",
                f"{traffic.recommender} is of the family {document.get('algorithm')}, whose "
                "requests have no context; synthetic users tell theirs",
            )
        context = _CONTEXT.validate_python(document["context"])
        dimensions = coordinates(context)
        self._describe = describing(context)
        items = tuple(item["id"] for item in document["items"] if not item["hidden"])
        if not items:
            raise InvalidArgument(
                "recommender", f"{traffic.recommender} has no items to recommend; add some first"
            )
        self._rewards = BumpRewards(items=items, dimensions=dimensions, seed=traffic.world)
        self._place = {item: index for index, item in enumerate(items)}
        self._range = document.get("reward", {}).get("range", (0.0, 1.0))
        return dimensions

    async def _document(self, connection: ServerConnection) -> dict[str, Any]:
        traffic = self._traffic
        try:
            answer = await connection.call("GET", f"/recommenders/{traffic.recommender}")
        except NoAnswer as error:
            raise InvalidArgument(
                "url",
                f"no server answers at {traffic.url} ({error}); "
                "start one with `make run` or `discreet serve --demo`",
            ) from error
        if answer.status == 401:
            raise InvalidArgument(
                "key",
                f"the server at {traffic.url} does not accept this key; the demo's key is in "
                "DATA/demo-key, any other is given with --key or DISCREET_API_KEY",
            )
        if answer.status == 403:
            raise InvalidArgument(
                "key", "needs the admin scope besides serve, to read the catalogue"
            )
        if answer.status == 404:
            raise InvalidArgument(
                "recommender",
                f"no {traffic.recommender} here; there are: {await self._names(connection)}",
            )
        if answer.status != 200 or answer.body is None:
            raise InvalidArgument(
                "url", f"{traffic.url} answers {answer.status}: not a Discreet server?"
            )
        return answer.body

    async def _names(self, connection: ServerConnection) -> str:
        answer = await connection.call("GET", "/recommenders")
        names = (answer.body or {}).get("recommenders")
        if answer.status != 200 or not isinstance(names, list):
            return "no list of recommenders: not a Discreet server?"
        return ", ".join(names) or "none"

    # The visits.

    async def run(self, dimensions: int) -> TrafficResults:
        """Let every visit come at its time, until the time is over or nothing succeeds any more."""
        traffic = self._traffic
        contexts = ClusteredContexts(
            dimensions=dimensions, clusters=CLUSTERS, spread=SPREAD, seed=traffic.world
        )
        crowd = Crowd(
            contexts=contexts, clients=traffic.clients, name=traffic.name, seed=traffic.seed
        )
        numbers = itertools.count()
        self._results.begin()
        self._last_success = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for connection in self._connections:
                group.create_task(self._visit_in_turn(connection, numbers, crowd))
        self._results.finish(interrupted=self._stop.is_set())
        return self._results

    async def _visit_in_turn(
        self, connection: ServerConnection, numbers: Iterator[int], crowd: Crowd
    ) -> None:
        traffic, results = self._traffic, self._results
        while not self._stop.is_set() and results.gave_up is None:
            due = next(numbers) / traffic.rate
            if due >= traffic.seconds or results.elapsed() >= traffic.seconds:
                return
            # Taken in turn and before any waiting, so that visit n is the same in every run.
            visit = crowd.visit()
            if await self._stopped_within(due - results.elapsed()):
                return
            await self._visit(connection, visit)
            self._watch(results)

    async def _visit(self, connection: ServerConnection, visit: Visit) -> None:
        question = {
            "recommender": self._traffic.recommender,
            "client": visit.client,
            "context": self._said(visit),
        }
        answer = await self._post(connection, "/recommend", question)
        if answer is None:
            return
        item = answer["items"][0]["id"]
        if not await self._knows_item(connection, item):
            return
        means = self._rewards.means(visit.context)
        place = self._place[item]
        reward = visit.reward(float(means[place]))
        self._results.add_answer(
            personalised=answer["personalised"], reward=reward, regret=regret(means, [place])
        )
        if self._traffic.clicks_only and not reward:
            return
        told = self._range[1] if reward else self._range[0]
        feedback = {"recommendation_id": answer["recommendation_id"], "reward": told}
        if await self._post(connection, "/feedback", feedback) is not None:
            self._results.add_feedback()

    def _said(self, visit: Visit) -> Any:
        said = self._describe(np.array(visit.context))
        return said.tolist() if isinstance(said, np.ndarray) else said

    async def _knows_item(self, connection: ServerConnection, item: str) -> bool:
        """Tell whether the item's true mean is known; the catalogue may have grown meanwhile."""
        if item not in self._place:
            try:
                await self.learn_catalogue(connection)
            except (InvalidArgument, NoAnswer) as error:
                self._results.add_error(str(error))
                return False
        if item not in self._place:
            self._results.add_error("the answer's item is not in the catalogue")
            return False
        return True

    async def _post(
        self, connection: ServerConnection, path: str, body: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Return the answer, or None after an error, which was counted."""
        try:
            answer = await connection.call("POST", path, body)
        except NoAnswer as error:
            await self._failed(f"no answer from the server ({error})", 0.2)
            return None
        if answer.status == 200 and answer.body is not None:
            self._last_success = time.monotonic()
            return answer.body
        pause = min(answer.retry_after, _LONGEST_PAUSE_SECONDS)
        await self._failed(_problem(path, answer), pause)
        return None

    async def _failed(self, reason: str, pause: float) -> None:
        self._results.add_error(reason)
        if time.monotonic() - self._last_success > FAILING_SECONDS:
            self._results.give_up(f"nothing has succeeded for {FAILING_SECONDS:g} s: {reason}")
            return
        await self._stopped_within(pause)

    async def _stopped_within(self, seconds: float) -> bool:
        """Wait; return early, and True, once `stop` is set."""
        if seconds <= 0:
            return self._stop.is_set()
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return False
        return True


def _within(argument: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise InvalidArgument(argument, f"must lie between {low:,g} and {high:,g}")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _problem(path: str, answer: HttpAnswer) -> str:
    title = (answer.body or {}).get("title", "")
    return f"{path} answers {answer.status} {title}".rstrip()
