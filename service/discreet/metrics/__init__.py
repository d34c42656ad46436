"""Metrics: the observer that feeds every series, and what a scrape is answered.

Labels are of bounded size: recommenders and peers (which only an administrator can name),
algorithms, outcomes, routes, operations. No client, context or single reward is ever counted
under a name of its own.

Writing a sample into the file that the workers share costs about 2 us, and a request has ten of
them. So samples are added up in plain numbers first and written `FLUSH_SECONDS` later, together
with those of all requests in that span; a scrape waits that long before it reads.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, disable_created_metrics, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from discreet.families.observer import Answer, Count, Figure, Heard
from discreet.metrics.samples import Durations, Tally
from discreet.metrics.series import Series
from discreet.privacy.charges import NANO, UNLIMITED, Charge

FLUSH_SECONDS = 0.02
LONGEST_PEER = 64

Later = Callable[[float, Callable[[], None]], object]


class Metrics:
    """Listens to decisions, requests and the store of one worker."""

    def __init__(self, *, version: str) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self._series = Series(self._registry)
        self._series.build.labels(version).set(1)
        self._tallies: dict[tuple[str, str], Tally] = {}
        self._surveyed: set[tuple[str, str]] = set()
        self._figures: set[tuple[Figure, tuple[str, ...]]] = set()
        self._requests: dict[tuple[str, str, int], Durations] = {}
        self._operations: dict[str, Durations] = {}
        self._in_flight = 0
        self._later: Later | None = None
        self._scheduled = False

    def attach(self, later: Later) -> None:
        """Flush by this clock (an event loop's `call_later`) from now on."""
        self._later = later

    # Decisions: the Observer protocol.

    def recommendation(
        self,
        *,
        recommender: str,
        algorithm: str,
        outcome: Answer,
        charge: Charge,
        items: int,
        estimated_regret: float,
        answers: int = 1,
    ) -> None:
        tally = self._tally(recommender, algorithm)
        tally.answers[outcome] = tally.answers.get(outcome, 0) + answers
        tally.items += items
        _charge(tally, charge, answers)
        tally.regret += max(estimated_regret, 0.0)

    def feedback(self, *, recommender: str, algorithm: str, outcome: Heard, reward: float) -> None:
        tally = self._tally(recommender, algorithm)
        tally.heard[outcome] = tally.heard.get(outcome, 0) + 1
        if outcome is Heard.COUNTED:
            tally.reward += reward

    def exhausted(self, *, recommender: str, algorithm: str) -> None:
        self._tally(recommender, algorithm).exhausted += 1

    def survey(
        self,
        *,
        recommender: str,
        algorithm: str,
        cells: int,
        depth: int,
        splits: int,
        explored: int,
    ) -> None:
        labels = (recommender, algorithm)
        if labels not in self._surveyed:
            self._surveyed.add(labels)
            self._declare(recommender, algorithm)
        found = (cells, depth, splits, explored)
        for gauge, value in zip(self._series.surveys, found, strict=True):
            gauge.labels(*labels).set(value)

    def removed(self, recommender: str) -> None:
        """Note that a recommender is gone; what it counted stays counted, what it holds is 0."""
        for labels in self._surveyed:
            if labels[0] == recommender:
                for gauge in self._series.surveys:
                    gauge.labels(*labels).set(0)
        for what, named in self._figures:
            if named[0] == recommender:
                self._series.figures[what].labels(*named).set(0)

    def forward(self, *, recommender: str, vendor: str, outcome: str) -> None:
        self._series.forwards.labels(recommender, vendor, outcome).inc()

    def hosted(self, *, recommender: str, requester: str, outcome: str) -> None:
        self._series.hosted.labels(recommender, requester[:LONGEST_PEER], outcome).inc()

    def outbox(self, waiting: int) -> None:
        self._series.outbox.set(waiting)

    def spent(self, *, recommender: str, algorithm: str, charge: Charge) -> None:
        _charge(self._tally(recommender, algorithm), charge)

    def count(self, *, recommender: str, what: Count, label: str = "", amount: int = 1) -> None:
        labels = (recommender, label) if label else (recommender,)
        self._series.counts[what].labels(*labels).inc(amount)

    def figure(self, *, recommender: str, what: Figure, value: float, label: str = "") -> None:
        labels = (recommender, label) if label else (recommender,)
        self._figures.add((what, labels))
        self._series.figures[what].labels(*labels).set(value)

    def exchanged(
        self, *, recommender: str, peer: str, direction: str, outcome: str, size: int
    ) -> None:
        named = (recommender, peer[:LONGEST_PEER], direction)
        self._series.messages.labels(*named, outcome).inc()
        self._series.message_bytes.labels(*named).inc(size)

    def circuit(self, vendor: str, is_open: bool) -> None:
        """Note that a vendor is left out, or asked again."""
        self._series.circuit.labels(vendor).set(1 if is_open else 0)

    def _declare(self, recommender: str, algorithm: str) -> None:
        """Let every series of a recommender begin at 0, so that a rate sees its first sample."""
        series, labels = self._series, (recommender, algorithm)
        for answer in Answer:
            series.recommendations.labels(*labels, answer.value)
        for heard in (Heard.COUNTED, Heard.DUPLICATE, Heard.CONFLICT, Heard.EXPIRED):
            series.feedback.labels(*labels, heard.value)
        for each in (
            series.items,
            series.epsilon,
            series.rho,
            series.exhausted,
            series.regret,
            series.reward,
        ):
            each.labels(*labels)

    def _tally(self, recommender: str, algorithm: str) -> Tally:
        key = (recommender, algorithm)
        tally = self._tallies.get(key)
        if tally is None:
            tally = self._tallies[key] = Tally()
        tally.dirty = True
        self._schedule()
        return tally

    # Requests and the store.

    def began(self) -> None:
        """Note that a request has arrived."""
        self._in_flight += 1
        self._schedule()

    def answered(self, *, method: str, route: str, status: int, seconds: float) -> None:
        """Note that a request was answered; `route` is a template, never a path."""
        self._in_flight -= 1
        key = (method, route, status // 100)
        durations = self._requests.get(key)
        if durations is None:
            child = self._series.requests.labels(method, route, f"{status // 100}xx")
            durations = self._requests[key] = Durations(child)
        durations.add(seconds)
        self._schedule()

    def stored(self, operation: str, seconds: float) -> None:
        """Note that the store answered."""
        durations = self._operations.get(operation)
        if durations is None:
            child = self._series.store.labels(operation)
            durations = self._operations[operation] = Durations(child)
        durations.add(seconds)
        self._schedule()

    def store_failed(self, operation: str) -> None:
        """Note that the store did not answer."""
        self._series.store_failures.labels(operation).inc()

    def store_up(self, up: bool) -> None:
        """Note whether the store answers."""
        self._series.store_up.set(1 if up else 0)

    # Writing and showing.

    def _schedule(self) -> None:
        if not self._scheduled and self._later is not None:
            self._scheduled = True
            self._later(FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        """Write everything that was noted."""
        self._scheduled = False
        series = self._series
        series.in_flight.set(self._in_flight)
        for labels, tally in self._tallies.items():
            if tally.dirty:
                self._write(labels, tally)
        for group in (self._requests, self._operations):
            _flush(group)

    def _write(self, labels: tuple[str, str], tally: Tally) -> None:
        series = self._series
        for answer, count in tally.answers.items():
            series.recommendations.labels(*labels, answer.value).inc(count)
        for heard, count in tally.heard.items():
            series.feedback.labels(*labels, heard.value).inc(count)
        for counter, amount in (
            (series.items, tally.items),
            (series.epsilon, tally.nano_epsilon / NANO),
            (series.rho, tally.nano_rho / NANO),
            (series.exhausted, tally.exhausted),
            (series.regret, tally.regret),
            (series.reward, tally.reward),
        ):
            if amount:
                counter.labels(*labels).inc(amount)
        tally.clear()

    def render(self) -> bytes:
        """Return every series of every worker in Prometheus' text format.

        It reads what was flushed and touches nothing else, so another thread may do it.
        """
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self._registry)
        everybody = CollectorRegistry()
        MultiProcessCollector(everybody)  # type: ignore[no-untyped-call]
        return generate_latest(everybody)


def _flush(group: Mapping[Any, Durations]) -> None:
    for durations in group.values():
        if durations.dirty:
            durations.flush()


def _charge(tally: Tally, charge: Charge, times: int = 1) -> None:
    """Add a charge. Gaussian releases have no epsilon alone, which the ledger books as no limit."""
    if charge.nano_epsilon != UNLIMITED:
        tally.nano_epsilon += times * charge.nano_epsilon
    if charge.nano_rho != UNLIMITED:
        tally.nano_rho += times * charge.nano_rho
