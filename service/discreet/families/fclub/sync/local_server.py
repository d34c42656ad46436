"""The local side: noisy updates out, the merged model in.

Whatever goes wrong on the way is tried again later; nobody waits for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from pydantic_core import from_json, to_json

from discreet.errors import InvalidArgument, PeerUnavailable
from discreet.families.contract import Recommender
from discreet.families.fclub.document import GlobalServerDocument
from discreet.families.fclub.model import ClusterModel, NumberedUpdate
from discreet.families.fclub.sums import SumsEncoding
from discreet.families.fclub.sync.merged_model import MergedModelStore, read_merged_model
from discreet.families.observer import FamilyCounter
from discreet.state.stores import Blobs

UPDATES_PATH = "noisy-updates"
MERGED_PATH = "merged-model"
LEASE_SECONDS = 15.0
SHORTEST_PAUSE = 1.0
LONGEST_PAUSE = 8.0
"""Seconds between two exchanges: the shorter ones while something happens."""
MOST_NUMBERS = 80_000
"""In one message: far below the two megabytes that a server takes by default."""
MOST_UPDATES = 64
"""In one message."""


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Which updates the global server has: the number of the next that it wants."""

    store: Blobs
    key: bytes

    async def load(self) -> int:
        """Return the number; 0 if nothing was delivered yet."""
        (blob,) = await self.store.load(keys=[self.key])
        return 0 if blob is None else int.from_bytes(blob.content, "big")

    async def save(self, wanted: int) -> None:
        """Note what the global server said."""
        await self.store.save(key=self.key, content=wanted.to_bytes(8, "big"))


class LocalExchange:
    """Speaks to the global server for one local recommender; one worker at a time does."""

    def __init__(
        self,
        recommender: Recommender[ClusterModel],
        *,
        server: GlobalServerDocument,
        encoding: SumsEncoding,
        merged: MergedModelStore,
        deliveries: Deliveries,
        holder: bytes,
    ) -> None:
        self._recommender = recommender
        self._server = server
        self._encoding = encoding
        self._merged = merged
        self._deliveries = deliveries
        self._holder = holder
        self._pause = SHORTEST_PAUSE
        self._next = 0.0
        self._wanted: int | None = None
        """The update that the global server wants next; None if it was not asked yet."""

    async def run(self) -> None:
        """Exchange what there is, if it is time."""
        # A clock that was turned back must not end the exchange for as long.
        if 0 < self._next - self._recommender.clock() <= LONGEST_PAUSE:
            return
        busy = False
        try:
            busy = await self.exchange()
        finally:
            self._pause = SHORTEST_PAUSE if busy else min(2 * self._pause, LONGEST_PAUSE)
            self._next = self._recommender.clock() + self._pause

    async def exchange(self) -> bool:
        """Send updates and fetch the merged model; tell whether anything happened."""
        recommender = self._recommender
        lease = recommender.key(b"exchange")
        held = await recommender.store.hold(lease=lease, holder=self._holder, seconds=LEASE_SECONDS)
        if not held:
            self._wanted = None  # somebody else goes on from here
            return False
        if not recommender.peers.reachable(self._server.name):
            return False
        sent = await self._send(recommender.current.model.updates)
        fetched = await self._fetch()
        return sent or fetched

    async def _send(self, updates: Sequence[NumberedUpdate]) -> bool:
        """Send what the global server has not; tell whether it took any."""
        if self._wanted is None:
            # An empty message asks what it has.
            self._wanted = await self._post_updates([])
            if self._wanted is None:
                return False
        waiting = [each for each in updates if each.number >= (self._wanted or 0)]
        if not waiting:
            return False
        some = _fitting(waiting)
        wanted = await self._post_updates(some)
        if wanted is None:
            return False
        self._recommender.observer.count(
            recommender=self._recommender.name,
            what=FamilyCounter.COMMUNICATIONS,
            label="upload",
            amount=sum(each.number < wanted for each in some),
        )
        self._wanted = wanted
        return True

    async def _post_updates(self, updates: Sequence[NumberedUpdate]) -> int | None:
        """Return the number of the update that the global server wants next."""
        answer = await self._post(
            UPDATES_PATH,
            {
                "source": self._recommender.generation.hex(),
                "dimensions": self._encoding.dimensions,
                "baseline": self._encoding.baseline,
                "updates": [
                    {
                        "number": number,
                        "members": update.members,
                        "steps": update.steps.tolist(),
                        "deviation": update.deviation,
                    }
                    for number, update in updates
                ],
            },
        )
        if answer is None:
            return None
        try:
            wanted = from_json(answer)["next"]
            if type(wanted) is not int or wanted < 0:
                raise ValueError
        except (ValueError, TypeError, KeyError):
            self._recommender.peers.distrust(peer=self._server.name)
            return None
        await self._deliveries.save(wanted)
        return wanted

    async def _fetch(self) -> bool:
        """Fetch the merged model and keep it, if it is another than the one we have."""
        kept = await self._merged.load()
        seen = -1 if kept is None else kept.version
        answer = await self._post(
            MERGED_PATH, {"source": self._recommender.generation.hex(), "seen": seen}
        )
        if answer is None or answer == b"null":
            return False
        try:
            merged = read_merged_model(answer, dimensions=self._encoding.dimensions)
        except InvalidArgument:
            self._recommender.peers.distrust(peer=self._server.name)
            return False
        if merged.version == seen:
            return False
        await self._merged.save(answer)
        self._recommender.observer.count(
            recommender=self._recommender.name,
            what=FamilyCounter.COMMUNICATIONS,
            label="download",
        )
        return True

    async def _post(self, path: str, message: dict[str, Any]) -> bytes | None:
        """Send a message; return the answer, or None if there is none that can be used."""
        recommender, server = self._recommender, self._server
        name = quote(server.recommender or recommender.name, safe="")
        content = to_json(message)
        outcome, answer = "refused", None
        try:
            status, body = await recommender.peers.post(
                peer=server.name,
                url=f"{server.url}/peers/recommenders/{name}/{path}",
                content=content,
            )
            if status == 200:
                outcome, answer = "answered", body
            else:
                # It will not be accepted a moment later either: let the circuit find a pace.
                recommender.peers.distrust(peer=server.name)
        except PeerUnavailable as failure:
            outcome = failure.reason
        recommender.observer.exchanged(
            recommender=recommender.name,
            peer=server.name,
            direction="sent",
            outcome=outcome,
            size=len(content),
        )
        return answer


def _fitting(waiting: Sequence[NumberedUpdate]) -> list[NumberedUpdate]:
    """Return the first updates that fit a message, one at least."""
    numbers = 0
    some: list[NumberedUpdate] = []
    for each in waiting[:MOST_UPDATES]:
        numbers += len(each.update.members) + len(each.update.steps)
        if some and numbers > MOST_NUMBERS:
            break
        some.append(each)
    return some
