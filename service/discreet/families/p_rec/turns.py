"""Who may answer which clients: within a worker, one turn after the other."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager


class ClientTurns:
    """Lets whoever comes first hold several clients, all at once; others follow in their order.

    A turn stands behind the last one of each of its clients from the moment it is asked for, so
    that nobody waits in a circle.
    """

    def __init__(self) -> None:
        self._last: dict[bytes, asyncio.Future[None]] = {}

    @asynccontextmanager
    async def hold(self, clients: Sequence[bytes]) -> AsyncIterator[None]:
        """Hold these clients."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        last = self._last
        before = {last[client] for client in clients if client in last}
        for client in clients:
            last[client] = mine
        try:
            if before:
                await asyncio.wait(before)
            yield
        finally:
            self._end(mine, clients, [one for one in before if not one.done()])

    def _end(
        self,
        mine: "asyncio.Future[None]",
        clients: Sequence[bytes],
        others: "list[asyncio.Future[None]]",
    ) -> None:
        """End a turn; one that was cancelled before it began ends once these others have."""
        if others:
            others[0].add_done_callback(lambda _: self._end(mine, clients, others[1:]))
            return
        for client in clients:
            if self._last.get(client) is mine:
                del self._last[client]
        mine.set_result(None)
