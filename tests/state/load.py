"""Traffic for stores that are about to be hurt, with an account of what it was told.

Three kinds of commands, each to a place of its own. What was acknowledged must be there
afterwards; what raised `StoreUnavailable` may or may not; nothing may be there twice.

    plain    debits without a marker: each is sent once, so a lost answer stays in doubt
    marked   debits with a marker: repeated until granted, and booked once
    learned  feedback: repeated until counted, counted once and paid for once
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from discreet.errors import StoreUnavailable
from discreet.privacy.charges import Charge
from discreet.state.stores import Store
from tests.state.places import GENERATION, learn, record, spend, spent

ONE = Charge(nano_epsilon=1, nano_rho=1, pico_delta=1)
PLACES = 8


@dataclass
class Traffic:
    """Runs until `stop()`; counts by place."""

    store: Store
    acknowledged: list[int] = field(default_factory=lambda: [0] * PLACES)
    in_doubt: list[int] = field(default_factory=lambda: [0] * PLACES)
    marked: list[int] = field(default_factory=lambda: [0] * PLACES)
    learned: list[int] = field(default_factory=lambda: [0] * PLACES)
    failures: int = 0
    _stopping: bool = False
    _step: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: "list[asyncio.Task[None]]" = field(default_factory=list)

    def start(self) -> None:
        for place in range(PLACES):
            for kind in (self._plain, self._marked, self._learned):
                self._tasks.append(asyncio.create_task(kind(place)))

    async def stop(self) -> None:
        """Let everything that must be repeated succeed, then return."""
        self._stopping = True
        await asyncio.gather(*self._tasks)

    async def progress(self, by: int) -> None:
        """Return once every place has had so many more acknowledged debits."""
        goal = [count + by for count in self.acknowledged]
        while any(count < wanted for count, wanted in zip(self.acknowledged, goal, strict=True)):
            self._step.clear()
            await self._step.wait()

    async def check(self) -> None:
        """Compare the store with what it said."""
        await self.store.freeze(generation=GENERATION, number=1)
        sums = await self.store.frozen(generation=GENERATION, number=1)
        for place in range(PLACES):
            found = (await spent(self.store, b"plain %d" % place)).answers
            least, doubt = self.acknowledged[place], self.in_doubt[place]
            assert least <= found.nano_epsilon <= least + doubt, f"plain {place}"
            assert found == Charge(*[found.nano_epsilon] * 3), "a debit was booked in part"
            marked = (await spent(self.store, b"marked %d" % place)).answers
            assert marked.nano_epsilon == self.marked[place], f"marked {place}"
            count = self.learned[place]
            assert sums[b"%d" % place].tolist() == [count, 3 * count], f"block {place}"
            paid = (await spent(self.store, b"learned %d" % place)).feedback
            assert paid == Charge(count, count**2, count), f"price {place}"

    async def _plain(self, place: int) -> None:
        while not self._stopping:
            try:
                await spend(self.store, b"plain %d" % place, charge=ONE)
            except StoreUnavailable:
                self.failures += 1
                self.in_doubt[place] += 1
                await asyncio.sleep(0.02)
            else:
                self.acknowledged[place] += 1
                self._step.set()

    async def _marked(self, place: int) -> None:
        for number in itertools.count():
            if self._stopping:
                return
            marker = b"%d" % number
            await self._until_answered(
                lambda marker=marker: spend(
                    self.store, b"marked %d" % place, charge=ONE, marker=marker
                )
            )
            self.marked[place] += 1

    async def _learned(self, place: int) -> None:
        for number in itertools.count():
            if self._stopping:
                return
            one = record(
                principal=b"learned %d" % place,
                claim=b"%d" % number,
                blocks={b"%d" % place: [(0, 1), (1, 3)]},
                charge=ONE,
                ttl=3600,
            )
            await self._until_answered(lambda one=one: learn(self.store, one))
            self.learned[place] += 1

    async def _until_answered(self, call: Callable[[], Awaitable[object]]) -> None:
        while True:
            try:
                await call()
            except StoreUnavailable:
                self.failures += 1
                await asyncio.sleep(0.02)
            else:
                return
