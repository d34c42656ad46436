"""The client for ordinary programs: every call waits for its answer."""

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import httpx

from discreet_client.answers import FeedbackReceipt, RecommendedItems
from discreet_client.problems import ProblemError, Unreachable
from discreet_client.requests import (
    Context,
    Conversation,
    FeedbackCall,
    RecommendCall,
    Retries,
    T,
    ask_many,
    ask_one,
    content,
    headers,
    is_worth_repeating,
    read,
    tell_many,
    tell_one,
    unreachable,
)


class Client:
    """Asks one server. Safe to use from several threads.

    Args:
        url: where the server is, such as `http://127.0.0.1:8000`.
        key: an API key with the scope `serve`.
        timeout: seconds that one try may take.
        retries: how often a request that failed on the way is sent again.
        http: an `httpx.Client` of the caller's own (for proxies, certificates, tests).
        sleep: how to wait between two tries.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 5.0,
        retries: Retries | None = None,
        http: httpx.Client | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._http = http or httpx.Client(timeout=timeout)
        self._url = url.rstrip("/")
        self._headers = headers(key)
        self._retries = retries or Retries()
        self._sleep = sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def recommend(
        self,
        recommender: str,
        client: str,
        context: Context | None = None,
        *,
        limit: int | None = None,
        exclude: Sequence[str] = (),
        candidates: Sequence[str | Mapping[str, Any]] | None = None,
        event_id: str | None = None,
        **more: Any,
    ) -> RecommendedItems:
        """Ask what a client should see. Raises `ProblemError` or `Unreachable`."""
        ask = RecommendCall(
            recommender, client, context, limit, exclude, candidates, event_id, more
        )
        return self._run(ask_one(ask))

    def recommend_many(
        self, asks: Sequence[RecommendCall]
    ) -> list[RecommendedItems | ProblemError]:
        """Ask many questions at once; each is answered, or says what is wrong, in order."""
        return self._run(ask_many(asks))

    def feedback(
        self,
        answer: RecommendedItems | None = None,
        *,
        reward: float,
        item: str | None = None,
        recommendation_id: str | None = None,
        event_id: str | None = None,
    ) -> FeedbackReceipt:
        """Say how a recommendation was received: 0 to 1. Raises `ProblemError` or `Unreachable`."""
        given = FeedbackCall(reward, answer, recommendation_id, event_id, item)
        return self._run(tell_one(given))

    def feedback_many(
        self, feedback: Sequence[FeedbackCall]
    ) -> list[FeedbackReceipt | ProblemError]:
        """Say it of many at once; each is counted, or says what is wrong, in order."""
        return self._run(tell_many(feedback))

    def _run(self, talk: Conversation[T]) -> T:
        found: Any = None
        while True:
            try:
                wanted = talk.send(found)
            except StopIteration as ended:
                result: T = ended.value
                return result
            method, path, body, event_id = wanted
            found = self.call(method, path, body, event_id=event_id)

    def call(self, method: str, path: str, body: Any = None, *, event_id: str | None = None) -> Any:
        """Send any request and return its JSON: what this class has no method for.

        `body` is sent as JSON, and bytes as they are.

        It is repeated like the others, so it must be one that may be sent twice.
        """
        began, tried = time.monotonic(), 0
        while True:
            tried += 1
            try:
                answer = self._http.request(
                    method, self._url + path, headers=self._headers, **content(body)
                )
                return read(answer.status_code, answer.headers, answer.content)
            except httpx.HTTPError as failure:
                error: ProblemError | Unreachable = unreachable(failure, event_id)
            except (ProblemError, Unreachable) as refused:
                error = refused
            after = error.retry_after if isinstance(error, ProblemError) else None
            pause = self._retries.pause(tried, after, time.monotonic() - began)
            if pause is None or not is_worth_repeating(error):
                raise error
            self._sleep(pause)
