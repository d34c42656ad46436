"""Commands on their way, and the group that waits for their answers."""

import asyncio
from collections.abc import Sequence
from typing import Any

from hiredis import pack_command

from discreet.state.client import Word

_WAITING = object()


class CommandGroup:
    """The answers of commands that were sent together, each in its place; errors are listed too."""

    __slots__ = ("answers", "future", "missing")

    def __init__(self, loop: asyncio.AbstractEventLoop, size: int) -> None:
        self.future: asyncio.Future[list[Any]] = loop.create_future()
        self.answers: list[Any] = [_WAITING] * size
        self.missing = size
        if not size:
            self.future.set_result(self.answers)


class PendingCommand:
    """Written once, answered once; `deadline` is on the event loop's clock."""

    __slots__ = ("attempts", "deadline", "group", "key", "payload", "position", "repeatable")

    def __init__(
        self,
        payload: bytes,
        key: bytes,
        repeatable: bool,
        deadline: float,
        group: CommandGroup,
        position: int,
    ) -> None:
        self.payload = payload
        self.key = key
        self.repeatable = repeatable
        self.deadline = deadline
        self.group = group
        self.position = position
        self.attempts = 0

    @property
    def done(self) -> bool:
        """Tell whether this one is answered, or nobody waits for the group any more."""
        return self.group.answers[self.position] is not _WAITING or self.group.future.done()

    def answer(self, reply: Any) -> None:
        """List the reply, or the error in its place; only the first answer counts."""
        group = self.group
        if group.answers[self.position] is not _WAITING:
            return
        group.answers[self.position] = reply
        group.missing -= 1
        if not group.missing and not group.future.done():
            group.future.set_result(group.answers)


def packed(words: Sequence[Word]) -> bytes:
    """Return one command in the store's protocol."""
    payload: bytes = pack_command(tuple(words))  # type: ignore[arg-type]  # its stub forgot "..."
    return payload


def packed_group(
    commands: Sequence[Sequence[Word]], *, deadline: float = float("inf")
) -> tuple[CommandGroup, list[PendingCommand]]:
    """Return commands about the server itself, which have no key, and their group."""
    group = CommandGroup(asyncio.get_running_loop(), len(commands))
    return group, [
        PendingCommand(packed(words), b"", False, deadline, group, position)
        for position, words in enumerate(commands)
    ]
