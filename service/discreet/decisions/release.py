"""From sums to models, and from models into memory.

A model is a blob: the moment of its release, and what the family encoded. Its version in the store
is the number of the release. One worker at a time releases, by lease. In this order, each step
after the one before has been acknowledged:

1. what has gathered is set aside under the next number (repeatable: `Recommender.gather`);
2. noise is drawn, and the next model made of the last one and of what was set aside;
3. the model is stored, if the version in the store is still the one it was made from;
4. what was set aside is erased.

A crash leaves the old model or the new one, never a half. Before 3 nothing was released, and the
noise died with the process, unseen; from 3 on the number is taken, so that nobody draws noise for
that release again. Two workers that both believe to hold the lease both reach 3, where one wins
and the other throws its model away. What was set aside for a release that is stored is never read
again: 4 is repeated by the next releaser.

The moment of a release depends on the clock, and on whether anybody *asked* since the last one;
both are public. Whether feedback came is not. The moment that is noted is that of step 1.

Requests do not wait for any of it: models are made, written and read in threads. In a worker one is
made and one is read at a time, since threads that compute share the interpreter with requests.
"""

import asyncio
import logging
import os
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from discreet.errors import StoreDamaged, StoreUnavailable
from discreet.families.contract import Recommender
from discreet.families.observer import FamilyCounter, FamilyGauge, Observer, ReleasedFigures
from discreet.families.stored import UnreadableRecord
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import Store

log = logging.getLogger(__name__)

LEASE_SECONDS = 15.0
_HEAD = struct.Struct("<d")
_NUMBER = struct.Struct("<Q")
_BEYOND = 2**63
"""Above the number of any release."""


class Releaser:
    """Makes models, and brings them into this worker's recommenders."""

    def __init__(
        self,
        *,
        store: Store,
        noise: NoiseSource,
        observer: Observer,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._noise = noise
        self._observer = observer
        self._clock = clock
        self._holder = os.urandom(16)
        self._making = asyncio.Lock()
        self._reading = asyncio.Lock()

    async def load(self, recommender: Recommender[Any]) -> None:
        """Adopt the model in the store, if there is a newer one than the recommender has.

        Raises `UnreadableRecord` if this version cannot read it.
        """
        try:
            (blob,) = await self._store.load(keys=[_key(recommender)])
        except StoreDamaged:
            recommender.unread = _BEYOND
            raise _unreadable() from None
        if blob is None or blob.version <= recommender.current.number:
            return
        try:
            async with self._reading:
                released_at, model, figures = await asyncio.to_thread(
                    _read, recommender, blob.content
                )
        except Exception as error:
            # Whatever a family's reader makes of bytes that it did not write.
            recommender.unread = blob.version
            raise _unreadable() from error
        self._adopt(recommender, blob.version, released_at, model, figures)

    async def load_newer(self, recommenders: Sequence[Recommender[Any]]) -> None:
        """Adopt every model that is newer than what this worker has."""
        if not recommenders:
            return
        try:
            versions = await self._store.versions(keys=[_key(one) for one in recommenders])
        except StoreDamaged:
            if len(recommenders) > 1:  # one of them: the others are well
                for one in recommenders:
                    await self.load_newer([one])
            return
        for recommender, version in zip(recommenders, versions, strict=True):
            if version < recommender.unread:
                recommender.unread = 0  # somebody put another one there
            if version > max(recommender.current.number, recommender.unread):
                try:
                    await self.load(recommender)
                except UnreadableRecord:
                    log.exception("%s: the model before the newest stays", recommender.algorithm)

    def awaits_release(self, recommender: Recommender[Any]) -> bool:
        """Tell whether this worker was asked since the last release, and the next one is due."""
        asked = recommender.asked or recommender.asked_in == recommender.current.number
        return asked and recommender.due(self._clock())

    async def release_if_due(self, recommender: Recommender[Any]) -> bool:
        """Release the next model if it is time and no other worker does; tell whether it was."""
        number = recommender.current.number
        if recommender.unread > number:
            return False  # the next release is for those who can read the last one
        if recommender.asked:
            # Said once a release: others need to know only that somebody asked.
            await self._store.save(key=_asked_key(recommender), content=_NUMBER.pack(number))
            recommender.asked = False
            recommender.asked_in = number
        if not recommender.due(self._clock()):
            return False
        if recommender.asked_in != number:
            (asked,) = await self._store.load(keys=[_asked_key(recommender)])
            if asked is None or asked.content != _NUMBER.pack(number):
                return False
            recommender.asked_in = number
        lease = recommender.key(b"release")
        if not await self._store.hold(lease=lease, holder=self._holder, seconds=LEASE_SECONDS):
            return False
        renewing = asyncio.create_task(self._renew(lease), name="lease of a release")
        try:
            # Whoever had the lease before may have released meanwhile.
            await self.load(recommender)
            if recommender.current.number != number:
                return False
            return await self.release(recommender)
        finally:
            renewing.cancel()
            await self._store.let_go(lease=lease, holder=self._holder)

    async def _renew(self, lease: bytes) -> None:
        """Keep a lease while its work takes long; losing it costs work, and nothing else."""
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            with suppress(StoreUnavailable):
                await self._store.hold(lease=lease, holder=self._holder, seconds=LEASE_SECONDS)

    async def release(self, recommender: Recommender[Any]) -> bool:
        """Make and store the next model; False if somebody else was faster."""
        current = recommender.current
        # Taken first: how long the work takes depends on how much has gathered, which is private,
        # and this moment is shown, and decides when the next release is due.
        released_at = self._clock()
        if current.number:
            await recommender.clean_up(current.number)
        number = current.number + 1
        gathered = await recommender.gather(number)
        async with self._making:
            model, figures, content = await asyncio.to_thread(
                self._made, recommender, current.model, gathered, released_at
            )
        saved = await self._store.save(
            key=_key(recommender), content=content, expected=current.number
        )
        if saved is None:
            return False
        self._adopt(recommender, number, released_at, model, figures)
        await recommender.clean_up(number)
        self._observer.count(recommender=recommender.name, what=FamilyCounter.RELEASES)
        return True

    def _made(
        self, recommender: Recommender[Any], before: Any, gathered: Any, released_at: float
    ) -> tuple[Any, ReleasedFigures, bytes]:
        """Return the next model, what it says, and what the store keeps of it; in a thread."""
        model = recommender.release(before, gathered, self._noise)
        content = write_model(released_at, recommender.encode(model))
        return model, recommender.figures(model), content

    async def erase(self, recommender: Recommender[Any]) -> None:
        """Erase everything that a removed recommender learned and released."""
        await recommender.erase()
        await self._store.erase(keys=[_key(recommender), _asked_key(recommender)])

    def _adopt(
        self,
        recommender: Recommender[Any],
        number: int,
        released_at: float,
        model: Any,
        figures: ReleasedFigures,
    ) -> None:
        recommender.adopt(number=number, released_at=released_at, model=model)
        measured = {
            FamilyGauge.RELEASE: number,
            FamilyGauge.RELEASED_AT: released_at,
            **figures.gauges(),
        }
        if recommender.releases is not None:
            pause = recommender.releases.pause(released_at - recommender.stored.created)
            measured[FamilyGauge.RELEASE_DUE] = released_at + pause
        for what, value in measured.items():
            self._observer.gauge(recommender=recommender.name, what=what, value=value)


def _read(recommender: Recommender[Any], stored: bytes) -> tuple[float, Any, ReleasedFigures]:
    """Return when a stored model was released, the model, and what it says; in a thread."""
    released_at, content = read_model(stored)
    model = recommender.decode(content)
    return released_at, model, recommender.figures(model)


def _unreadable() -> UnreadableRecord:
    return UnreadableRecord("its released model is nothing that this version can read")


def write_model(released_at: float, content: bytes) -> bytes:
    """Return a model as the store keeps it."""
    return _HEAD.pack(released_at) + content


def read_model(stored: bytes) -> tuple[float, bytes]:
    """Return when a stored model was released, and what the family encoded."""
    (released_at,) = _HEAD.unpack_from(stored)
    return released_at, stored[_HEAD.size :]


def _key(recommender: Recommender[Any]) -> bytes:
    return recommender.key(b"model")


def _asked_key(recommender: Recommender[Any]) -> bytes:
    return recommender.key(b"asked")
