"""Requests that arrive in one turn of the event loop are answered together.

A busy worker finds several requests waiting each time that it looks. Answering them as one batch
costs a fraction of answering each by itself, and none of them waits for another: they would have
shared the store's round trip anyway. A request that is alone in its turn is a batch of one.

Under load a batch waits while more is under way than it holds: the store would not come to it
sooner, and what arrives meanwhile goes with it. So there are about two batches, one that the store
works on and one that this process works on. One or two requests at a time never wait.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

from discreet.errors import DiscreetError
from discreet.families.contract import Recommender

Q = TypeVar("Q")
A = TypeVar("A")

AnswerMany = Callable[[Recommender[Any], Sequence[Q]], Awaitable[Sequence[A | DiscreetError]]]
"""Answers many requests to one recommender, each by itself."""

MOST = 32
"""Requests that go together. The store works on them while this process reads the next ones."""
LONGEST_WAIT = 0.005
"""Seconds that a batch waits at most for what is under way, should that take longer than usual."""


class JoinedAnswer(asyncio.Future[A]):
    """What becomes of one request of a batch: told apart, because nothing follows it but writing
    the answer."""


class Batcher(Generic[Q, A]):
    """Collects requests for `answer` until the event loop comes round."""

    def __init__(self, answer: AnswerMany[Q, A]) -> None:
        self._answer = answer
        self._waiting: dict[Recommender[Any], list[tuple[Q, JoinedAnswer[A]]]] = {}
        self._under_way: dict[Recommender[Any], int] = {}
        self._ending = False
        """Whether the end of this turn is awaited,"""
        self._patience: asyncio.TimerHandle | None = None
        """and the end of the patience of those that wait longer."""
        self._running: set[asyncio.Task[None]] = set()

    def join(self, recommender: Recommender[Any], request: Q) -> "JoinedAnswer[A]":
        """Answer this together with everything that comes in the same turn."""
        loop = asyncio.get_running_loop()
        future: JoinedAnswer[A] = JoinedAnswer(loop=loop)
        if not self._ending:
            self._ending = True
            loop.call_soon(self._end_turn)
        requests = self._waiting.get(recommender)
        if requests is None:
            requests = self._waiting[recommender] = []
        requests.append((request, future))
        if len(requests) == MOST:
            self._start(recommender)
        return future

    def _end_turn(self) -> None:
        self._ending = False
        for recommender in [*self._waiting]:
            self._start_if_enough(recommender)
        if self._waiting and self._patience is None:
            loop = asyncio.get_running_loop()
            self._patience = loop.call_later(LONGEST_WAIT, self._start_all)

    def _start_if_enough(self, recommender: Recommender[Any]) -> None:
        if len(self._waiting[recommender]) >= self._under_way.get(recommender, 0):
            self._start(recommender)

    def _start_all(self) -> None:
        self._patience = None
        for recommender in [*self._waiting]:
            self._start(recommender)

    def _start(self, recommender: Recommender[Any]) -> None:
        requests = self._waiting.pop(recommender)
        self._under_way[recommender] = self._under_way.get(recommender, 0) + len(requests)
        task = asyncio.get_running_loop().create_task(self._deliver(recommender, requests))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _deliver(
        self, recommender: Recommender[Any], requests: "Sequence[tuple[Q, JoinedAnswer[A]]]"
    ) -> None:
        outcomes: Sequence[A | BaseException]
        try:
            outcomes = await self._answer(recommender, [request for request, _ in requests])
        except Exception as error:  # whatever it is, each of them must be told
            outcomes = [error] * len(requests)
        finally:
            self._done(recommender, len(requests))
        for (_, future), outcome in zip(requests, outcomes, strict=True):
            if future.done():
                continue  # the caller has gone
            if isinstance(outcome, BaseException):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

    def _done(self, recommender: Recommender[Any], count: int) -> None:
        left = self._under_way.pop(recommender) - count
        if left:
            self._under_way[recommender] = left
        if recommender in self._waiting and not self._ending:
            self._start_if_enough(recommender)
