"""Profiles in the store: one blob a client, and an index by which training finds them all.

A client is known by a keyed digest. The index is a set of digests in 64 parts, so that no single
command ever reads a large one. The number of changes so far is the version of an empty blob.

The order of writes keeps three promises. A profile that is kept is in the index. Whatever changed
is counted after it can be read, so that a training which saw the count saw the change. Erasing
takes the profile away last: if it is interrupted, doing it again finishes it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discreet.errors import ClientErased, InvalidArgument
from discreet.families.collaborative.similarities import Ints, Slots
from discreet.families.documents import ItemDocument
from discreet.state.stores import Blob, Store
from discreet.state.tombstones import Tombstones

PARTS = 64
NO_PROFILE: Slots = np.zeros(0, dtype=np.intp)
_TOGETHER = 512
_THERE = b"1"
_PACKED = np.dtype("<u4")


@dataclass(frozen=True, slots=True)
class ListedItem:
    """An item as the catalogue shows it."""

    id: str
    title: str | None
    categories: tuple[str, ...]


class Profiles:
    """What clients have seen, and the catalogue that they name it from."""

    PURPOSE: ClassVar[str] = "profiles"

    def __init__(
        self,
        *,
        store: Store,
        key: Callable[[bytes, bytes], bytes],
        principal: Callable[[str], bytes],
        items: Sequence[ItemDocument],
        slot_of: Mapping[str, int],
        on_change: Callable[[], None],
    ) -> None:
        """Name things in the store by `key` (a purpose, and what of it) and clients by `principal`.

        `on_change` is called when a profile was sent that changes something.
        """
        self._store = store
        self._key = key
        self._principal = principal
        self._slot_of = slot_of
        self._tombstones = Tombstones(store)
        self._on_change = on_change
        self._live: Slots = np.array(sorted(slot_of.values()), dtype=np.intp)
        self.changes_key = key(b"changes", b"")
        """The blob whose version counts the changes of all profiles."""
        self.listed = tuple(
            ListedItem(item.id, item.title, tuple(dict.fromkeys(item.categories or ())))
            for item in items
            if not item.hidden
        )

    @property
    def categories(self) -> tuple[str, ...]:
        """Every category of an item that may be shown, in the catalogue's order."""
        return tuple(dict.fromkeys(name for item in self.listed for name in item.categories))

    async def keep(self, *, client: str, items: Sequence[str], replace: bool = True) -> int:
        """Make this the client's profile, or add it to what is there; return how many items it has.

        The same profile again changes nothing. An empty one is not kept at all. Raises
        `InvalidArgument` with the place of the first item that is not known here.
        """
        sent = self._slots(items)
        who = self._principal(client)
        erasures = await self._tombstones.count(who)
        kept = await self._keep(who, sent, replace=replace)
        try:
            await self._tombstones.refuse_if_erased(who, since=erasures)
        except ClientErased:
            await self._erase(who)
            raise
        return kept

    async def _keep(self, who: bytes, sent: Slots, *, replace: bool) -> int:
        key, part = self._profile_key(who), self._part_key(who[0])
        while True:
            (held,) = await self._store.load(keys=[key])
            wanted = sent
            if not replace and held is not None:
                wanted = np.union1d(np.intersect1d(_unpacked(held.content), self._live), sent)
            content = wanted.astype(_PACKED).tobytes()
            if content == (b"" if held is None else held.content):
                return len(wanted)
            if not content:
                await self._erase(who)
                return 0
            await self._store.put_message(queue=part, name=who, content=_THERE)
            expected = 0 if held is None else held.version
            if await self._store.save(key=key, content=content, expected=expected) is None:
                continue  # Another request of the same client came in between.
            # Into the index once more: it may have been taken out, by an erasure or by a training
            # that found no profile behind it, while the profile was on its way.
            await asyncio.gather(
                self._store.put_message(queue=part, name=who, content=_THERE), self._changed()
            )
            return len(wanted)

    async def erase(self, client: str) -> bool:
        """Erase a client's profile; tell whether there was one. The next training is without it."""
        return await self._erase(self._principal(client))

    async def _erase(self, who: bytes) -> bool:
        key = self._profile_key(who)
        (held,) = await self._store.load(keys=[key])
        await self._store.remove_message(queue=self._part_key(who[0]), name=who)
        if held is None:
            return False
        await self._changed()
        await self._store.erase(keys=[key])
        return True

    def read(self, clients: Sequence[bytes]) -> Awaitable[Sequence[Slots]]:
        """Return the profile of each of these principals, ascending; issued when called."""
        distinct = list(dict.fromkeys(clients))
        loading = self._store.load(keys=[self._profile_key(who) for who in distinct])
        return _Loading(loading, distinct, clients)

    async def every(self, most: int) -> tuple[Ints, Ints]:
        """Return all profiles, or a sample of about `most`: where each begins, and their slots."""
        contents: list[bytes] = []
        share = -(-most // PARTS)
        for part in map(self._part_key, range(PARTS)):
            names = list(await self._store.messages(queue=part, most=share))
            for start in range(0, len(names), _TOGETHER):
                some = names[start : start + _TOGETHER]
                blobs = await self._store.load(keys=[self._profile_key(who) for who in some])
                contents += [blob.content for blob in blobs if blob is not None]
                gone = [who for who, blob in zip(some, blobs, strict=True) if blob is None]
                await self._remove_from(part, gone)
        starts = np.zeros(len(contents) + 1, dtype=np.int64)
        np.cumsum([len(content) // _PACKED.itemsize for content in contents], out=starts[1:])
        return starts, np.frombuffer(b"".join(contents), dtype=_PACKED).astype(np.int64)

    async def erase_all(self) -> None:
        """Erase every profile."""
        for part in map(self._part_key, range(PARTS)):
            while names := list(await self._store.messages(queue=part, most=_TOGETHER)):
                await self._store.erase(keys=[self._profile_key(who) for who in names])
                await self._remove_from(part, names)
        await self._store.erase(keys=[self.changes_key])

    def _profile_key(self, who: bytes) -> bytes:
        return self._key(b"profile", who)

    def _part_key(self, part: int) -> bytes:
        return self._key(b"profiles", bytes([part % PARTS]))

    async def _changed(self) -> None:
        self._on_change()
        await self._store.save(key=self.changes_key, content=b"")

    async def _remove_from(self, part: bytes, names: Sequence[bytes]) -> None:
        await asyncio.gather(*(self._store.remove_message(queue=part, name=who) for who in names))

    def _slots(self, items: Sequence[str]) -> Slots:
        for position, item in enumerate(items):
            if item not in self._slot_of:
                raise InvalidArgument(
                    f"items[{position}]", "is not an item of this recommender; see its catalogue"
                )
        return np.unique(np.array([self._slot_of[item] for item in items], dtype=np.intp))


class _Loading:
    """Profiles on their way; nothing is lost if nobody waits for them."""

    def __init__(
        self,
        loading: Awaitable[Sequence[Blob | None]],
        distinct: Sequence[bytes],
        clients: Sequence[bytes],
    ) -> None:
        self._loading = loading
        self._distinct = distinct
        self._clients = clients

    def __await__(self) -> Generator[Any, None, list[Slots]]:
        blobs = yield from self._loading.__await__()
        found = {
            who: NO_PROFILE if blob is None else _unpacked(blob.content)
            for who, blob in zip(self._distinct, blobs, strict=True)
        }
        return [found[who] for who in self._clients]


def _unpacked(content: bytes) -> Slots:
    return np.frombuffer(content, dtype=_PACKED).astype(np.intp)
