"""Long work in short pieces, one lane of it for the whole worker.

A batch of a thousand lists over a large catalogue takes seconds. In one piece it would keep
everybody else waiting, the store's answers included. So long work is cut into pieces of a few
milliseconds by its size, which is public (items times places, never what is in them), and at most
two pieces are under way in a worker: the store debits one while the other is decided. Between two
pieces the event loop turns, and everything else has its turn.

A piece is debited and decided as one, so whatever was debited is decided soon after. Single
requests that are long by themselves go before the pieces of batches; what cannot begin soon is
refused before it is debited.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

from discreet.errors import Overloaded

T = TypeVar("T")
_Turn: TypeAlias = "asyncio.Future[None]"

PIECE = 500_000
"""Items times places of one piece: about five milliseconds."""
LONG = 100_000
"""From this size on a single request takes the lane."""
AT_ONCE = 2
MOST_WAITING = 8 * PIECE
"""Of single requests that wait for their turn, in all; or one of any size."""


class LongWorkLane:
    """Lets two pieces of long work be under way."""

    def __init__(self) -> None:
        self._under_way = 0
        self._urgent: deque[_Turn] = deque()
        self._patient: deque[_Turn] = deque()
        self._waiting = 0

    async def single(self, size: int, work: Callable[[], Awaitable[T]]) -> T:
        """Do a single request's work, before what batches wait for, or raise `Overloaded`."""
        if self._waiting and self._waiting + size > MOST_WAITING:
            raise Overloaded
        self._waiting += size
        try:
            return await self._do(self._urgent, work)
        finally:
            self._waiting -= size

    async def piece(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do a piece of a batch when it is its turn."""
        return await self._do(self._patient, work)

    async def _do(self, queue: "deque[_Turn]", work: Callable[[], Awaitable[T]]) -> T:
        if self._under_way >= AT_ONCE:
            turn = asyncio.get_running_loop().create_future()
            queue.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._hand_on()  # it was our turn, and we have no use for it
                raise
        else:
            self._under_way += 1
        try:
            return await work()
        finally:
            self._hand_on()

    def _hand_on(self) -> None:
        for queue in (self._urgent, self._patient):
            while queue:
                turn = queue.popleft()
                if not turn.done():
                    # Its work begins in the next turn of the event loop, after what has arrived.
                    turn.set_result(None)
                    return
        self._under_way -= 1
