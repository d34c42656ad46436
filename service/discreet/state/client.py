"""The bridge between the store and whatever carries its commands to a server.

`RedisStore` knows keys, scripts and what replies mean. A client knows connections: where the server
of a key is, what to do when it goes, which commands may be sent twice. `wire/` is our own;
`loadtests/` has two more, over redis-py and coredis, that are measured against it.
"""

from collections.abc import Awaitable, Sequence
from typing import Any, NamedTuple, Protocol

Word = bytes | int


class StoreCommand(NamedTuple):
    """One command: the key that says which server runs it, and its words.

    `repeatable` says that running it twice is the same as running it once. Any other command whose
    answer was lost is never sent again: it may have been executed.
    """

    key: bytes
    words: Sequence[Word]
    repeatable: bool = True


class StoreClient(Protocol):
    """Sends commands to a single server, to the master behind Sentinels, or to a cluster."""

    @property
    def one_server(self) -> bool:
        """Whether all keys are on one server, so that a script call may touch any of them."""
        ...

    async def open(self) -> None:
        """Connect and load the scripts.

        Raises `StoreUnavailable` if no server answers, `StoreUnsuitable` if it must not be used.
        """
        ...

    async def close(self) -> None:
        """Disconnect; whatever is outstanding is answered by `StoreUnavailable`."""
        ...

    def send(self, commands: Sequence[StoreCommand]) -> Awaitable[list[Any]]:
        """Send commands now and return their replies, in this order.

        Commands of one turn of the event loop travel together, whoever sent them, and those for one
        server run in the order in which they were sent. One that failed, or whose fate is unknown,
        is listed as its `StoreUnavailable`; awaiting the list raises nothing. Raises
        `StoreUnavailable` at once if the client is not open.
        """
        ...
