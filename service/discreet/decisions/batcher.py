"""Requests that arrive in one turn of the event loop are answered together.

A busy worker finds several requests waiting each time that it looks. Answering them as one batch
costs a fraction of answering each by itself, and none of them waits for another: they would have
shared the store's round trip anyway. A request that is alone in its turn is a batch of one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from discreet.errors import DiscreetError
from discreet.families.contract import Recommender

log = logging.getLogger(__name__)

Q = TypeVar("Q")
A = TypeVar("A")

AnswerMany = Callable[[Recommender[Any], Sequence[Q]], Awaitable[Sequence[A | DiscreetError]]]
"""Answers many requests to one recommender, each by itself."""

MOST = 32
"""Requests that go together. The store works on them while this process reads the next ones."""


class Waiter(Protocol):
    """Whoever waits for what becomes of one request of a batch."""

    def answered(self, outcome: Any) -> None:
        """Take the answer, or the error in its place. Called once."""


class JoinedAnswer(asyncio.Future[A]):
    """What becomes of one request of a batch, for those who await it."""

    def answered(self, outcome: A | BaseException) -> None:
        if self.done():
            return  # the caller has gone
        if isinstance(outcome, BaseException):
            self.set_exception(outcome)
        else:
            self.set_result(outcome)


class Batcher(Generic[Q, A]):
    """Collects requests for `answer` until the event loop comes round."""

    def __init__(self, answer: AnswerMany[Q, A]) -> None:
        self._answer = answer
        self._waiting: dict[Recommender[Any], list[tuple[Q, Waiter]]] = {}
        self._running: set[asyncio.Task[None]] = set()

    def join(self, recommender: Recommender[Any], request: Q) -> "JoinedAnswer[A]":
        """Answer this together with everything that comes in the same turn."""
        future: JoinedAnswer[A] = JoinedAnswer(loop=asyncio.get_running_loop())
        self.enter(recommender, request, future)
        return future

    def enter(self, recommender: Recommender[Any], request: Q, waiter: Waiter) -> None:
        """Do the same for one who is told the answer and awaits nothing."""
        waiting = self._waiting
        if not waiting:
            asyncio.get_running_loop().call_soon(self._begin)
        requests = waiting.get(recommender)
        if requests is None:
            waiting[recommender] = [(request, waiter)]
            return
        requests.append((request, waiter))
        if len(requests) == MOST:
            self._start(recommender, waiting.pop(recommender))

    def _begin(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for recommender, requests in waiting.items():
            self._start(recommender, requests)

    def _start(self, recommender: Recommender[Any], requests: Sequence[tuple[Q, Waiter]]) -> None:
        task = asyncio.get_running_loop().create_task(self._deliver(recommender, requests))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _deliver(
        self, recommender: Recommender[Any], requests: Sequence[tuple[Q, Waiter]]
    ) -> None:
        outcomes: Sequence[A | BaseException]
        try:
            outcomes = await self._answer(recommender, [request for request, _ in requests])
        except Exception as error:  # whatever it is, each of them must be told
            outcomes = [error] * len(requests)
        for (_, waiter), outcome in zip(requests, outcomes, strict=True):
            try:
                waiter.answered(outcome)
            except Exception:  # the others are told all the same
                log.exception("an answer could not be handed over")
