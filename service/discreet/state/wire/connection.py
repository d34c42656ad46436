"""One connection, many commands in flight.

Commands of one turn of the event loop leave in one write, or in a few when they are many; replies
are matched to them in order. Nothing waits for a reply before writing the next command: that is
what makes a command cheap.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, cast

from hiredis import HiredisError, Reader, ReplyError

from discreet.errors import DiscreetError, StoreUnavailable
from discreet.state.client import Word
from discreet.state.wire.commands import PendingCommand, packed_group


class CommandRefused(DiscreetError):
    """An error reply; `code` is its first word, the only part that never quotes data."""

    def __init__(self, message: str) -> None:
        self.code = message.partition(" ")[0]
        self.message = message
        super().__init__(f"the store refused a command ({self.code})")


AT_ONCE = 500
"""Commands of one write. What follows stays here if the peer does not read, known to be unsent."""

LARGE = 1_024
"""Bytes of a command that leaves at once: the store works on it while others are made."""

Lost = Callable[[Sequence[PendingCommand], Sequence[PendingCommand]], None]
"""Called once with the commands that may have run, and those that certainly have not."""


class PipelinedConnection(asyncio.Protocol):
    """Writes, reads, and says which commands were lost when the connection goes.

    Whoever owns it sets `refused` and `lost`, which decide what becomes of commands that failed.
    Until then, during the handshake, the error is the answer.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.refused: Callable[[PendingCommand, str], None] = _answer_refused
        self.lost: Lost = _answer_lost
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._reader = Reader()
        self._pending: deque[PendingCommand] = deque()
        self._outgoing: list[bytes] = []
        self._flushing = False
        self._paused = False
        self._finished = False
        self._progress = 0.0

    @property
    def in_flight(self) -> int:
        """Return how many replies are outstanding."""
        return len(self._pending)

    def send(self, commands: Sequence[PendingCommand]) -> None:
        """Queue commands for the end of this turn of the event loop, or sooner if they are many."""
        if self._finished:
            self._loop.call_soon(self.lost, (), commands)
            return
        if not self._pending:
            self._progress = self._loop.time()
        for start in range(0, len(commands), AT_ONCE):
            some = commands[start : start + AT_ONCE]
            self._pending.extend(some)
            self._outgoing.extend([command.payload for command in some])
            if len(self._outgoing) >= AT_ONCE or len(some[0].payload) >= LARGE:
                self._flush()
        if self._outgoing and not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    async def ask(self, *commands: Sequence[Word]) -> list[Any]:
        """Send commands about the server itself; return their replies, or raise the first error."""
        answers = await self.ask_each(*commands)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers

    def excuse(self, seconds: float) -> None:
        """Move every deadline by time in which nothing was polled."""
        self._progress += seconds
        for command in self._pending:
            command.deadline += seconds

    async def ask_each(self, *commands: Sequence[Word]) -> list[Any]:
        """Do the same, and return the error of each that failed in its place."""
        group, pending = packed_group(commands)
        self.send(pending)
        return await group.future

    def check(self, now: float, timeout: float) -> None:
        """Give up on expired commands, and on a server that has said nothing for so long."""
        if not self._pending:
            return
        if now - self._progress > timeout:
            self.abort()
            return
        for command in self._pending:
            if now > command.deadline:
                command.answer(StoreUnavailable("the store did not answer in time"))

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
                    self.refused(command, str(reply))
                else:
                    command.answer(reply)
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

    def _finish(self) -> None:
        if self._finished:
            return
        self._finished = True
        commands = list(self._pending)
        self._pending.clear()
        written = len(commands) - len(self._outgoing)
        self._outgoing.clear()
        self.lost(commands[:written], commands[written:])


def _answer_refused(command: PendingCommand, message: str) -> None:
    command.answer(CommandRefused(message))


def _answer_lost(ran: Sequence[PendingCommand], unsent: Sequence[PendingCommand]) -> None:
    for command in (*ran, *unsent):
        command.answer(ConnectionResetError("the connection to the store was lost"))
