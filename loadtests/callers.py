"""Callers that cost little: kept connections, and answers that are read but not parsed.

The caller shares the machine's cores with what it measures. httpx spends more on an answer than the
server does on a batch's share of it, so measuring and teaching use the standard library's client.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPConnection
from typing import Self, TypeVar
from urllib.parse import urlsplit

from stage import HEADERS, Target

MOST = 1_000
"""Entries that the API takes in one batch."""

_ID = re.compile(rb'"recommendation_id":"([^"]+)"')
_FINE = b'"status":200'
_FIELD = {"recommend": "requests", "feedback": "feedback"}

Work = TypeVar("Work")
Result = TypeVar("Result")


class Caller:
    """One connection that stays open."""

    def __init__(self, target: Target) -> None:
        place = urlsplit(target.url)
        self._connection = HTTPConnection(place.hostname or "", place.port, timeout=120)
        self._name = target.name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._connection.close()

    def post(self, path: str, body: bytes, *, fine: Collection[int] = (200,)) -> bytes:
        """Return the answer as it came; any other status ends the run."""
        self._connection.request("POST", path, body, HEADERS)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status not in fine:
            raise SystemExit(f"{self._name} {path}: {answer.status} {content[:500]!r}")
        return content

    def post_batch(self, kind: str, body: bytes, entries: int) -> bytes:
        """Send one batch; every entry must have been answered with 200."""
        content = self.post(f"/{kind}/batch", body)
        if (fine := fine_entries(content)) != entries:
            raise SystemExit(
                f"{self._name} {kind}: {fine} of {entries} are fine: {content[:500]!r}"
            )
        return content


def fine_entries(answer: bytes) -> int:
    """Return how many entries of a batch were answered with 200."""
    return answer.count(_FINE)


def batch_body(kind: str, entries: Sequence[str]) -> bytes:
    """Return the body of a batch of recommendations or of feedback."""
    return f'{{"{_FIELD[kind]}":[{",".join(entries)}]}}'.encode()


def chunks(entries: Sequence[str], size: int = MOST) -> list[Sequence[str]]:
    """Cut a list into batches."""
    return [entries[start : start + size] for start in range(0, len(entries), size)]


def ids_of(answer: bytes) -> list[str]:
    """Return the ids in an answer, or in a batch's, in their order."""
    return [found.decode() for found in _ID.findall(answer)]


def feedback_on(ids: Iterable[str]) -> list[str]:
    """Return a piece of feedback on each recommendation; every other one is a click."""
    return [
        f'{{"recommendation_id":"{each}","reward":{number % 2}}}' for number, each in enumerate(ids)
    ]


def over_connections(
    target: Target,
    work: Iterable[Work],
    do: Callable[[Caller, Work], Result],
    *,
    connections: int = 2,
) -> list[Result]:
    """Do everything in `work`, in its order, over some connections at once."""
    idle: list[Caller] = []

    def one(each: Work) -> Result:
        # There are as many threads as callers, so one is idle; list operations are atomic.
        caller = idle.pop()
        try:
            return do(caller, each)
        finally:
            idle.append(caller)

    with ExitStack() as stack:
        idle += [stack.enter_context(Caller(target)) for _ in range(connections)]
        pool = stack.enter_context(ThreadPoolExecutor(connections))
        return list(pool.map(one, work))


def ask_in_batches(target: Target, bodies: Sequence[str], *, connections: int = 2) -> list[str]:
    """Ask for recommendations in the largest batches, and return their ids."""
    answers = over_connections(
        target,
        chunks(bodies),
        lambda caller, chunk: caller.post_batch(
            "recommend", batch_body("recommend", chunk), len(chunk)
        ),
        connections=connections,
    )
    return [each for answer in answers for each in ids_of(answer)]
