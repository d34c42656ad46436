"""What is sent, what is made of an answer, and when a request is sent again: no I/O here.

A conversation (`ask_one`, `ask_many`, `tell_one`, `tell_many`) yields what is to be sent, is given
what came back, and returns what the caller gets. `Client` and `AsyncClient` carry it out: they
differ in how they wait, and in nothing else.
"""

import json
import random
import uuid
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import httpx

from discreet_client.answers import FeedbackReceipt, RecommendedItems
from discreet_client.problems import ProblemError, Unreachable, problem

Context = Sequence[float] | Mapping[str, float | str | bool | None]
"""A list of numbers, or values by name, as the recommender's document declares it."""

MOST_BATCH = 1_000
_AGAIN = frozenset({429, 502, 503, 504})


@dataclass(frozen=True)
class RecommendCall:
    """A question. Without an `event_id` one is made up, so that a retry is free."""

    recommender: str
    client: str
    context: Context | None = None
    limit: int | None = None
    exclude: Sequence[str] = ()
    candidates: Sequence[str | Mapping[str, Any]] | None = None
    event_id: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    """Fields that only some algorithms use: `features`, `category`, `round`."""

    def body(self, event_id: str | None) -> dict[str, Any]:
        """Return it as JSON will have it."""
        context = self.context
        given: dict[str, Any] = {
            "context": dict(context)
            if isinstance(context, Mapping)
            else None
            if context is None
            else list(context),
            "limit": self.limit,
            "exclude": list(self.exclude) or None,
            "candidates": None if self.candidates is None else list(self.candidates),
            "event_id": event_id,
        }
        named = {name: value for name, value in given.items() if value is not None}
        return {"recommender": self.recommender, "client": self.client, **named, **self.more}


@dataclass(frozen=True)
class FeedbackCall:
    """How a recommendation was received: by the answer itself, its id, or its event id."""

    reward: float
    answer: RecommendedItems | None = None
    recommendation_id: str | None = None
    event_id: str | None = None
    item: str | None = None

    def body(self) -> dict[str, Any]:
        """Return it as JSON will have it."""
        id_ = self.answer.recommendation_id if self.answer else self.recommendation_id
        given = {"recommendation_id": id_, "event_id": self.event_id, "item": self.item}
        named = {name: value for name, value in given.items() if value is not None}
        return {"reward": self.reward, **named}


@dataclass(frozen=True)
class Retries:
    """How often, and for how long, a request that failed on the way is sent again.

    The pause grows from `first` seconds by a factor of two, with a random part, up to `longest`; a
    server's own Retry-After counts if it is longer. All tries together take at most `total`
    seconds, waiting included.
    """

    tries: int = 4
    first: float = 0.1
    longest: float = 5.0
    total: float = 15.0

    def pause(self, tried: int, retry_after: float | None, elapsed: float) -> float | None:
        """Return the seconds to wait after so many tries; None if that was the last."""
        if tried >= self.tries:
            return None
        grown = min(self.longest, self.first * 2.0 ** (tried - 1))
        # Half of it at random, so that many callers do not come back together.
        pause = max(grown * (0.5 + 0.5 * random.random()), retry_after or 0.0)  # noqa: S311
        return pause if elapsed + pause < self.total else None


NO_RETRIES = Retries(tries=1)


T = TypeVar("T")


class HttpCall(NamedTuple):
    """One request: `event_id` makes a retry of it free."""

    method: str
    path: str
    body: Any
    event_id: str | None = None


Conversation = Generator[HttpCall, Any, T]


def ask_one(ask: RecommendCall) -> Conversation[RecommendedItems]:
    """Ask one question."""
    event = ask.event_id or new_event_id()
    found = yield HttpCall("POST", "/recommend", ask.body(event), event)
    return _answer(found, event)


def ask_many(asks: Sequence[RecommendCall]) -> Conversation[list[RecommendedItems | ProblemError]]:
    """Ask many questions, in batches."""
    answers: list[RecommendedItems | ProblemError] = []
    for start in range(0, len(asks), MOST_BATCH):
        part = asks[start : start + MOST_BATCH]
        events = [ask.event_id or new_event_id() for ask in part]
        bodies = [ask.body(event) for ask, event in zip(part, events, strict=True)]
        found = yield HttpCall("POST", "/recommend/batch", {"requests": bodies})
        answers += [
            one if isinstance(one, ProblemError) else _answer(one, event)
            for one, event in zip(_results(found, len(part)), events, strict=True)
        ]
    return answers


def tell_one(feedback: FeedbackCall) -> Conversation[FeedbackReceipt]:
    """Send one piece of feedback."""
    return _receipt((yield HttpCall("POST", "/feedback", feedback.body())))


def tell_many(
    feedback: Sequence[FeedbackCall],
) -> Conversation[list[FeedbackReceipt | ProblemError]]:
    """Send many pieces of feedback, in batches."""
    receipts: list[FeedbackReceipt | ProblemError] = []
    for start in range(0, len(feedback), MOST_BATCH):
        part = feedback[start : start + MOST_BATCH]
        found = yield HttpCall("POST", "/feedback/batch", {"feedback": [f.body() for f in part]})
        receipts += [
            one if isinstance(one, ProblemError) else _receipt(one)
            for one in _results(found, len(part))
        ]
    return receipts


def content(body: Any) -> dict[str, Any]:
    """Return a request's body as httpx takes it: bytes as they are, anything else as JSON."""
    return {"content": body} if isinstance(body, bytes) else {"json": body}


def new_event_id() -> str:
    """Return an id for one question."""
    return uuid.uuid4().hex


def is_worth_repeating(error: ProblemError | Unreachable) -> bool:
    """Tell whether the same request may succeed later."""
    return isinstance(error, Unreachable) or error.status in _AGAIN


def read(status: int, headers: Mapping[str, str], content: bytes) -> Any:
    """Return an answer's JSON. Raises `ProblemError`, or `Unreachable` for what cannot be read."""
    try:
        found = json.loads(content) if content else None
    except ValueError:
        found = None
        if status < 300:
            raise Unreachable("what answered is not a Discreet server") from None
    if status < 300:
        return found
    document = found if isinstance(found, Mapping) else {}
    raise problem(status, document, retry_after=_seconds(headers.get("retry-after")))


def _answer(found: Any, event_id: str | None) -> RecommendedItems:
    """Return a recommendation. Raises `Unreachable` for what is none."""
    try:
        return RecommendedItems.of(found, event_id)
    except (KeyError, TypeError, ValueError) as error:
        raise Unreachable("the answer cannot be read", event_id=event_id) from error


def _receipt(found: Any) -> FeedbackReceipt:
    """Return a receipt. Raises `Unreachable` for what is none."""
    try:
        return FeedbackReceipt.of(found)
    except (KeyError, TypeError) as error:
        raise Unreachable("the answer cannot be read") from error


def _results(found: Any, count: int) -> list[Any]:
    """Return the entries of a batch, each its fields or its `ProblemError`."""
    try:
        results = list(found["results"])
        if len(results) != count:
            raise ValueError
        return [
            result if result["status"] == 200 else problem(result["status"], result["problem"])
            for result in results
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise Unreachable("the answer cannot be read") from error


def unreachable(error: httpx.HTTPError, event_id: str | None = None) -> Unreachable:
    """Return a failure of the network in plain words."""
    if isinstance(error, httpx.TimeoutException):
        return Unreachable("the server did not answer in time", event_id=event_id)
    return Unreachable(f"the server cannot be reached: {error}", event_id=event_id)


def headers(key: str) -> dict[str, str]:
    """Return what every request carries."""
    return {"Authorization": f"Bearer {key}", "User-Agent": "discreet-client/0.1.0"}


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else max(0.0, float(text))
    except ValueError:
        return None
