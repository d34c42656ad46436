"""Profiles in the store: one blob a client, and an index by which training finds them all.

A client is known by a keyed digest. The index is a set of digests in 64 parts, so that no single
command ever reads a large one. The number of changes so far is the version of an empty blob.

The order of writes keeps three promises. A profile that is kept is in the index. Whatever changed
is counted after it can be read, so that a training which saw the count saw the change. Erasing
takes the profile away last: if it is interrupted, doing it again finishes it.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.families.collaborative.recommender import CollaborativeRecommender
from discreet.families.collaborative.snapshot import Ints
from discreet.decisions.recommender import Slots
from discreet.state.stores import Store

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

PARTS = 64
_TOGETHER = 512
_THERE = b"1"
_PACKED = np.dtype("<u4")


def pack(slots: Slots) -> bytes:
    """Return a profile as it is stored."""
    return slots.astype(_PACKED).tobytes()


def unpack(content: bytes) -> Slots:
    """Return the slots of a stored profile, ascending."""
    return np.frombuffer(content, dtype=_PACKED).astype(np.intp)


def profile_key(recommender: CollaborativeRecommender, who: bytes) -> bytes:
    """Return where a client's profile is kept."""
    return recommender.key(b"profile/" + who)


def changes_key(recommender: CollaborativeRecommender) -> bytes:
    """Return the blob whose version counts the changes of all profiles."""
    return recommender.key(b"changes")


def _part(recommender: CollaborativeRecommender, part: int) -> bytes:
    return recommender.key(b"profiles/" + bytes([part % PARTS]))


async def keep_profile(
    runtime: "Runtime",
    recommender: CollaborativeRecommender,
    *,
    client: str,
    slots: Slots,
    replace: bool = True,
) -> int:
    """Make this the client's profile, or add it to what is there; return how many items it has.

    The same profile again changes nothing. An empty one is not kept at all.
    """
    store, who = runtime.store, runtime.principals.client(recommender.name, client)
    key, part = profile_key(recommender, who), _part(recommender, who[0])
    while True:
        (held,) = await store.load(keys=[key])
        wanted = slots
        if not replace and held is not None:
            wanted = np.union1d(np.intersect1d(unpack(held.content), recommender.live), slots)
        content = pack(wanted)
        if held is not None and held.content == content:
            return len(wanted)
        recommender.touched = True
        if not content:
            if held is not None:
                await erase_profile(runtime, recommender, client=client)
            return 0
        await store.post_letter(queue=part, letter=who, content=_THERE)
        expected = 0 if held is None else held.version
        if await store.save(key=key, content=content, expected=expected) is None:
            continue  # Another request of the same client came in between.
        # Into the index once more: it may have been taken out, by an erasure or by a training
        # that found no profile behind it, while the profile was on its way.
        await asyncio.gather(
            store.post_letter(queue=part, letter=who, content=_THERE),
            store.save(key=changes_key(recommender), content=b""),
        )
        return len(wanted)


async def erase_profile(
    runtime: "Runtime", recommender: CollaborativeRecommender, *, client: str
) -> bool:
    """Erase a client's profile; tell whether there was one. The next training is without it."""
    store, who = runtime.store, runtime.principals.client(recommender.name, client)
    key = profile_key(recommender, who)
    (held,) = await store.load(keys=[key])
    await store.discard_letter(queue=_part(recommender, who[0]), letter=who)
    if held is None:
        return False
    await store.save(key=changes_key(recommender), content=b"")
    await store.erase(keys=[key])
    return True


async def every_profile(
    store: Store, recommender: CollaborativeRecommender, *, most: int
) -> tuple[Ints, Ints]:
    """Return all profiles, or a sample of about `most`: where each begins, and their slots."""
    contents: list[bytes] = []
    share = -(-most // PARTS)
    for part in range(PARTS):
        queue = _part(recommender, part)
        names = list(await store.letters(queue=queue, most=share))
        for start in range(0, len(names), _TOGETHER):
            some = names[start : start + _TOGETHER]
            blobs = await store.load(keys=[profile_key(recommender, who) for who in some])
            contents += [blob.content for blob in blobs if blob is not None]
            gone = [who for who, blob in zip(some, blobs, strict=True) if blob is None]
            await asyncio.gather(*(store.discard_letter(queue=queue, letter=who) for who in gone))
    return await asyncio.to_thread(_joined, contents)


def _joined(contents: Sequence[bytes]) -> tuple[Ints, Ints]:
    starts = np.zeros(len(contents) + 1, dtype=np.int64)
    np.cumsum([len(content) // _PACKED.itemsize for content in contents], out=starts[1:])
    return starts, np.frombuffer(b"".join(contents), dtype=_PACKED).astype(np.int64)


async def remove_profiles(store: Store, recommender: CollaborativeRecommender) -> None:
    """Erase every profile of a recommender that is no more."""
    for part in range(PARTS):
        queue = _part(recommender, part)
        while names := list(await store.letters(queue=queue, most=_TOGETHER)):
            await store.erase(keys=[profile_key(recommender, who) for who in names])
            await asyncio.gather(*(store.discard_letter(queue=queue, letter=who) for who in names))
    await store.erase(keys=[changes_key(recommender)])
