"""People who ask, retry, repeat themselves and send feedback, over real connections, by seed."""

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx

from discreet.decisions.retries import MADE_UP_SECONDS
from tests.chaos.history import History, Operation
from tests.waiting import join

_REMEMBERED = MADE_UP_SECONDS / 2
"""Seconds within which a retry under an event id that a 503 told is not debited again."""


class Callers:
    """So many threads, each with clients of its own, until told to stop.

    `stored` asks the store, not the server: the last release there, and a digest of its model.
    """

    def __init__(
        self,
        url: str,
        key: str,
        history: History,
        *,
        seed: int,
        threads: int,
        stored: Callable[[], tuple[int, str] | None],
    ) -> None:
        self._history = history
        self._stored = stored
        self._url = url
        self._headers = {"Authorization": f"Bearer {key}"}
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._call,
                args=(random.Random(f"{seed} {number}"), number),
                name=f"caller {number}",
                daemon=True,
            )
            for number in range(threads)
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Return once everybody has finished the call that is under way."""
        self._stop.set()
        join(*self._threads)

    def _call(self, rng: random.Random, number: int) -> None:
        answered: list[Operation] = []
        told: list[Operation] = []
        with httpx.Client(base_url=self._url, headers=self._headers, timeout=20) as caller:
            for turn in range(10**9):
                if self._stop.is_set():
                    return
                dice = rng.random()
                if dice < 0.2 and answered:
                    self._feed_back(caller, rng.choice(answered[-1_000:]))
                    continue
                if dice < 0.25:
                    self._look(caller)
                    continue
                now = time.monotonic() - self._history.began
                told = [each for each in told if each.event_id or now - each.began < _REMEMBERED]
                if dice < 0.35 and told:
                    # A retry of what is in doubt, or a repetition of what was answered.
                    old = rng.choice(told)
                    one = self._ask(caller, old.client, old.event_id or old.retry_under)
                else:
                    event_id = f"{number}-{turn}" if rng.random() < 0.5 else None
                    one = self._ask(caller, f"client-{number}-{rng.randrange(8)}", event_id)
                if one.status == 200:
                    answered.append(one)
                if one.event_id or one.retry_under:
                    told.append(one)

    def _ask(self, caller: httpx.Client, client: str, event_id: str | None) -> Operation:
        body: dict[str, Any] = {"recommender": "films", "client": client, "context": [0.2, 0.8]}
        if event_id is not None:
            body["event_id"] = event_id
        one = self._history.begin("recommend", client, event_id)
        self._send(caller, "/recommend", body, one)
        return one

    def _feed_back(self, caller: httpx.Client, answer: Operation) -> None:
        one = self._history.begin("feedback", answer.client)
        one.recommendation_id = answer.recommendation_id
        body = {"recommendation_id": answer.recommendation_id, "reward": 1.0}
        self._send(caller, "/feedback", body, one)

    def _look(self, caller: httpx.Client) -> None:
        """Ask a worker which release it answers from, and then the store which it has."""
        one = self._history.begin("release", "")
        try:
            answer = caller.get("/recommenders/films/guarantee")
        except httpx.TransportError:
            one.ended = time.monotonic() - self._history.began
            return
        found = self._stored() if answer.status_code == 200 else None
        if found is not None:
            one.stored, one.model = found
        self._history.end(one, answer.status_code, answer.json())

    def _send(self, caller: httpx.Client, path: str, body: Any, one: Operation) -> None:
        try:
            answer = caller.post(path, json=body)
        except httpx.TransportError:
            one.ended = time.monotonic() - self._history.began
            time.sleep(0.02)
            return
        self._history.end(one, answer.status_code, answer.json())
        if answer.status_code != 200:
            time.sleep(0.02)
