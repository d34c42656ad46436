"""Every Prometheus series, declared once, and the observer that feeds them.

Labels are of bounded size: recommenders and peers (which only an administrator can name),
algorithms, outcomes, routes, operations. No client, context or single reward is ever counted
under a name of its own.

Writing a sample into the file that the workers share costs about 2 us, and a request has ten of
them. So samples are added up in plain numbers first and written `FLUSH_SECONDS` later, together
with those of all requests in that span; a scrape waits that long before it reads.
"""

import os
from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from service.decisions.observer import Answer, Heard
from service.privacy.charges import NANO, Charge

FLUSH_SECONDS = 0.02
DURATIONS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
RECOMMENDER = ("recommender", "algorithm")
LONGEST_PEER = 64

Later = Callable[[float, Callable[[], None]], object]


class Tally:
    """What one recommender's decisions added since the last flush."""

    __slots__ = (
        "answers",
        "dirty",
        "exhausted",
        "heard",
        "items",
        "nano_epsilon",
        "nano_rho",
        "regret",
        "reward",
    )

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin again at nothing."""
        self.answers: dict[Answer, int] = {}
        self.heard: dict[Heard, int] = {}
        self.items = 0
        self.nano_epsilon = 0
        self.nano_rho = 0
        self.regret = 0.0
        self.reward = 0.0
        self.exhausted = 0
        self.dirty = False


class Durations:
    """One histogram's samples since the last flush, by bucket."""

    __slots__ = ("_child", "_counts", "_sum", "dirty")

    def __init__(self, child: Histogram) -> None:
        self._child = child
        self._counts = [0] * (len(DURATIONS) + 1)
        self._sum = 0.0
        self.dirty = False

    def add(self, seconds: float) -> None:
        """Note one sample."""
        self._counts[bisect_left(DURATIONS, seconds)] += 1
        self._sum += seconds
        self.dirty = True

    def flush(self) -> None:
        """Write what was noted. `observe` takes one sample at a time, so its parts are used."""
        child: Any = self._child
        child._sum.inc(self._sum)
        for bucket, count in enumerate(self._counts):
            if count:
                child._buckets[bucket].inc(count)
                self._counts[bucket] = 0
        self._sum = 0.0
        self.dirty = False


class Series:
    """The declarations, by the thing that they are about."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, help_: str, labels: tuple[str, ...] = RECOMMENDER) -> Counter:
            return Counter(f"discreet_{name}", help_, labels, registry=registry)

        def gauge(name: str, help_: str, mode: Any, labels: tuple[str, ...] = ()) -> Gauge:
            return Gauge(
                f"discreet_{name}", help_, labels, registry=registry, multiprocess_mode=mode
            )

        def durations(name: str, help_: str, labels: tuple[str, ...]) -> Histogram:
            return Histogram(
                f"discreet_{name}", help_, labels, registry=registry, buckets=DURATIONS
            )

        self.recommendations = counter(
            "recommendations_total",
            "Answers, by outcome: personalised, degraded (the budget is spent), unprotected "
            "(mode none), repeated (a retry), refused, empty.",
            (*RECOMMENDER, "outcome"),
        )
        self.items = counter("items_total", "Items recommended.")
        self.epsilon = counter("epsilon_spent_total", "Privacy loss charged to clients, epsilon.")
        self.rho = counter("rho_spent_total", "Privacy loss charged to clients, zCDP rho.")
        self.exhausted = counter(
            "budgets_exhausted_total", "Debits refused because a client's budget is spent."
        )
        self.regret = counter(
            "estimated_regret_total",
            "Plug-in estimate of regret from the learner's own means; not the true regret.",
        )
        self.feedback = counter(
            "feedback_total",
            "Feedback, by outcome: counted, duplicate, conflict, expired, forged.",
            (*RECOMMENDER, "outcome"),
        )
        self.reward = counter("reward_total", "Sum of the rewards counted.")
        self.cells = gauge("cells", "Cells with statistics.", "mostrecent", RECOMMENDER)
        self.depth = gauge("depth", "Deepest level of the partition.", "mostrecent", RECOMMENDER)
        self.splits = gauge("splits", "Cells that have split.", "mostrecent", RECOMMENDER)
        self.explored = gauge(
            "arms_explored", "Items with feedback somewhere.", "mostrecent", RECOMMENDER
        )
        self.forwards = counter(
            "forwards_total",
            "Questions to vendors, by outcome: answered, trained, or why not (closed, busy, dead, "
            "slow, refused, malformed, implausible).",
            ("recommender", "peer", "outcome"),
        )
        self.hosted = counter(
            "forwards_received_total",
            "Questions by other vendors, by outcome: answered, trained, unpaid (the account for "
            "running sums is spent, so none was told).",
            ("recommender", "peer", "outcome"),
        )
        self.circuit = gauge(
            "vendor_circuit_open", "1 while a worker leaves a vendor out.", "livemax", ("peer",)
        )
        self.outbox = gauge(
            "vendor_outbox", "Feedback that waits to be passed on to vendors.", "mostrecent"
        )
        self.surveys = (self.cells, self.depth, self.splits, self.explored)
        self.requests = durations(
            "request_duration_seconds",
            "Time to answer a request, by route template and class of status.",
            ("method", "route", "status"),
        )
        self.in_flight = gauge("requests_in_flight", "Requests being answered.", "livesum")
        self.store = durations(
            "store_duration_seconds", "Time until the store answered.", ("operation",)
        )
        self.store_failures = counter(
            "store_failures_total", "Operations that the store did not answer.", ("operation",)
        )
        self.store_up = gauge("store_up", "1 if the store answers every worker.", "livemin")
        self.build = gauge("build_info", "The version that is running.", "max", ("version",))


class Metrics:
    """Listens to decisions, requests and the store of one worker."""

    def __init__(self, *, version: str) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self._series = Series(self._registry)
        self._series.build.labels(version).set(1)
        self._tallies: dict[tuple[str, str], Tally] = {}
        self._surveyed: set[tuple[str, str]] = set()
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
    ) -> None:
        tally = self._tally(recommender, algorithm)
        tally.answers[outcome] = tally.answers.get(outcome, 0) + 1
        tally.items += items
        tally.nano_epsilon += charge.nano_epsilon
        tally.nano_rho += charge.nano_rho
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

    def forward(self, *, recommender: str, vendor: str, outcome: str) -> None:
        self._series.forwards.labels(recommender, vendor, outcome).inc()

    def hosted(self, *, recommender: str, requester: str, outcome: str) -> None:
        self._series.hosted.labels(recommender, requester[:LONGEST_PEER], outcome).inc()

    def outbox(self, waiting: int) -> None:
        self._series.outbox.set(waiting)

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
