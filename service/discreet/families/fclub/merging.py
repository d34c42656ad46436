"""The global server: keeps everybody's letters, and makes of them what each server may use.

A server is known by the label of its key and by its source, a name that a recommender gets when it
is created: whoever deletes a local recommender and begins anew is another server from then on.

Letters of a server are records of one page, in the order of their numbers; a blob beside it says
how many there are and where the last one ends. A letter is written behind the end first and counted
by moving the end, with compare-and-set: it is counted once or not at all, and what a crash leaves
behind the end is overwritten.

Merging looks at letters only, so it is post-processing: free, and repeatable. It happens beside the
request path, by one worker at a time; what it finds is stored for each server to fetch.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.families.fclub.consensus import Consensus, Posted, consensus
from discreet.families.fclub.evidence import Clustering
from discreet.families.fclub.letters import Letter, Privatizer
from discreet.families.fclub.recommender import ClusterRecommender
from discreet.families.fclub.view import View
from discreet.families.observer import Figure
from discreet.errors import InvalidArgument, NotAllowed, StateOverflow
from discreet.state.checks import MOST_PAGE

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

log = logging.getLogger(__name__)

MOST_SERVERS = 256
_SIZE_BYTES = 4
_ANYBODY = ""
"""The view of a server that has sent no letter yet."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """Letters as they came, not yet believed: all of one server, under one set of parameters."""

    label: str
    source: str
    dimensions: int
    baseline: float
    epsilon: float | None
    delta: float
    letters: Sequence[tuple[int, Sequence[int], Sequence[int]]]

    @property
    def server(self) -> str:
        """The name of the sending server."""
        return server_name(self.label, self.source)


def server_name(label: str, source: str) -> str:
    """Return how a server is known here."""
    return f"{source}/{label}"


async def accept(runtime: "Runtime", recommender: ClusterRecommender, arrived: Arrived) -> int:
    """Keep the letters that are new; return the number of the next that is wanted."""
    require_global(recommender, arrived.label)
    posted = _believed(recommender, arrived)
    key = recommender.key(b"mailbox", arrived.server.encode())
    page = recommender.key(b"letters", arrived.server.encode())
    await _register(runtime, recommender, arrived.server)
    while True:
        (blob,) = await runtime.store.load(keys=[key])
        box = json.loads(blob.content) if blob is not None else {"next": 0, "end": 0}
        fresh = [one for one in posted if one[0] >= box["next"]]
        if not fresh:
            return int(box["next"])
        content = b"".join(len(record).to_bytes(_SIZE_BYTES, "big") + record for _, record in fresh)
        end = box["end"] + len(content)
        if end > MOST_PAGE:
            raise StateOverflow("this recommender cannot keep more letters of this server")
        await runtime.store.write_page(page=page, writes=[(box["end"], content)])
        box = {"next": fresh[-1][0] + 1, "end": end}
        saved = await runtime.store.save(
            key=key,
            content=json.dumps(box).encode(),
            expected=0 if blob is None else blob.version,
        )
        if saved is not None:
            recommender.touched = True
            return int(box["next"])


def require_global(recommender: ClusterRecommender, label: str) -> None:
    """Refuse what is not for a global server, or not from one of its members."""
    if recommender.is_local:
        raise InvalidArgument("name", "is a local recommender here: it takes no letters")
    members = recommender.document.members
    if members and label not in members:
        raise NotAllowed("this key's label is not among the recommender's members")


def _believed(recommender: ClusterRecommender, arrived: Arrived) -> list[tuple[int, bytes]]:
    """Return the letters as records, refusing whatever cannot be a letter."""
    if arrived.dimensions != recommender.dimensions:
        raise InvalidArgument("dimensions", f"must be {recommender.dimensions} here")
    baseline = recommender.document.learning.baseline
    if arrived.baseline != baseline:
        raise InvalidArgument("baseline", f"must be {baseline} here")
    privatizer = Privatizer(
        dimensions=arrived.dimensions,
        epsilon=arrived.epsilon,
        delta=arrived.delta,
        baseline=arrived.baseline,
    )
    records = []
    last = -1
    for sequence, members, steps in arrived.letters:
        if sequence <= last:
            raise InvalidArgument("letters", "must have ascending sequence numbers")
        last = sequence
        letter = privatizer.read(members=members, steps=np.array(steps, dtype=np.int64))
        record = [arrived.epsilon, arrived.delta, letter.members, letter.steps.tolist()]
        records.append((sequence, json.dumps(record, separators=(",", ":")).encode()))
    return records


async def _register(runtime: "Runtime", recommender: ClusterRecommender, server: str) -> None:
    """Note that a server exists, so that merging finds it."""
    if server in recommender.servers:
        return
    known = await servers_of(runtime, recommender)
    if server not in known and len(known) >= MOST_SERVERS:
        raise StateOverflow("this recommender has as many servers as it can have")
    index = recommender.key(b"servers")
    await runtime.store.index_cell(index=index, address=server.encode(), level=0)
    recommender.servers.add(server)


async def servers_of(runtime: "Runtime", recommender: ClusterRecommender) -> list[str]:
    """Return every server that has sent a letter."""
    index = recommender.key(b"servers")
    found = await runtime.store.cells(index=index, most=2 * MOST_SERVERS)
    return sorted(name.decode() for name in found)


async def merge(runtime: "Runtime", recommender: ClusterRecommender) -> bool:
    """Make new views if there are new letters; tell whether there were."""
    servers = await servers_of(runtime, recommender)
    keys = [recommender.key(b"mailbox", name.encode()) for name in servers]
    *blobs, merged = await runtime.store.load(keys=[*keys, recommender.key(b"merged")])
    boxes = {
        name: json.loads(blob.content)
        for name, blob in zip(servers, blobs, strict=True)
        if blob is not None
    }
    version = sum(box["next"] for box in boxes.values())
    if not boxes or (merged is not None and json.loads(merged.content) == version):
        return False
    posted: list[Posted] = []
    for name, box in boxes.items():
        try:
            posted += await _letters_of(runtime, recommender, name, box["end"])
        except (ValueError, TypeError):
            # One server's letters that cannot be read must not cost the others theirs.
            log.exception("a server's letters cannot be read; they are left out")
    if not posted:
        return False
    clustering = recommender.learner.clustering
    variance = recommender.learner.reward_variance
    found, views = await asyncio.to_thread(_merged, posted, clustering, variance, version)
    for name, content in views.items():
        await runtime.store.save(key=_view_key(recommender, name), content=content)
    await runtime.store.save(key=recommender.key(b"merged"), content=json.dumps(version).encode())
    runtime.observer.figure(
        recommender=recommender.name, what=Figure.CLUSTERS, value=found.clusters
    )
    return True


def _merged(
    posted: Sequence[Posted], clustering: Clustering, variance: float, version: int
) -> tuple[Consensus, dict[str, bytes]]:
    found = consensus(posted, clustering=clustering, reward_variance=variance)
    views = {
        name: View(version, found.foreign(name), found.groups(name)).encode()
        for name in (*found.servers, _ANYBODY)
    }
    return found, views


async def view_of(
    runtime: "Runtime", recommender: ClusterRecommender, *, label: str, source: str, seen: int
) -> bytes | None:
    """Return what a server may use of the others' letters, or None if it has that already."""
    require_global(recommender, label)
    keys = [
        _view_key(recommender, server_name(label, source)),
        _view_key(recommender, _ANYBODY),
    ]
    own, anybody = await runtime.store.load(keys=keys)
    blob = own or anybody
    if blob is None or json.loads(blob.content)["version"] == seen:
        return None
    return blob.content


async def erase(runtime: "Runtime", recommender: ClusterRecommender) -> None:
    """Forget every letter."""
    servers = await servers_of(runtime, recommender)
    keys = [
        recommender.key(purpose, name.encode())
        for name in (*servers, _ANYBODY)
        for purpose in (b"mailbox", b"letters", b"view of")
    ]
    await runtime.store.erase(keys=[*keys, recommender.key(b"merged")])
    await runtime.store.remove_cells(index=recommender.key(b"servers"))


async def _letters_of(
    runtime: "Runtime", recommender: ClusterRecommender, server: str, end: int
) -> list[Posted]:
    """Return a server's letters, reading only those that this worker has not read before."""
    held, start = recommender.posted.get(server, ([], 0))
    if start < end:
        page = recommender.key(b"letters", server.encode())
        content = await runtime.store.read_page(page=page, start=start, end=end)
        held = [*held, *_records(recommender, server, content)]
        recommender.posted[server] = (held, end)
    return held


def _records(recommender: ClusterRecommender, server: str, content: bytes) -> list[Posted]:
    letters = []
    place = 0
    while place < len(content):
        size = int.from_bytes(content[place : place + _SIZE_BYTES], "big")
        place += _SIZE_BYTES
        fields: Any = json.loads(content[place : place + size])
        place += size
        epsilon, delta, members, steps = fields
        privatizer = Privatizer(
            dimensions=recommender.dimensions,
            epsilon=epsilon,
            delta=delta,
            baseline=recommender.document.learning.baseline,
        )
        letter = Letter(tuple(members), np.array(steps, dtype=np.int64))
        letters.append(Posted(server, letter, privatizer))
    return letters


def _view_key(recommender: ClusterRecommender, server: str) -> bytes:
    return recommender.key(b"view of", server.encode())
