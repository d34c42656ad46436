"""One command on its way: what to send, what its reply means, and whether it may be sent twice."""

import asyncio
from collections.abc import Callable
from typing import Any

from discreet.errors import DiscreetError
from discreet.state.replies import unreadable


class Command:
    """Written once, answered once; `deadline` is on the event loop's clock.

    `repeatable` says that running it twice is the same as running it once. Any other command whose
    answer was lost is never sent again: it may have been executed.
    """

    __slots__ = ("attempts", "convert", "deadline", "future", "key", "payload", "repeatable")

    def __init__(
        self,
        payload: bytes,
        *,
        key: bytes,
        convert: Callable[[Any], Any],
        future: "asyncio.Future[Any]",
        repeatable: bool,
        deadline: float,
    ) -> None:
        self.payload = payload
        self.key = key
        self.convert = convert
        self.future = future
        self.repeatable = repeatable
        self.deadline = deadline
        self.attempts = 0

    @property
    def done(self) -> bool:
        """Tell whether nobody waits for an answer any more."""
        return self.future.done()

    def succeed(self, reply: Any) -> None:
        """Hand over the converted reply; one that makes no sense is a store out of order."""
        if self.future.done():
            return  # the caller gave up; what the command did stays done
        try:
            result = self.convert(reply)
        except DiscreetError as error:
            self.fail(error)
        except (ValueError, TypeError, IndexError, KeyError):
            self.fail(unreadable())
        else:
            self.deliver(result)

    def deliver(self, result: Any) -> None:
        """Resolve the caller's future."""
        self.future.set_result(result)

    def fail(self, error: Exception) -> None:
        """Raise `error` where the command is awaited."""
        if not self.future.done():
            self.future.set_exception(error)
            # Two commands are often issued together; when the first fails, its caller stops and
            # never looks at the second. That is as it should be, not worth a warning.
            self.future.exception()


class Part(Command):
    """One of several commands that share a future, which resolves when all have answered."""

    __slots__ = ("gathered", "position")

    def __init__(
        self,
        payload: bytes,
        key: bytes,
        convert: Callable[[Any], Any],
        repeatable: bool,
        deadline: float,
        gathered: "Gathered",
        position: int,
    ) -> None:
        # Written out: a batch makes thousands of these, and a call costs as much as all the rest.
        self.payload = payload
        self.key = key
        self.convert = convert
        self.future = gathered.future
        self.repeatable = repeatable
        self.deadline = deadline
        self.attempts = 0
        self.gathered = gathered
        self.position = position

    def deliver(self, result: Any) -> None:
        gathered = self.gathered
        gathered.results[self.position] = result
        gathered.missing -= 1
        if not gathered.missing:
            self.future.set_result(gathered.results)


_WAITING = object()


class Entry(Part):
    """A part whose failure is its own: it is listed in its place, and the others go on.

    Replies are listed as they came. Whoever awaits the list reads them all at once.
    """

    __slots__ = ()

    @property
    def done(self) -> bool:
        """Tell whether this entry has its result, or nobody waits for any of them."""
        return self.gathered.results[self.position] is not _WAITING or self.future.done()

    def succeed(self, reply: Any) -> None:
        """List the reply, unless this entry was given up before it came."""
        gathered = self.gathered
        if gathered.results[self.position] is not _WAITING:
            return
        gathered.results[self.position] = reply
        gathered.missing -= 1
        if not gathered.missing and not self.future.done():
            self.future.set_result(gathered.results)

    def fail(self, error: Exception) -> None:
        """List the error where the reply would stand."""
        self.succeed(error)


class Gathered:
    """The results of several parts, in the order of the question."""

    __slots__ = ("future", "missing", "results")

    def __init__(self, future: "asyncio.Future[Any]", size: int) -> None:
        self.future = future
        self.results: list[Any] = [_WAITING] * size
        self.missing = size
