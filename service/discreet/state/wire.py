"""One connection, many commands in flight.

Commands of one turn of the event loop leave in one write, or in a few when they are many, so that
the server begins while the rest are still being written; replies are matched to them in order.
Nothing waits for a reply before writing the next command: that is what makes a command cheap.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, cast

from hiredis import HiredisError, Reader, ReplyError

from discreet.errors import DiscreetError, StoreUnavailable
from discreet.state.commands import Command


class Refused(DiscreetError):
    """An error reply; `code` is its first word, the only part that never quotes data."""

    def __init__(self, message: str) -> None:
        self.code = message.partition(" ")[0]
        self.message = message
        super().__init__(f"the store refused a command ({self.code})")


_AT_ONCE = 500
"""Commands of one write when there are many: more than 64 KiB, which a loop passes on at once."""

Lost = Callable[[Sequence[Command], Sequence[Command]], None]
"""Called once with the commands that may have run, and those that certainly have not."""


class Wire(asyncio.Protocol):
    """Writes, reads, and says which commands were lost when the connection goes.

    Whoever owns it sets `refused` and `lost`, which decide what becomes of commands that failed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.refused: Callable[[Command, str], None] = _nobody_refused
        self.lost: Lost = _nobody_lost
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._reader = Reader()
        self._pending: deque[Command] = deque()
        self._outgoing: list[bytes] = []
        self._flushing = False
        self._paused = False
        self._finished = False
        self._progress = 0.0

    def send(self, command: Command) -> None:
        """Queue a command for the end of this turn of the event loop."""
        if self._finished:
            self._loop.call_soon(self._lose, command)
            return
        if not self._pending:
            self._progress = self._loop.time()
        self._pending.append(command)
        self._outgoing.append(command.payload)
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def send_all(self, commands: Sequence[Command]) -> None:
        """Queue many commands; they begin to leave before the last of them is queued."""
        if self._finished:
            for command in commands:
                self.send(command)
            return
        if not self._pending:
            self._progress = self._loop.time()
        for start in range(0, len(commands), _AT_ONCE):
            some = commands[start : start + _AT_ONCE]
            self._pending.extend(some)
            self._outgoing.extend([command.payload for command in some])
            self._flush()

    def ask(self, payload: bytes) -> "asyncio.Future[Any]":
        """Send a command outside any route and return its raw reply; an error reply is raised."""
        future: asyncio.Future[Any] = self._loop.create_future()
        command = Asked(
            payload,
            key=b"",
            convert=_unchanged,
            future=future,
            repeatable=False,
            deadline=float("inf"),
        )
        self.send(command)
        return future

    @property
    def in_flight(self) -> int:
        """Return how many replies are outstanding."""
        return len(self._pending)

    def check(self, now: float, timeout: float) -> None:
        """Give up on expired commands, and on a server that has said nothing for so long."""
        if not self._pending:
            return
        if now - self._progress > timeout:
            self.abort()
            return
        for command in self._pending:
            if now > command.deadline:
                command.fail(StoreUnavailable("the store did not answer in time"))

    def abort(self) -> None:
        """Drop the connection now; everything outstanding is lost."""
        if self._transport is not None:
            self._transport.abort()
        self._finish()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        pending = self._pending
        gets = self._reader.gets
        self._progress = self._loop.time()
        try:
            self._reader.feed(data)
            while (reply := gets()) is not False:
                if not pending:
                    raise HiredisError("a reply to nothing")
                command = pending.popleft()
                if type(reply) is ReplyError:
                    self._refuse(command, str(reply))
                else:
                    command.succeed(reply)
        except HiredisError:
            # Whatever this is, no later reply can be matched to its command either.
            self.abort()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._flush()

    def connection_lost(self, error: Exception | None) -> None:
        self._finish()

    def _flush(self) -> None:
        self._flushing = False
        # While the peer does not read, commands stay here, where they are known to be unsent.
        if self._outgoing and not self._paused and not self._finished:
            assert self._transport is not None
            self._transport.write(b"".join(self._outgoing))
            self._outgoing.clear()

    def _lose(self, command: Command) -> None:
        if isinstance(command, Asked):
            command.fail(ConnectionResetError("the connection to the store was lost"))
        else:
            self.lost((), (command,))

    def _refuse(self, command: Command, message: str) -> None:
        if isinstance(command, Asked):
            command.fail(Refused(message))
        else:
            self.refused(command, message)

    def _finish(self) -> None:
        if self._finished:
            return
        self._finished = True
        commands = list(self._pending)
        self._pending.clear()
        written = len(commands) - len(self._outgoing)
        self._outgoing.clear()
        for command in commands:
            if isinstance(command, Asked):
                command.fail(ConnectionResetError("the connection to the store was lost"))
        self.lost(
            [command for command in commands[:written] if not isinstance(command, Asked)],
            [command for command in commands[written:] if not isinstance(command, Asked)],
        )


class Asked(Command):
    """A question of the handshake: its asker gets any error itself, and asks again or not."""

    __slots__ = ()


def _unchanged(reply: Any) -> Any:
    return reply


def _nobody_refused(command: Command, message: str) -> None:
    raise AssertionError("only questions are asked before a wire has an owner")


def _nobody_lost(ran: Sequence[Command], unsent: Sequence[Command]) -> None:
    assert not (*ran, *unsent), "only questions are asked before a wire has an owner"
