"""The global side: keeps everybody's noisy updates, and merges them into one model.

A server is known by the label of its key and by its source, a name that a recommender gets when it
is created: whoever deletes a local recommender and begins anew is another server from then on.

The updates of a server are one blob, changed by compare-and-set: for each set of members the newest
total, and the number of the next update that is wanted. Merging looks at updates only, so it is
post-processing: free, and repeatable. It is this recommender's release: the merged model is stored,
and every worker answers from its memory.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from pydantic_core import from_json, to_json

from discreet.errors import InvalidArgument, NotAllowed, StateOverflow
from discreet.families.contract import Recommender
from discreet.families.fclub.codec import Arrays
from discreet.families.fclub.consensus import Consensus, ServerUpdate, consensus
from discreet.families.fclub.evidence import Knowledge
from discreet.families.fclub.learning import FederatedClusters, Reading
from discreet.families.fclub.model import ClusterModel, UserKinds
from discreet.families.fclub.sums import NoisyUpdate, folded, unfolded
from discreet.families.fclub.sync.merged_model import MOST_CLUSTERS, MergedModel
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import Store

log = logging.getLogger(__name__)

MOST_SERVERS = 256
MOST_SERVER_BYTES = 2**25
"""Of what is kept of one server."""


@dataclass(frozen=True, slots=True)
class ArrivedUpdates:
    """Updates as they came, all of one server: number, members, steps and deviation of each."""

    label: str
    source: str
    dimensions: int
    baseline: float
    updates: Sequence[tuple[int, Sequence[int], Sequence[int], float]]

    @property
    def server(self) -> str:
        """The name of the sending server."""
        return server_name(self.label, self.source)


def server_name(label: str, source: str) -> str:
    """Return how a server is known here."""
    return f"{source}/{label}"


@dataclass(frozen=True, eq=False)
class GlobalModel(ClusterModel):
    """What everybody's updates say together; None before there is any."""

    found: Consensus | None
    kinds: UserKinds
    updates = ()

    @property
    def clusters(self) -> int:
        """How many clusters there are."""
        return 0 if self.found is None else self.found.clusters

    def merged_for(self, server: str, version: int) -> MergedModel | None:
        """Return what a server may use of the others' updates."""
        found = self.found
        if found is None:
            return None
        foreign, counts = found.foreign(server), found.foreign_counts(server)
        groups = found.groups(server)
        if found.clusters > MOST_CLUSTERS:
            kept = np.sort(np.argsort(-counts, kind="stable")[:MOST_CLUSTERS])
            place = {int(label): at for at, label in enumerate(kept)}
            foreign, counts = foreign[kept], counts[kept]
            groups = {one: place[label] for one, label in groups.items() if label in place}
        return MergedModel(version, foreign, counts, groups)


class GlobalReading(Reading[GlobalModel]):
    """Merges what servers sent."""

    def __init__(
        self,
        *,
        rule: FederatedClusters,
        store: Store,
        key: Callable[[bytes, bytes], bytes],
    ) -> None:
        self.rule = rule
        self._store = store
        self._key = key
        self._known: set[str] = set()

    def blank(self) -> GlobalModel:
        """Return the model before any update came."""
        return self._model(None)

    def _model(self, found: Consensus | None) -> GlobalModel:
        nobody = Knowledge.nothing(dimensions=self.rule.dimensions, pieces=0)
        return GlobalModel(found, UserKinds(nobody, np.zeros(0), self.rule.clustering.variety))

    async def keep(
        self, server: str, updates: Sequence[tuple[int, NoisyUpdate]]
    ) -> tuple[int, bool]:
        """Keep what is new; return the number that is wanted next, and whether anything was new."""
        key = self._key(b"server", server.encode())
        if updates:
            await self._register(server)
        while True:
            (blob,) = await self._store.load(keys=[key])
            wanted, totals = (0, {}) if blob is None else _read_server(blob.content)
            new = [(number, update) for number, update in updates if number >= wanted]
            if not new:
                return wanted, False
            totals.update({update.members: update for _, update in new})
            wanted = max(number for number, _ in new) + 1
            content = _write_server(wanted, totals)
            if len(content) > MOST_SERVER_BYTES:
                raise StateOverflow("this recommender cannot keep more updates of this server")
            saved = await self._store.save(
                key=key, content=content, expected=0 if blob is None else blob.version
            )
            if saved is not None:
                return wanted, True

    async def _register(self, server: str) -> None:
        """Note that a server exists, so that merging finds it."""
        if server in self._known:
            return
        known = await self._servers()
        if server not in known and len(known) >= MOST_SERVERS:
            raise StateOverflow("this recommender has as many servers as it can have")
        name = blake2b(server.encode(), digest_size=16).digest()
        await self._store.put_message(
            queue=self._key(b"servers", b""), name=name, content=server.encode()
        )
        self._known.add(server)

    async def _servers(self) -> list[str]:
        found = await self._store.messages(queue=self._key(b"servers", b""), most=2 * MOST_SERVERS)
        return sorted(name.decode() for name in found.values())

    async def gather(self, number: int, model: GlobalModel) -> list[ServerUpdate]:
        """Return every server's updates."""
        servers = await self._servers()
        keys = [self._key(b"server", server.encode()) for server in servers]
        received: list[ServerUpdate] = []
        for server, blob in zip(servers, await self._store.load(keys=keys), strict=True):
            if blob is None:
                continue
            try:
                _, totals = _read_server(blob.content)
            except (ValueError, TypeError, KeyError):
                log.exception("fclub: the updates of a server cannot be read; they are left out")
                continue
            received += [ServerUpdate(server, update) for update in totals.values()]
        return received

    def release(
        self, model: GlobalModel, gathered: list[ServerUpdate], noise: NoiseSource
    ) -> GlobalModel:
        """Return what all updates together say."""
        if not gathered:
            return self._model(None)
        return self._model(
            consensus(
                gathered,
                encoding=self.rule.encoding,
                clustering=self.rule.clustering,
                reward_variance=self.rule.reward_variance,
            )
        )

    def as_arrays(self, model: GlobalModel) -> Arrays:
        """Return a model as named arrays."""
        found = model.found
        if found is None:
            return {}
        place = {server: at for at, server in enumerate(found.servers)}
        labels = [[place[server], one, label] for (server, one), label in found.labels.items()]
        return {
            "servers": np.frombuffer(to_json(found.servers), dtype=np.uint8),
            "labels": np.array(labels, dtype=np.int64).reshape(-1, 3),
            "matrices": folded(found.shares.matrix),
            "vectors": found.shares.vector,
            "counts": found.counts,
        }

    def from_arrays(self, arrays: Arrays) -> GlobalModel:
        """Return the model that `as_arrays` wrote."""
        if not arrays:
            return self._model(None)
        servers = tuple(from_json(arrays["servers"].tobytes()))
        matrices = unfolded(arrays["matrices"], self.rule.dimensions)
        return self._model(
            Consensus(
                servers=servers,
                labels={(servers[at], one): label for at, one, label in arrays["labels"].tolist()},
                shares=Knowledge(matrices, arrays["vectors"]),
                counts=arrays["counts"],
            )
        )

    async def erase(self) -> None:
        """Forget every server."""
        queue = self._key(b"servers", b"")
        servers = await self._store.messages(queue=queue, most=2 * MOST_SERVERS)
        await self._store.erase(keys=[self._key(b"server", one) for one in servers.values()])
        for name in servers:
            await self._store.remove_message(queue=queue, name=name)


class UpdatesFromServers:
    """What local servers send to this recommender, and what it tells them."""

    PURPOSE = "noisy updates from local servers"

    def __init__(
        self,
        recommender: Recommender[ClusterModel],
        *,
        reading: GlobalReading | None,
        members: Sequence[str],
    ) -> None:
        self._recommender = recommender
        self._reading = reading
        self._members = frozenset(members)
        self._messages: tuple[int, dict[str, bytes | None]] = (-1, {})

    def _merging(self, label: str) -> GlobalReading:
        """Refuse what is not for a global server, or not from one of its members."""
        if self._reading is None:
            raise InvalidArgument("name", "is a local recommender here: it takes no updates")
        if self._members and label not in self._members:
            raise NotAllowed("this key's label is not among the recommender's members")
        return self._reading

    async def accept(self, arrived: ArrivedUpdates) -> int:
        """Keep the updates that are new; return the number of the next that is wanted.

        Raises `InvalidArgument` if any of them cannot be an update, keeping none.
        """
        reading = self._merging(arrived.label)
        encoding = reading.rule.encoding
        if arrived.dimensions != encoding.dimensions:
            raise InvalidArgument("dimensions", f"must be {encoding.dimensions} here")
        if arrived.baseline != encoding.baseline:
            raise InvalidArgument("baseline", f"must be {encoding.baseline} here")
        numbers = [number for number, *_ in arrived.updates]
        if sorted(set(numbers)) != numbers:
            raise InvalidArgument("updates", "must have ascending numbers")
        updates = [
            (number, encoding.read_update(members=members, steps=steps, deviation=deviation))
            for number, members, steps, deviation in arrived.updates
        ]
        wanted, new = await reading.keep(arrived.server, updates)
        if new:
            # What there is to merge came by itself: that it came is no secret.
            self._recommender.asked = True
        return wanted

    def merged_for(self, *, label: str, source: str, seen: int) -> bytes | None:
        """Return what a server may use of the others' updates, or None if it has that already."""
        self._merging(label)
        number, model = self._recommender.current.number, self._recommender.current.model
        assert isinstance(model, GlobalModel)
        if number == seen:
            return None
        if self._messages[0] != number:
            self._messages = (number, {})
        server = server_name(label, source)
        if model.found is None or server not in model.found.servers:
            server = ""  # all who have sent nothing are told the same
        if server not in self._messages[1]:
            merged = model.merged_for(server, number)
            self._messages[1][server] = None if merged is None else merged.encode()
        return self._messages[1][server]

    def note_received(self, *, label: str, size: int) -> None:
        """Report a message of so many bytes from a local server."""
        self._recommender.observer.exchanged(
            recommender=self._recommender.name,
            peer=label,
            direction="received",
            outcome="answered",
            size=size,
        )


def _write_server(wanted: int, totals: dict[tuple[int, ...], NoisyUpdate]) -> bytes:
    return to_json(
        {
            "next": wanted,
            "updates": [
                [update.members, update.steps.tolist(), update.deviation]
                for update in totals.values()
            ],
        }
    )


def _read_server(content: bytes) -> tuple[int, dict[tuple[int, ...], NoisyUpdate]]:
    fields: Any = from_json(content)
    return fields["next"], {
        tuple(members): NoisyUpdate(tuple(members), np.array(steps, dtype=np.int64), deviation)
        for members, steps, deviation in fields["updates"]
    }
