"""Made-up people who use a running server: recommend, look, give feedback.

What they like is decided by a world whose truth is known (`environments`), so the regret reported
here is the true one: the best item's true mean minus the answered item's. The learner never sees
it. Load is bounded: a fixed rate for a fixed time with a fixed number of connections; a server that
cannot keep up is asked less often, never queued upon.
"""

import asyncio
import ipaddress
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from discreet.errors import InvalidArgument
from discreet.research.crowd import MOST_CLIENTS, Crowd, Visit
from discreet.research.environments import BumpRewards, ClusteredContexts, regret
from discreet.research.lane import Answer, Lane, Unanswered
from discreet.research.tally import Tally

CLUSTERS = 4
SPREAD = 0.06
DEMO_WORLD = 124
"""A world in which each of the four kinds of people has a favourite of its own among the demo's
films, so that learning is plain to see. Most worlds are harder."""

PATIENCE_SECONDS = 5.0
"""How long nothing at all may succeed before the server is called gone."""

_LONGEST_PAUSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """What to send, and where. `world` chooses what people like, `seed` who comes when."""

    url: str
    key: str
    recommender: str
    rate: float = 200.0
    seconds: float = 60.0
    clients: int = 3_000
    seed: int = 0
    world: int = DEMO_WORLD
    name: str = "visitor"
    connections: int = 16
    allow_remote: bool = False

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
                f"{parts.hostname} is another machine, and made-up feedback would be learned "
                "there as if it were real; --allow-remote says that this is meant",
            )


async def drive(
    traffic: Traffic,
    *,
    stop: asyncio.Event | None = None,
    watch: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Send the traffic and return what came of it; `stop` ends it early, requests under way first.

    Raises `InvalidArgument` naming `url`, `key` or `recommender` when it cannot even begin.
    """
    lanes = [Lane(url=traffic.url, key=traffic.key) for _ in range(traffic.connections)]
    driver = _Driver(traffic, lanes, stop or asyncio.Event(), watch)
    try:
        return await driver.run(await driver.learn_catalogue(lanes[0]))
    finally:
        for lane in lanes:
            lane.close()


class _Driver:
    def __init__(
        self,
        traffic: Traffic,
        lanes: Sequence[Lane],
        stop: asyncio.Event,
        watch: Callable[[Tally], None],
    ) -> None:
        self._traffic = traffic
        self._lanes = lanes
        self._stop = stop
        self._watch = watch
        self._tally = Tally()
        self._last_success = time.monotonic()

    # Before the first visit.

    async def learn_catalogue(self, lane: Lane) -> int:
        """Ask what can be recommended, and return how many numbers a context has.

        This is also how we find out whether there is anybody to talk to.
        """
        traffic = self._traffic
        document = await self._document(lane)
        dimensions = int(document["context"]["dimensions"])
        items = tuple(item["id"] for item in document["items"] if not item["hidden"])
        if not items:
            raise InvalidArgument(
                "recommender", f"{traffic.recommender} has no items to recommend; add some first"
            )
        self._rewards = BumpRewards(items=items, dimensions=dimensions, seed=traffic.world)
        self._place = {item: index for index, item in enumerate(items)}
        return dimensions

    async def _document(self, lane: Lane) -> dict[str, Any]:
        traffic = self._traffic
        try:
            answer = await lane.call("GET", f"/recommenders/{traffic.recommender}")
        except Unanswered as error:
            raise InvalidArgument(
                "url",
                f"no server answers at {traffic.url} ({error}); "
                "start one with `make run` or `discreet serve --demo`",
            ) from error
        if answer.status == 401:
            raise InvalidArgument(
                "key",
                f"the server at {traffic.url} does not know this key; the demo's is in "
                "DATA/demo-key, any other is given with --key or DISCREET_API_KEY",
            )
        if answer.status == 403:
            raise InvalidArgument(
                "key", "needs the admin scope besides serve, to read the catalogue"
            )
        if answer.status == 404:
            raise InvalidArgument(
                "recommender", f"no {traffic.recommender} here; there is {await self._names(lane)}"
            )
        if answer.status != 200 or answer.body is None:
            raise InvalidArgument(
                "url", f"{traffic.url} answers {answer.status}, not as Discreet would"
            )
        return answer.body

    async def _names(self, lane: Lane) -> str:
        answer = await lane.call("GET", "/recommenders")
        names = (answer.body or {}).get("recommenders")
        if answer.status != 200 or not isinstance(names, list):
            return "no list of recommenders either: is this a Discreet server?"
        return ", ".join(names) or "none at all"

    # The visits.

    async def run(self, dimensions: int) -> Tally:
        """Let everybody come, each at their time, until time or patience is over."""
        traffic = self._traffic
        contexts = ClusteredContexts(
            dimensions=dimensions, clusters=CLUSTERS, spread=SPREAD, seed=traffic.world
        )
        crowd = Crowd(
            contexts=contexts, clients=traffic.clients, name=traffic.name, seed=traffic.seed
        )
        numbers = itertools.count()
        self._tally.begin()
        self._last_success = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for lane in self._lanes:
                group.create_task(self._visit_in_turn(lane, numbers, crowd))
        self._tally.finish(interrupted=self._stop.is_set())
        return self._tally

    async def _visit_in_turn(self, lane: Lane, numbers: Iterator[int], crowd: Crowd) -> None:
        traffic, tally = self._traffic, self._tally
        while not self._stop.is_set() and tally.gone is None:
            due = next(numbers) / traffic.rate
            if due >= traffic.seconds or tally.elapsed() >= traffic.seconds:
                return
            # Taken in turn and before any waiting, so that visit n is the same in every run.
            visit = crowd.visit()
            if await self._stopped_within(due - tally.elapsed()):
                return
            await self._one(lane, visit)
            self._watch(tally)

    async def _one(self, lane: Lane, visit: Visit) -> None:
        asked = {
            "recommender": self._traffic.recommender,
            "client": visit.client,
            "context": visit.context,
        }
        answer = await self._post(lane, "/recommend", asked)
        if answer is None:
            return
        item = answer["items"][0]["id"]
        if not await self._knows(lane, item):
            return
        means = self._rewards.means(visit.context)
        place = self._place[item]
        reward = visit.reward(float(means[place]))
        self._tally.answered(
            personalised=answer["personalised"], reward=reward, regret=regret(means, [place])
        )
        told = {"recommendation_id": answer["recommendation_id"], "reward": reward}
        if await self._post(lane, "/feedback", told) is not None:
            self._tally.heard()

    async def _knows(self, lane: Lane, item: str) -> bool:
        """Tell whether the item's truth is known; the catalogue may have grown under our feet."""
        if item not in self._place:
            try:
                await self.learn_catalogue(lane)
            except (InvalidArgument, Unanswered) as error:
                self._tally.fault(str(error))
                return False
        if item not in self._place:
            self._tally.fault("answers with an item that is not in the catalogue")
            return False
        return True

    async def _post(self, lane: Lane, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer, or None after having noted why there is none."""
        try:
            answer = await lane.call("POST", path, body)
        except Unanswered as error:
            await self._failed(f"no answer from the server ({error})", 0.2)
            return None
        if answer.status == 200 and answer.body is not None:
            self._last_success = time.monotonic()
            return answer.body
        pause = min(answer.retry_after, _LONGEST_PAUSE_SECONDS)
        await self._failed(_problem(path, answer), pause)
        return None

    async def _failed(self, reason: str, pause: float) -> None:
        self._tally.fault(reason)
        if time.monotonic() - self._last_success > PATIENCE_SECONDS:
            self._tally.give_up(f"nothing has succeeded for {PATIENCE_SECONDS:g} s: {reason}")
            return
        await self._stopped_within(pause)

    async def _stopped_within(self, seconds: float) -> bool:
        """Wait; return early, and True, if somebody says stop."""
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


def _problem(path: str, answer: Answer) -> str:
    title = (answer.body or {}).get("title", "")
    return f"{path} answers {answer.status} {title}".rstrip()
