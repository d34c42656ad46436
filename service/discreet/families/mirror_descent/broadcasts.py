"""Releasing a node's sums: now and then, with noise that is drawn once, by one worker at a time.

What lies in the store for one recommender:

- exact sums of gradients, by slices of features, added to by every worker (private);
- for each stretch of features the state of its continual sum, and how much of the exact sums is in
  it (private); replaced only by whoever saw the version before: from one past, one future;
- what this node knows: its mixed noisy sums `theta`, and what of its own releases is in it
  already, so that a release is added once however often somebody crashes (public);
- a small page that says which version of that is the last, for workers to look at (public).
"""

import asyncio
import json
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.families.mirror_descent.descent import GRANULARITY, Integers, batch_due
from discreet.families.mirror_descent.sparse import Floats
from discreet.families.mirror_descent.hearing import HEAD, LEARNED
from discreet.families.mirror_descent.recommender import SLICE, MirrorRecommender
from discreet.families.observer import Figure
from discreet.privacy.continual.contract import ContinualSum
from discreet.privacy.noise import NoiseSource

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

_TRIES = 8
_KNOWN = struct.Struct("<dqq")


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What a node knows: `theta` of `count` records a node, in it its own `told` of `counted`."""

    version: int
    theta: Floats
    told: Floats
    count: float
    counted: int
    broadcasts: int

    def encode(self) -> bytes:
        """Return it as bytes, without the version, which the store keeps."""
        head = _KNOWN.pack(self.count, self.counted, self.broadcasts)
        return head + self.theta.astype("<f8").tobytes() + self.told.astype("<f8").tobytes()


def _read_known(version: int, content: bytes, dimension: int) -> Known:
    count, counted, broadcasts = _KNOWN.unpack_from(content)
    theta, told = np.frombuffer(content, dtype="<f8", offset=_KNOWN.size).reshape(2, dimension)
    return Known(version, theta, told, count, counted, broadcasts)


async def load_known(runtime: "Runtime", recommender: MirrorRecommender) -> Known:
    """Return what this node knows."""
    dimension = recommender.learner.dimension
    (blob,) = await runtime.store.load(keys=[recommender.key(b"known")])
    if blob is None:
        return Known(0, np.zeros(dimension), np.zeros(dimension), 0.0, 0, 0)
    return _read_known(blob.version, blob.content, dimension)


async def save_known(
    runtime: "Runtime", recommender: MirrorRecommender, known: Known
) -> int | None:
    """Replace what this node knew in that version; None if somebody else was faster."""
    return await runtime.store.save(
        key=recommender.key(b"known"), content=known.encode(), expected=known.version
    )


async def announce(
    runtime: "Runtime",
    recommender: MirrorRecommender,
    *,
    version: int,
    counted: int,
    broadcast_at: float,
    mixed_at: float,
) -> None:
    """Tell all workers which version is the last, and when what was done."""
    page = {
        "version": version,
        "counted": counted,
        "broadcast_at": broadcast_at,
        "mixed_at": mixed_at,
    }
    await runtime.store.save(key=recommender.key(b"page"), content=json.dumps(page).encode())
    recommender.broadcast_at, recommender.mixed_at = broadcast_at, mixed_at


async def refresh(runtime: "Runtime", recommender: MirrorRecommender) -> None:
    """Look at the page, and make a model of what is new."""
    (blob,) = await runtime.store.load(keys=[recommender.key(b"page")])
    if blob is None:
        return
    page: dict[str, Any] = json.loads(blob.content)
    recommender.counted = page["counted"]
    recommender.arrivals = max(recommender.arrivals, recommender.counted)
    recommender.broadcast_at, recommender.mixed_at = page["broadcast_at"], page["mixed_at"]
    if page["version"] == recommender.theta_version:
        return
    known = await load_known(runtime, recommender)
    recommender.model = await asyncio.to_thread(
        recommender.learner.model, theta=known.theta, count=known.count
    )
    recommender.theta_version = page["version"]
    runtime.observer.figure(
        recommender=recommender.name,
        what=Figure.MODEL_NONZEROS,
        value=recommender.model.nonzeros,
    )


def stretch_of(recommender: MirrorRecommender) -> int:
    """Return how many features have their noise kept together: at most 18 MB in the store.

    A state has two numbers for every broadcast of its epoch, one for all epochs before, and one
    for the exact sum in it.
    """
    return SLICE * max(1, min(16, 256 // (recommender.learner.length + 1)))


def due(recommender: MirrorRecommender, now: float) -> bool:
    """Tell whether another broadcast is worth its noise."""
    rules = recommender.document.broadcasts
    fresh = recommender.arrivals - recommender.counted
    if rules.seconds is not None and fresh > 0 and now - recommender.broadcast_at >= rules.seconds:
        return True
    return fresh > 0 and batch_due(
        fresh=fresh, counted=recommender.counted, records=rules.records, growth=rules.growth
    )


async def broadcast(
    runtime: "Runtime", recommender: MirrorRecommender, keep: Callable[[], Awaitable[bool]]
) -> bool:
    """Release the sums with everything that came since; tell whether it was done.

    Only whoever holds the recommender's lease should try, and `keep` renews it before every
    stretch; two who try all the same cannot both continue the same sum.
    """
    (head,) = await runtime.store.read(addresses=[recommender.address(HEAD)])
    counted = int(head[LEARNED]) if len(head) else 0
    dimension = recommender.learner.dimension
    parts = []
    stretch = stretch_of(recommender)
    for start in range(0, dimension, stretch):
        stop = min(start + stretch, dimension)
        if not await keep():
            return False
        released = await _release(runtime, recommender, start, stop)
        if released is None:
            return False
        parts.append(released)
    told = np.concatenate(parts)
    for _ in range(_TRIES):
        known = await load_known(runtime, recommender)
        version = await save_known(
            runtime,
            recommender,
            Known(
                version=known.version,
                theta=known.theta + (told - known.told),
                told=told,
                count=known.count + (counted - known.counted),
                counted=counted,
                broadcasts=known.broadcasts + 1,
            ),
        )
        if version is not None:
            await announce(
                runtime,
                recommender,
                version=version,
                counted=counted,
                broadcast_at=runtime.clock(),
                mixed_at=recommender.mixed_at,
            )
            return True
    return False


async def _release(
    runtime: "Runtime", recommender: MirrorRecommender, start: int, stop: int
) -> Floats | None:
    """Take one step of the continual sum of these features, and return its release."""
    totals = await _totals(runtime, recommender, start, stop)
    if not recommender.protected:
        return totals.astype(np.float64) * GRANULARITY
    key = recommender.key(b"sum/%d" % start)
    (blob,) = await runtime.store.load(keys=[key])
    content, released = await asyncio.to_thread(
        _stepped,
        recommender.learner.sums(stop - start),
        totals,
        None if blob is None else blob.content,
        runtime.noise,
    )
    saved = await runtime.store.save(
        key=key, content=content, expected=0 if blob is None else blob.version
    )
    # Nothing is released from a state that was not the one to be kept.
    return None if saved is None else released


def _stepped(
    sums: ContinualSum[Any], totals: Integers, content: bytes | None, noise: NoiseSource
) -> tuple[bytes, Floats]:
    """Return the sum's state after a step up to these totals, as bytes, and what it releases.

    Before the state stand the totals that are in it.
    """
    if content is None:
        state, seen = sums.start(), np.zeros(len(totals), dtype=np.int64)
    else:
        kept = np.frombuffer(content, dtype="<i8").astype(np.int64)
        state, seen = sums.decode(kept[len(totals) :]), kept[: len(totals)]
    after = sums.observe(state=state, value=(totals - seen) * GRANULARITY, noise=noise)
    written = np.concatenate([totals, sums.encode(after)]).astype("<i8").tobytes()
    return written, sums.release(state=after).value


async def _totals(
    runtime: "Runtime", recommender: MirrorRecommender, start: int, stop: int
) -> Integers:
    """Return the exact sums of these features, in grid steps."""
    places = range(start // SLICE, -(-stop // SLICE))
    vectors = await runtime.store.read(addresses=[recommender.address(p) for p in places])
    totals = np.zeros(len(places) * SLICE, dtype=np.int64)
    for order, vector in enumerate(vectors):
        sums = vector[1 : 1 + SLICE]
        totals[order * SLICE : order * SLICE + len(sums)] = sums
    return totals[: stop - start]


async def erase(runtime: "Runtime", recommender: MirrorRecommender) -> None:
    """Erase everything but the cells and the ledgers."""
    stretches = range(0, recommender.learner.dimension, stretch_of(recommender))
    keys = [recommender.key(b"sum/%d" % start) for start in stretches]
    await runtime.store.erase(keys=[*keys, recommender.key(b"known"), recommender.key(b"page")])
