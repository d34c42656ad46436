"""Every Prometheus series, declared once, by the thing that it is about."""

from collections.abc import Collection
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from discreet.families.observer import FamilyCounter, FamilyGauge
from discreet.metrics.samples import DURATIONS

RECOMMENDER = ("recommender", "algorithm")
REFUSALS = ("overloaded", "rate-exceeded", "too-many-connections")
"""Why requests are refused with 429: the last parts of the problems' types."""

_FAMILY_COUNTERS: dict[FamilyCounter, tuple[str, tuple[str, ...]]] = {
    FamilyCounter.RELEASES: ("Models released.", ()),
    FamilyCounter.COMMUNICATIONS: (
        "Exchanges of statistics with the global server, by direction: upload, download.",
        ("direction",),
    ),
    FamilyCounter.MIXING_ROUNDS: ("Rounds in which a node mixed its model.", ()),
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
    FamilyCounter.NOT_AWAITED: (
        "Answers that count as nothing without feedback, because as many await a reward as may.",
        (),
    ),
    FamilyCounter.NOT_LOGGED: (
        "Decisions that the decision log lacks, because it could not be written fast enough.",
        (),
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
    FamilyGauge.RELEASED_FEEDBACK: (
        "Feedback that the released model was made from, as its noisy sums tell it.",
        (),
    ),
    FamilyGauge.RELEASED_REWARDS: (
        "Sum of the rewards that the released model was made from, as its noisy sums tell it.",
        (),
    ),
    FamilyGauge.RELEASED_REWARD_MEAN: (
        "Mean reward by the released model's noisy sums, drawn to 0.5 while they are mostly noise.",
        (),
    ),
    FamilyGauge.RELEASED_REWARD_ERROR: (
        "Standard error of the mean reward by the released model's noisy sums, chance and noise "
        "together. There is none while noise could pretend as much feedback.",
        (),
    ),
    FamilyGauge.RELEASED_REGRET: (
        "Regret to expect of an item that is answered from the released model: a plug-in estimate "
        "from the model's own means, not the true regret.",
        (),
    ),
    FamilyGauge.FEEDBACK_RHO: (
        "What a client's first record in a release costs, zCDP rho; the n-th costs 2n - 1 times.",
        (),
    ),
    FamilyGauge.CELLS: ("Cells with statistics.", ()),
    FamilyGauge.DEPTH: ("Deepest level of the partition.", ()),
    FamilyGauge.SPLITS: ("Cells that have split.", ()),
    FamilyGauge.EXPLORED: ("Items with feedback somewhere.", ()),
    FamilyGauge.CLUSTERS: ("Clusters of users.", ()),
    FamilyGauge.NEIGHBOURS: ("Neighbouring nodes, by state: fresh, stale, missing.", ("state",)),
    FamilyGauge.MODEL_NONZEROS: ("Weights that are not zero.", ()),
    FamilyGauge.ROUNDS: ("Rounds of objects, by state: open, closed.", ("state",)),
    FamilyGauge.PROFILES: ("Profiles that were sent.", ()),
    FamilyGauge.TRAINING_SECONDS: ("How long the last training took.", ()),
    FamilyGauge.OPEN_DECISIONS: (
        "Answers whose time to await a reward has not passed, whether feedback came or not.",
        (),
    ),
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
            "(answers are exact), repeated (a retry), refused, empty, holdout (from the model "
            "alone, in an experiment).",
            (*RECOMMENDER, "outcome"),
        )
        self.items = counter("items_total", "Items recommended.")
        self.epsilon = counter(
            "epsilon_spent_total",
            "Privacy loss charged for answers, epsilon. What feedback costs is not counted: it "
            "would tell who sent any.",
        )
        self.rho = counter(
            "rho_spent_total",
            "Privacy loss charged for answers, zCDP rho.",
        )
        self.clients_spent = counter(
            "clients_spent_total",
            "Clients whose answers have cost at least this share of their budget; 0 counts those "
            "who were ever charged. A budget that is renewed counts its client anew.",
            (*RECOMMENDER, "share"),
        )
        self.exhausted = counter(
            "budgets_exhausted_total", "Answers not paid for because a budget is spent."
        )
        self.forged = counter(
            "forged_feedback_total", "Feedback under ids that this service did not issue.", ()
        )

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
            "vendor_circuit_open",
            "1 while a worker leaves a peer out: sends no questions, or no deliveries.",
            "livemax",
            ("peer", "messages"),
        )

        # Requests and the store.
        self.requests = durations(
            "request_duration_seconds",
            "Time to answer a request, by route template and class of status.",
            ("method", "route", "status"),
        )
        self.refused = counter(
            "requests_refused_total",
            "Requests refused with 429 before anything was counted or debited, by reason: "
            "overloaded, rate-exceeded (of one key), too-many-connections.",
            ("reason",),
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

        self._of_recommenders: list[Any] = [
            each
            for each in (
                *vars(self).values(),
                *self.family_counters.values(),
                *self.family_gauges.values(),
            )
            if getattr(each, "_labelnames", ())[:1] == ("recommender",)
        ]

    def recommenders(self) -> set[str]:
        """Return the names of the recommenders that have series."""
        return {labels[0] for each in self._of_recommenders for labels in each._metrics}

    def forget(self, recommenders: Collection[str]) -> None:
        """Drop the series of these recommenders."""
        for each in self._of_recommenders:
            # `remove` warns that it does not know about files: `shared` does.
            with each._lock:
                for labels in [one for one in each._metrics if one[0] in recommenders]:
                    del each._metrics[labels]
