"""Every Prometheus series, declared once, by the thing that it is about."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from discreet.families.observer import FamilyCounter, FamilyGauge
from discreet.metrics.samples import DURATIONS

RECOMMENDER = ("recommender", "algorithm")
ACCOUNT = (*RECOMMENDER, "account")

_FAMILY_COUNTERS: dict[FamilyCounter, tuple[str, tuple[str, ...]]] = {
    FamilyCounter.RELEASES: ("Models released.", ()),
    FamilyCounter.COMMUNICATIONS: (
        "Exchanges of statistics with the global server, by direction: upload, download.",
        ("direction",),
    ),
    FamilyCounter.MIXING_ROUNDS: ("Rounds in which a node mixed its model.", ()),
    FamilyCounter.VOTES: ("Votes, by outcome: counted, refused.", ("outcome",)),
    FamilyCounter.CLIENT_RUNS: (
        "Clients' runs, by outcome: begun (and paid for), unpaid (the voters' budget is spent), "
        "ended (too few like-minded voters are left).",
        ("outcome",),
    ),
    FamilyCounter.TRAININGS: (
        "Models trained in the background, by outcome: done, failed.",
        ("outcome",),
    ),
    FamilyCounter.FORWARDS: (
        "Questions to vendors, by outcome: answered, or why not (closed, busy, dead, slow, "
        "refused, malformed).",
        ("peer", "outcome"),
    ),
    FamilyCounter.FORWARDS_RECEIVED: (
        "Questions by other vendors, by outcome: answered.",
        ("peer", "outcome"),
    ),
}
"""What families count, with its labels beside the recommender. The value names the series."""

_FAMILY_GAUGES: dict[FamilyGauge, tuple[str, tuple[str, ...]]] = {
    FamilyGauge.RELEASE: (
        "Number of the released model that answers are made from; of the oldest, if workers differ "
        "for a moment.",
        (),
    ),
    FamilyGauge.RELEASED_AT: (
        "When the released model that answers are made from was made, in seconds since 1970.",
        (),
    ),
    FamilyGauge.RELEASE_DUE: (
        "When the next release is due if anybody asks, in seconds since 1970.",
        (),
    ),
    FamilyGauge.CELLS: ("Cells with statistics.", ()),
    FamilyGauge.DEPTH: ("Deepest level of the partition.", ()),
    FamilyGauge.SPLITS: ("Cells that have split.", ()),
    FamilyGauge.EXPLORED: ("Items with feedback somewhere.", ()),
    FamilyGauge.VENDOR_OUTBOX: ("Feedback that waits to be passed on to vendors.", ()),
    FamilyGauge.CLUSTERS: ("Clusters of users.", ()),
    FamilyGauge.NEIGHBOURS: ("Neighbouring nodes, by state: fresh, stale, missing.", ("state",)),
    FamilyGauge.MODEL_NONZEROS: ("Weights that are not zero.", ()),
    FamilyGauge.VOTERS: ("Voters on the roster.", ()),
    FamilyGauge.ROUNDS: ("Rounds of objects, by state: open, closed.", ("state",)),
    FamilyGauge.PROFILES: ("Profiles that were sent.", ()),
    FamilyGauge.TRAINING_SECONDS: ("How long the last training took.", ()),
}

_MODES = dict.fromkeys(
    (FamilyGauge.RELEASE, FamilyGauge.RELEASED_AT, FamilyGauge.RELEASE_DUE), "livemin"
)
"""How the workers' values are joined, where it is not the one that was set last."""


class MetricSeries:
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

        # Decisions.
        self.recommendations = counter(
            "recommendations_total",
            "Answers, by outcome: personalised, degraded (the budget is spent), unprotected "
            "(answers are exact), repeated (a retry), refused, empty.",
            (*RECOMMENDER, "outcome"),
        )
        self.items = counter("items_total", "Items recommended.")
        self.epsilon = counter(
            "epsilon_spent_total",
            "Privacy loss charged, epsilon, by account: answers, feedback. Gaussian releases have "
            "rho only.",
            ACCOUNT,
        )
        self.rho = counter(
            "rho_spent_total",
            "Privacy loss charged, zCDP rho, by account: answers, feedback.",
            ACCOUNT,
        )
        self.exhausted = counter(
            "budgets_exhausted_total", "Debits refused because a budget is spent."
        )
        self.regret = counter(
            "estimated_regret_total",
            "Plug-in estimate of regret from the released model's own means; not the true regret.",
        )
        self.feedback = counter(
            "feedback_total",
            "Feedback, by outcome: counted, unpaid (accepted, not learned: the budget is spent), "
            "duplicate, conflict, expired, forged.",
            (*RECOMMENDER, "outcome"),
        )
        self.reward = counter("reward_total", "Sum of the rewards counted.")

        # What families count and measure, under the names that they have there.
        self.family_counters = {
            what: counter(f"{what.value}_total", help_, ("recommender", *labels))
            for what, (help_, labels) in _FAMILY_COUNTERS.items()
        }
        self.family_gauges = {
            what: gauge(what.value, help_, _MODES.get(what, "mostrecent"), ("recommender", *labels))
            for what, (help_, labels) in _FAMILY_GAUGES.items()
        }

        # Other instances.
        self.messages = counter(
            "peer_messages_total",
            "Messages between instances, by direction (sent, received) and outcome.",
            ("recommender", "peer", "direction", "outcome"),
        )
        self.message_bytes = counter(
            "peer_bytes_total",
            "Bytes in messages between instances.",
            ("recommender", "peer", "direction"),
        )
        self.circuit = gauge(
            "vendor_circuit_open", "1 while a worker leaves a peer out.", "livemax", ("peer",)
        )

        # Requests and the store.
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
