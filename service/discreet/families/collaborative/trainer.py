"""Who trains, and when: one worker at a time, only when profiles changed, never too often.

Under the lease of a recommender a worker reads all profiles, has a process find the neighbours,
and saves the snapshot. A worker that was slower than its lease is refused by the snapshot's
version, so that an old model (with a profile that was erased meanwhile) never replaces a newer
one. The head is a small note about the newest snapshot, which all workers look at every second.
"""

import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from discreet.families.collaborative.profiles import changes_key, every_profile
from discreet.families.collaborative.recommender import CollaborativeRecommender
from discreet.families.collaborative.snapshot import Snapshot
from discreet.families.collaborative.training import pack_profiles
from discreet.families.observer import Count, Figure
from discreet.state.stores import Blob, Store

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

log = logging.getLogger(__name__)

LEASE_SECONDS = 15.0
_PROGRAM = "discreet.families.collaborative.training"
_LONGEST_COMPLAINT = 2_000


@dataclass(frozen=True, slots=True)
class Head:
    """What is known of the newest snapshot: its version, and what it was made from."""

    version: int
    changes: int
    neighbours: int
    profiles: int
    began: float

    def encode(self) -> bytes:
        """Return it for the store."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, blob: Blob | None) -> "Head | None":
        """Return what was stored, if anything was; what cannot be read is as good as nothing."""
        try:
            held = {} if blob is None else json.loads(blob.content)
            return cls(**{field.name: held[field.name] for field in fields(cls)})
        except (ValueError, KeyError, TypeError):
            return None


def head_key(recommender: CollaborativeRecommender) -> bytes:
    """Return where the head is kept."""
    return recommender.key(b"head")


def snapshot_key(recommender: CollaborativeRecommender) -> bytes:
    """Return where the snapshot is kept."""
    return recommender.key(b"snapshot")


async def look(store: Store, recommender: CollaborativeRecommender) -> tuple[Head | None, int]:
    """Return the head, and how often profiles have changed so far."""
    head, changes = await store.load(keys=[head_key(recommender), changes_key(recommender)])
    return Head.decode(head), 0 if changes is None else changes.version


def due(recommender: CollaborativeRecommender, head: Head | None, changes: int, now: float) -> bool:
    """Tell whether a training would find anything new, and is not too soon after the last."""
    if head is None:
        return changes > 0
    training = recommender.document.training
    if head.changes == changes and head.neighbours == training.neighbours:
        return False
    # A beginning that lies ahead of us was written by a clock that disagrees.
    return not 0 <= now - head.began < training.seconds


async def train(runtime: "Runtime", recommender: CollaborativeRecommender) -> bool:
    """Train if that is due and nobody else does; tell whether a snapshot was saved.

    Raises `StoreUnavailable`, having saved nothing, if the store is gone; whatever else goes wrong
    is logged and counted.
    """
    store, lease = runtime.store, recommender.key(b"training")
    holder = os.urandom(16)
    if not await store.hold(lease=lease, holder=holder, seconds=LEASE_SECONDS):
        return False
    try:
        return await _train(runtime, recommender, lease=lease, holder=holder)
    finally:
        await store.let_go(lease=lease, holder=holder)


async def _train(
    runtime: "Runtime", recommender: CollaborativeRecommender, *, lease: bytes, holder: bytes
) -> bool:
    store, training = runtime.store, recommender.document.training
    began = time.monotonic()
    now = runtime.clock()
    # Looked at under the lease: somebody may have finished a moment ago. The changes are counted
    # before the profiles are read, so that one which comes in between is trained on again.
    head, changes = await look(store, recommender)
    if not due(recommender, head, changes, now):
        return False
    (standing,) = await store.load(keys=[snapshot_key(recommender)])
    starts, slots = await every_profile(store, recommender, most=training.most_profiles)
    live = recommender.live.astype(np.int64)
    content = await asyncio.to_thread(pack_profiles, starts=starts, slots=slots, live=live)
    task = asyncio.ensure_future(_run(content, training.neighbours))
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=LEASE_SECONDS / 3)
            if not await store.hold(lease=lease, holder=holder, seconds=LEASE_SECONDS):
                log.warning("a training was slower than its lease, and is given up")
                return False
        trained = await task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    seconds = time.monotonic() - began
    if trained is None:
        runtime.observer.count(recommender=recommender.name, what=Count.TRAININGS, label="failed")
        return False
    version = await store.save(
        key=snapshot_key(recommender),
        content=trained,
        expected=0 if standing is None else standing.version,
    )
    if version is None:
        log.warning("a training was overtaken by another, and is given up")
        return False
    made = Head(version, changes, training.neighbours, len(starts) - 1, now)
    await store.save(key=head_key(recommender), content=made.encode())
    await _leave_nothing_behind(runtime, recommender)
    runtime.observer.count(recommender=recommender.name, what=Count.TRAININGS, label="done")
    runtime.observer.figure(
        recommender=recommender.name, what=Figure.TRAINING_SECONDS, value=seconds
    )
    return True


async def _leave_nothing_behind(runtime: "Runtime", recommender: CollaborativeRecommender) -> None:
    """Erase what was just saved if the recommender was removed while it was trained.

    If it is removed after we looked, whoever removes it erases what we saved.
    """
    await runtime.registry.current()
    if runtime.registry.by_generation(recommender.generation) is None:
        await erase_snapshot(runtime.store, recommender)


async def erase_snapshot(store: Store, recommender: CollaborativeRecommender) -> None:
    """Erase what was trained."""
    await store.erase(keys=[head_key(recommender), snapshot_key(recommender)])


def _without_ours(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if not name.startswith("DISCREET_")}


async def _run(content: bytes, neighbours: int) -> bytes | None:
    """Return the snapshot that the training process makes of these profiles, None if it fails."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", _PROGRAM, str(neighbours),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        # It needs none of our secrets, and no more than one core.
        env={**_without_ours(os.environ), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        out, complaint = await process.communicate(content)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode != 0:
        text = complaint.decode(errors="replace")[-_LONGEST_COMPLAINT:]
        log.error("training ended with status %s: %s", process.returncode, text)
        return None
    try:
        await asyncio.to_thread(Snapshot.decode, out)
    except ValueError:
        log.exception("training gave something that cannot be used")
        return None
    return out
