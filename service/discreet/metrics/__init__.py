"""Metrics: the observer that feeds every series, and what a scrape is answered.

Labels are of bounded size: recommenders and peers (which only an administrator can name),
algorithms, outcomes, routes, operations. No series that decisions feed depends on a context or on
feedback (`discreet.families.observer`); requests are counted by route, as the network sees them.

Writing a sample into the file that the workers share costs about 2 us, and a request has ten of
them. So samples are added up in plain numbers first and written `FLUSH_SECONDS` later, together
with those of all requests in that span; a scrape waits that long before it reads.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Metric, disable_created_metrics, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from discreet.families.budgets import TENTHS
from discreet.families.observer import AnswerOutcome, FamilyCounter, FamilyGauge
from discreet.metrics import shared
from discreet.metrics.samples import DecisionTotals, DurationSamples
from discreet.metrics.series import REFUSALS, MetricSeries
from discreet.privacy.charges import NANO, Charge

FLUSH_SECONDS = 0.1
LONGEST_PEER = 64

CallLater = Callable[[float, Callable[[], None]], object]


class Metrics:
    """Counts decisions, requests and store operations of one worker."""

    def __init__(self, *, version: str) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._shared = shared.in_use()
        self._registry = CollectorRegistry()
        self._series = MetricSeries(self._registry)
        self._series.build.labels(version).set(1)
        for reason in REFUSALS:
            self._series.refused.labels(reason)
        self._totals: dict[tuple[str, str], DecisionTotals] = {}
        self._loaded: dict[str, str] | None = None
        """The recommenders that there are; None until somebody has said so."""
        self._missing: set[str] = set()
        self._requests: dict[tuple[str, str, int], DurationSamples] = {}
        self._operations: dict[str, DurationSamples] = {}
        self._refusals: dict[str, int] = {}
        self._in_flight = 0
        self._call_later: CallLater | None = None
        self._scheduled = False

    def attach(self, call_later: CallLater) -> None:
        """Flush by this clock (an event loop's `call_later`) from now on."""
        self._call_later = call_later

    # Decisions: the Observer protocol.

    def recommendation(
        self,
        *,
        recommender: str,
        algorithm: str,
        outcome: AnswerOutcome,
        charge: Charge,
        items: int,
        answers: int = 1,
    ) -> None:
        """Count answers alike."""
        totals = self._totals_of(recommender, algorithm)
        totals.answers[outcome] = totals.answers.get(outcome, 0) + answers
        totals.items += items
        totals.charge(charge, answers)

    def forged(self) -> None:
        """Count feedback under an id that this service did not issue."""
        self._series.forged.inc()

    def reached(self, *, recommender: str, algorithm: str, tenths: int) -> None:
        """Count a client whose answers have cost so much."""
        self._totals_of(recommender, algorithm).reached[tenths] += 1

    def exhausted(self, *, recommender: str, algorithm: str) -> None:
        """Count a debit that was refused."""
        self._totals_of(recommender, algorithm).exhausted += 1

    def count(
        self,
        *,
        recommender: str,
        what: FamilyCounter,
        label: str = "",
        amount: int = 1,
        peer: str = "",
    ) -> None:
        """Count something that only one family has."""
        labels = [recommender, *filter(None, (peer[:LONGEST_PEER], label))]
        self._series.family_counters[what].labels(*labels).inc(amount)

    def gauge(self, *, recommender: str, what: FamilyGauge, value: float, label: str = "") -> None:
        """Measure something that only one family has."""
        labels = (recommender, label) if label else (recommender,)
        self._series.family_gauges[what].labels(*labels).set(value)

    def exchanged(
        self, *, recommender: str, peer: str, direction: str, outcome: str, size: int
    ) -> None:
        """Count a message to or from another instance."""
        named = (recommender, peer[:LONGEST_PEER], direction)
        self._series.messages.labels(*named, outcome).inc()
        self._series.message_bytes.labels(*named).inc(size)

    # What there is.

    def set_recommenders(self, loaded: Mapping[str, str]) -> None:
        """Learn which recommenders there are, each with its algorithm.

        The series of one that has come begin at 0, so that a rate sees its first sample. Those of
        one that is gone go with it.
        """
        before = self._loaded or {}
        for name, algorithm in loaded.items():
            if before.get(name) != algorithm:
                self._declare(name, algorithm)
        # One may come and go between two looks, so that it was measured and never seen here. One
        # that is just being loaded is measured too, so whoever is missing has to be so twice.
        counted = {recommender for recommender, _ in self._totals}
        missing = (self._series.recommenders() | counted) - loaded.keys()
        gone = missing & (before.keys() | self._missing)
        if gone:
            self._totals = {key: each for key, each in self._totals.items() if key[0] not in gone}
            self._series.forget(gone)
            if self._shared:
                shared.forget(gone)
        self._missing = missing - gone
        self._loaded = dict(loaded)

    def _declare(self, recommender: str, algorithm: str) -> None:
        series, labels = self._series, (recommender, algorithm)
        for answer in AnswerOutcome:
            series.recommendations.labels(*labels, answer.value)
        for each in (series.items, series.exhausted, series.epsilon, series.rho):
            each.labels(*labels)
        for tenths in range(TENTHS + 1):
            series.clients_spent.labels(*labels, spent_label(tenths))
        series.family_counters[FamilyCounter.RELEASES].labels(recommender)

    def _totals_of(self, recommender: str, algorithm: str) -> DecisionTotals:
        key = (recommender, algorithm)
        totals = self._totals.get(key)
        if totals is None:
            totals = self._totals[key] = DecisionTotals()
        totals.dirty = True
        self._schedule()
        return totals

    # Requests, the store, other instances.

    def began(self) -> None:
        """Count a request that has arrived."""
        self._in_flight += 1
        if not self._scheduled:
            self._schedule()

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered; `route` is a template, never a path."""
        self._in_flight -= 1
        key = (method, route, status // 100)
        durations = self._requests.get(key)
        if durations is None:
            child = self._series.requests.labels(method, route, f"{status // 100}xx")
            durations = self._requests[key] = DurationSamples(child)
        durations.add(seconds)
        if not self._scheduled:
            self._schedule()

    def refused(self, reason: str) -> None:
        """Count a request that was refused with 429; `reason` is the last part of its type."""
        self._refusals[reason] = self._refusals.get(reason, 0) + 1
        self._schedule()

    def stored(self, operation: str, seconds: float) -> None:
        """Count an operation that the store answered."""
        durations = self._operations.get(operation)
        if durations is None:
            child = self._series.store.labels(operation)
            durations = self._operations[operation] = DurationSamples(child)
        durations.add(seconds)
        self._schedule()

    def store_failed(self, operation: str) -> None:
        """Count an operation that the store did not answer."""
        self._series.store_failures.labels(operation).inc()

    def store_up(self, up: bool) -> None:
        """Tell whether the store answers."""
        self._series.store_up.set(1 if up else 0)

    def circuit(self, peer: str, what: str, is_open: bool) -> None:
        """Tell whether a peer is left out, for questions or for deliveries."""
        self._series.circuit.labels(peer, what).set(1 if is_open else 0)

    # Writing and showing.

    def _schedule(self) -> None:
        if not self._scheduled and self._call_later is not None:
            self._scheduled = True
            self._call_later(FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        """Write everything that was counted."""
        self._scheduled = False
        self._series.in_flight.set(self._in_flight)
        for reason, count in self._refusals.items():
            self._series.refused.labels(reason).inc(count)
        self._refusals.clear()
        for labels, totals in self._totals.items():
            if totals.dirty:
                self._write(labels, totals)
        for group in (self._requests, self._operations):
            _flush(group)

    def _write(self, labels: tuple[str, str], totals: DecisionTotals) -> None:
        series = self._series
        for answer, count in totals.answers.items():
            series.recommendations.labels(*labels, answer.value).inc(count)
        for counter, amount in (
            (series.items, totals.items),
            (series.exhausted, totals.exhausted),
            (series.epsilon, totals.nano_epsilon / NANO),
            (series.rho, totals.nano_rho / NANO),
        ):
            if amount:
                counter.labels(*labels).inc(amount)
        for tenths, clients in enumerate(totals.reached):
            if clients:
                series.clients_spent.labels(*labels, spent_label(tenths)).inc(clients)
        totals.clear()

    def render(self) -> bytes:
        """Return every series of every worker in Prometheus' text format.

        It reads what was flushed and touches nothing else, so another thread may do it.
        """
        return generate_latest(AllWorkers(self._loaded) if self._shared else self._registry)


class AllWorkers(CollectorRegistry):
    """The series of every worker, those that have ended too, of recommenders that there are."""

    def __init__(self, recommenders: Mapping[str, str] | None) -> None:
        super().__init__()
        self._recommenders = recommenders

    def collect(self) -> Iterable[Metric]:
        """Yield them; another worker may not have noticed yet that a recommender is gone."""
        known = self._recommenders
        for metric in MultiProcessCollector(None).collect():  # type: ignore[no-untyped-call]
            if known is not None:
                metric.samples = [
                    one
                    for one in metric.samples
                    if "recommender" not in one.labels or one.labels["recommender"] in known
                ]
            yield metric


def spent_label(tenths: int) -> str:
    """Return how a share of a budget is written: 0, 0.1, …, 1."""
    return f"{tenths / TENTHS:g}"


def _flush(group: Mapping[Any, DurationSamples]) -> None:
    for durations in group.values():
        if durations.dirty:
            durations.flush()
