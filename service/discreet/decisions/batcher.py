"""Requests that arrive in one turn of the event loop are answered together.

A busy worker finds several requests waiting each time that it looks. Answering them as one batch
costs a fraction of answering each by itself, and none of them waits for another: they would have
shared the store's round trip anyway. A request that is alone in its turn is a batch of one.
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


class JoinedAnswer(asyncio.Future[A]):
    """What becomes of one request of a batch: told apart, because nothing follows it but writing
    the answer."""


class Batcher(Generic[Q, A]):
    """Collects requests for `answer` until the event loop comes round."""

    def __init__(self, answer: AnswerMany[Q, A]) -> None:
        self._answer = answer
        self._waiting: dict[Recommender[Any], list[tuple[Q, JoinedAnswer[A]]]] = {}
        self._running: set[asyncio.Task[None]] = set()

    def join(self, recommender: Recommender[Any], request: Q) -> "JoinedAnswer[A]":
        """Answer this together with everything that comes in the same turn."""
        loop = asyncio.get_running_loop()
        future: JoinedAnswer[A] = JoinedAnswer(loop=loop)
        if not self._waiting:
            loop.call_soon(self._begin)
        requests = self._waiting.setdefault(recommender, [])
        requests.append((request, future))
        if len(requests) == MOST:
            self._start(recommender, self._waiting.pop(recommender))
        return future

    def _begin(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for recommender, requests in waiting.items():
            self._start(recommender, requests)

    def _start(
        self, recommender: Recommender[Any], requests: "Sequence[tuple[Q, JoinedAnswer[A]]]"
    ) -> None:
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
        for (_, future), outcome in zip(requests, outcomes, strict=True):
            if future.done():
                continue  # the caller has gone
            if isinstance(outcome, BaseException):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
