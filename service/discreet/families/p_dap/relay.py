"""Feedback on its way to the vendor whose item was shown: kept until the vendor has it.

A letter is stored before the caller is told that feedback was accepted, and discarded once the
vendor has answered for it, or once its handle has expired. It is sent at once by the worker that
posted it; a sweep tries again what could not be delivered, as often as the gateway lets it.
Receiving a letter twice is harmless: feedback is idempotent.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass

from discreet.families.observer import Observer
from discreet.families.p_dap.vendors import VendorGateway
from discreet.decisions.tokens import Sealer
from discreet.errors import DiscreetError, PeerUnavailable, StoreUnavailable
from discreet.state.stores import Store

log = logging.getLogger(__name__)

QUEUE = b"feedback to vendors"
_PURPOSE = b"discreet letter"
_MOST = 256
"""Letters tried in one sweep."""
_MOST_AT_ONCE = 256
"""Letters that one worker sends at the same time; more wait for the sweep."""
_IDLE_ROUNDS = 30
"""Sweeps left out while there are no vendors: letters may still wait for one that was removed."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A reward for a handle of a vendor's."""

    vendor: str
    recommender: str
    handle: str
    reward: float
    expires_at: int


class Relay:
    """Posts letters and sees to it that they arrive."""

    def __init__(
        self,
        *,
        store: Store,
        sealer: Sealer,
        vendors: VendorGateway,
        observer: Observer,
        clock: Callable[[], float],
        needed: Callable[[], bool],
        seconds: float,
    ) -> None:
        self._store = store
        self._sealer = sealer
        self._vendors = vendors
        self._observer = observer
        self._clock = clock
        self._needed = needed
        self._seconds = seconds
        self._sending: dict[bytes, asyncio.Task[None]] = {}
        self._sweeping: asyncio.Task[None] | None = None

    async def post(self, name: bytes, letter: Letter) -> None:
        """Keep the letter, durably, and send it."""
        content = self._sealer.seal(json.dumps(asdict(letter)).encode(), purpose=_PURPOSE)
        await self._store.post_letter(queue=QUEUE, letter=name, content=content)
        if name not in self._sending and len(self._sending) < _MOST_AT_ONCE:
            task = asyncio.create_task(self._send(name, letter), name="relay")
            self._sending[name] = task
            task.add_done_callback(lambda _: self._sending.pop(name, None))

    async def _send(self, name: bytes, letter: Letter) -> None:
        with suppress(StoreUnavailable):
            await self._deliver(name, letter)

    async def _deliver(self, name: bytes, letter: Letter) -> None:
        if letter.expires_at > self._clock():
            try:
                await self._vendors.feedback(
                    vendor=letter.vendor,
                    recommender=letter.recommender,
                    handle=letter.handle,
                    reward=letter.reward,
                )
            except PeerUnavailable:
                return
        await self._store.discard_letter(queue=QUEUE, letter=name)

    async def sweep(self) -> int:
        """Try what waits; return how much waited."""
        waiting = await self._store.count_letters(queue=QUEUE)
        self._observer.outbox(waiting)
        if not waiting:
            return 0
        found = await self._store.letters(queue=QUEUE, most=_MOST)
        for name, content in found.items():
            if name in self._sending:
                continue
            try:
                letter = Letter(**json.loads(self._sealer.open(content, purpose=_PURPOSE)))
            except (DiscreetError, ValueError, TypeError):
                # Sealed with a key that is gone: nobody will ever read it.
                await self._store.discard_letter(queue=QUEUE, letter=name)
                continue
            if letter.expires_at <= self._clock() or self._vendors.reachable(letter.vendor):
                await self._deliver(name, letter)
        return waiting

    async def settle(self) -> None:
        """Return once everything that is being sent has been sent or given up for now."""
        while self._sending:
            await asyncio.gather(*self._sending.values(), return_exceptions=True)

    def start(self) -> None:
        """Begin sweeping in the background."""
        self._sweeping = asyncio.create_task(self._run(), name="relay sweep")

    async def stop(self) -> None:
        """Stop sweeping and sending; what was not delivered stays in the store."""
        tasks = [*self._sending.values(), *([self._sweeping] if self._sweeping else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> None:
        idle = _IDLE_ROUNDS
        while True:
            await asyncio.sleep(self._seconds)
            idle += 1
            if not self._needed() and idle < _IDLE_ROUNDS:
                continue
            try:
                if await self.sweep() == 0:
                    idle = 0
            except StoreUnavailable:
                continue
            except Exception:
                log.exception("a sweep of undelivered feedback failed")
