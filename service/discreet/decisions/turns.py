"""Questions, and feedback, that arrive in one turn of the event loop are answered together.

A busy worker finds several requests waiting each time that it looks. Answering them as one batch
costs a fraction of answering each by itself, and none of them waits for another: they would have
shared the store's round trip anyway. A question that is alone in its turn is a batch of one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from discreet.decisions.recommender import Recommender
from discreet.errors import DiscreetError

Q = TypeVar("Q")
A = TypeVar("A")

Answering = Callable[[Recommender, Sequence[Q]], Awaitable[Sequence[A | DiscreetError]]]
"""How many questions to one recommender are answered; issued when called."""


MOST = 16
"""Questions that go together. The store works on them while this process reads the next ones."""


class Turns(Generic[Q, A]):
    """Collects questions for `answer` until the event loop comes round."""

    def __init__(self, answer: Answering[Q, A]) -> None:
        self._answer = answer
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Recommender, list[tuple[Q, asyncio.Future[A]]]] = {}
        self._running: set[asyncio.Task[None]] = set()

    def join(self, recommender: Recommender, question: Q) -> "asyncio.Future[A]":
        """Ask together with everybody who comes in the same turn."""
        future: asyncio.Future[A] = self._loop.create_future()
        if not self._waiting:
            self._loop.call_soon(self._begin)
        questions = self._waiting.setdefault(recommender, [])
        questions.append((question, future))
        if len(questions) == MOST:
            self._ask(recommender, self._waiting.pop(recommender))
        return future

    def _begin(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for recommender, questions in waiting.items():
            self._ask(recommender, questions)

    def _ask(
        self, recommender: Recommender, questions: "Sequence[tuple[Q, asyncio.Future[A]]]"
    ) -> None:
        futures = [future for _, future in questions]
        try:
            answers = self._answer(recommender, [question for question, _ in questions])
        except Exception as error:  # whatever it is, each of them must hear of it
            _fail(futures, error)
            return
        task = self._loop.create_task(_deliver(futures, answers))
        self._running.add(task)
        task.add_done_callback(self._running.discard)


async def _deliver(
    futures: "Sequence[asyncio.Future[A]]",
    answers: Awaitable[Sequence[A | DiscreetError]],
) -> None:
    try:
        outcomes = await answers
    except Exception as error:  # as above
        _fail(futures, error)
        return
    for future, outcome in zip(futures, outcomes, strict=True):
        if future.done():
            continue  # whoever asked has gone
        if isinstance(outcome, DiscreetError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


def _fail(futures: "Sequence[asyncio.Future[A]]", error: Exception) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
