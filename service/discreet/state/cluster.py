"""Commands to the members of a cluster, each to the master of its key's slot.

Replication is asynchronous: when a master dies, the replica that takes over may lack the last
writes that the master had acknowledged. A debit among them is then forgotten, and its principal
could spend it again. `min-replicas-to-write 1` narrows the window and `appendfsync always` covers
every crash that the master itself comes back from; neither closes it. A deployment whose budgets
must survive the loss of a machine runs a single durable master, and lives with its outages.
"""

import asyncio
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from redis.crc import key_slot

from discreet.errors import StoreUnavailable, StoreUnsuitable
from discreet.state import scripts
from discreet.state.commands import Command
from discreet.state.dialling import dial, first_answer
from discreet.state.lanes import Lane, backoff
from discreet.state.routes import Route, closed
from discreet.state.urls import Location, Node
from discreet.state.wire import Refused

SLOTS = 16_384
CALM = 0.1
"""Seconds between two questions about the topology, however many commands ask for one."""


class Cluster(Route):
    """One lane to each master; the map of slots follows redirections and failures."""

    def __init__(self, location: Location, timeout: float) -> None:
        super().__init__(location, timeout)
        self._lane_of: dict[Node, Lane] = {}
        self._owner_of: list[Lane | None] = [None] * SLOTS
        self._held: list[Command] = []
        self._failure: StoreUnavailable | StoreUnsuitable | None = None
        self._mapped = asyncio.Event()
        self._mapping: asyncio.Task[None] | None = None
        self._leaving: set[asyncio.Task[None]] = set()

    def lanes(self) -> Iterable[Lane]:
        return list(self._lane_of.values())

    def submit(self, command: Command) -> None:
        lane = self._owner_of[key_slot(command.key)]
        if lane is not None:
            lane.send(command)
        elif self._closed:
            command.fail(closed())
        else:
            self._held.append(command)
            self._map_again()

    async def ready(self) -> None:
        self._map_again()
        try:
            async with asyncio.timeout(self._timeout):
                while None in self._owner_of and not isinstance(self._failure, StoreUnsuitable):
                    self._mapped.clear()
                    await self._mapped.wait()
                    self._map_again()
        except TimeoutError:
            self._failure = self._failure or StoreUnavailable("the cluster lacks some slots")
        if self._failure is not None:
            raise self._failure
        await super().ready()

    async def close(self) -> None:
        self._closed = True
        if self._mapping is not None:
            self._mapping.cancel()
            await asyncio.gather(self._mapping, return_exceptions=True)
        await asyncio.gather(*self._leaving)
        await super().close()
        for command in self._held:
            command.fail(closed())
        self._held.clear()

    def refused(self, lane: Lane, command: Command, message: str) -> None:
        code, _, rest = message.partition(" ")
        if code in ("MOVED", "ASK"):
            self._redirect(lane, command, code, rest)
        else:
            if code in ("CLUSTERDOWN", "READONLY"):
                self._map_again()
            super().refused(lane, command, message)

    def lost(self, lane: Lane, ran: Sequence[Command], unsent: Sequence[Command]) -> None:
        self._map_again()
        super().lost(lane, ran, unsent)

    def unreachable(self, lane: Lane) -> None:
        self._map_again()

    def expire(self, now: float) -> None:
        super().expire(now)
        held, self._held = self._held, []
        for command in held:
            if now > command.deadline:
                command.fail(StoreUnavailable("no member of the cluster can be reached"))
            else:
                self._held.append(command)

    def _redirect(self, lane: Lane, command: Command, code: str, rest: str) -> None:
        """Follow a redirection: MOVED for good, ASK for this once."""
        try:
            slot, _, endpoint = rest.partition(" ")
            host, _, port = endpoint.rpartition(":")
            node = Node(host or self._host_of(lane), int(port))
            owner = self._lane_to(node)
            if code == "MOVED":
                self._owner_of[int(slot)] = owner
        except (ValueError, IndexError):
            command.fail(StoreUnavailable("the cluster redirects to nowhere"))
            return
        if code == "ASK":
            owner.send(_asking(command))
            owner.send(command)
            return
        self._map_again()
        if command.attempts < 3:
            command.attempts += 1
            owner.send(command)
        else:
            self.retry(command)  # members that name each other come to agree in a moment

    def _host_of(self, lane: Lane) -> str:
        """Return the host of a lane: a redirection without a host means the same one."""
        return next((node.host for node, each in self._lane_of.items() if each is lane), "")

    def _lane_to(self, node: Node) -> Lane:
        lane = self._lane_of.get(node)
        if lane is None:
            lane = Lane(self, lambda: dial(self._location, node, self._timeout), self._timeout)
            self._lane_of[node] = lane
        return lane

    def _map_again(self) -> None:
        """Have the topology read anew, once for all who ask within a moment."""
        if not self._closed and (self._mapping is None or self._mapping.done()):
            self._mapping = self._loop.create_task(self._map())

    async def _map(self) -> None:
        attempts = 0
        while True:
            try:
                self._adopt(*await self._ask_topology())
            except (StoreUnavailable, StoreUnsuitable) as failure:
                self._failure = failure
                self._mapped.set()
                await asyncio.sleep(backoff(attempts))
                attempts += 1
            else:
                break
        self._failure = None
        self._mapped.set()
        held, self._held = self._held, []
        for command in held:
            if self._owner_of[key_slot(command.key)] is None:
                self.retry(command)
            else:
                self.submit(command)
        # Whoever saw a failure meanwhile saw it on the old map; those of the new one ask again.
        await asyncio.sleep(CALM)

    async def _ask_topology(self) -> tuple[str, Any]:
        """Return CLUSTER SLOTS and the host that was asked, from any member that answers."""
        members = [*self._lane_of, *(node for node in self._location.nodes)]
        random.shuffle(members)
        members.sort(key=lambda node: not self._is_up(node))
        failure = "no member of the cluster can be reached"
        for node in dict.fromkeys(members):
            try:
                lane = self._lane_of.get(node)
                if lane is not None and lane.wire is not None:
                    async with asyncio.timeout(self._timeout / 2):
                        return node.host, await lane.wire.ask(_SLOTS)
                return node.host, await first_answer(
                    self._location,
                    (node,),
                    self._location.credentials,
                    self._timeout,
                    b"CLUSTER",
                    b"SLOTS",
                )
            except Refused as refusal:
                if "cluster support disabled" in refusal.message:
                    raise StoreUnsuitable(
                        "the store is not a cluster; use redis:// instead of redis+cluster://"
                    ) from None
                failure = str(refusal)
            except (OSError, TimeoutError):
                continue
        raise StoreUnavailable(failure)

    def _is_up(self, node: Node) -> bool:
        lane = self._lane_of.get(node)
        return lane is not None and lane.wire is not None

    def _adopt(self, asked: str, reply: Any) -> None:
        """Make the topology ours: new lanes, moved slots; lanes of nobody's slots are closed."""
        owners: list[Lane | None] = [None] * SLOTS
        masters = set()
        for first, last, node in _ranges(asked, reply):
            owners[first : last + 1] = [self._lane_to(node)] * (last + 1 - first)
            masters.add(node)
        if not masters:
            raise StoreUnavailable("the cluster has no slots yet")
        self._owner_of = owners
        for node in set(self._lane_of) - masters:
            task = self._loop.create_task(self._leave(self._lane_of.pop(node)))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    async def _leave(self, lane: Lane) -> None:
        for command in await lane.close():
            self.retry(command)


_SLOTS = scripts.packed(b"CLUSTER", b"SLOTS")
_ASKING = scripts.packed(b"ASKING")


def _ranges(asked: str, reply: Any) -> Iterator[tuple[int, int, Node]]:
    """Yield (first slot, last slot, master) from CLUSTER SLOTS; no host means the one asked."""
    try:
        for first, last, master, *_ in reply:
            host = (master[0] or b"").decode()
            if not 0 <= first <= last < SLOTS:
                raise ValueError("a slot out of range")
            yield first, last, Node(asked if host in ("", "?") else host, master[1])
    except (AttributeError, TypeError, ValueError, IndexError):
        raise StoreUnavailable("the cluster describes itself unintelligibly") from None


def _asking(command: Command) -> Command:
    """Return the permission that must directly precede a command to an importing member."""
    nobody = asyncio.get_running_loop().create_future()
    nobody.cancel()
    return Command(
        _ASKING,
        key=command.key,
        convert=lambda reply: reply,
        future=nobody,
        repeatable=False,
        deadline=command.deadline,
    )
