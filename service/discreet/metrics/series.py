"""Every Prometheus series, declared once, by the thing that it is about."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from discreet.families.observer import Count, Figure
from discreet.metrics.samples import DURATIONS

RECOMMENDER = ("recommender", "algorithm")


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
        self.epsilon = counter(
            "epsilon_spent_total",
            "Privacy loss charged to clients, epsilon; Gaussian releases have rho only.",
        )
        self.rho = counter("rho_spent_total", "Privacy loss charged, zCDP rho.")
        self.exhausted = counter(
            "budgets_exhausted_total", "Debits refused because a budget is spent."
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
        self.counts = {
            Count.COMMUNICATIONS: counter(
                "communications_total",
                "Exchanges of statistics with the global server, by direction: upload, download.",
                ("recommender", "direction"),
            ),
            Count.MIXING_ROUNDS: counter(
                "mixing_rounds_total", "Rounds in which a node mixed its model.", ("recommender",)
            ),
            Count.VOTES: counter(
                "votes_total",
                "Votes, by outcome: counted, refused.",
                ("recommender", "outcome"),
            ),
            Count.CLIENT_RUNS: counter(
                "client_runs_total",
                "Clients' runs, by outcome: begun (and paid for), unpaid (the voters' budget is "
                "spent), ended (too few like-minded voters are left).",
                ("recommender", "outcome"),
            ),
            Count.TRAININGS: counter(
                "trainings_total",
                "Models trained in the background, by outcome: done, failed.",
                ("recommender", "outcome"),
            ),
        }
        self.figures = {
            Figure.CLUSTERS: gauge(
                "clusters", "Clusters of users.", "mostrecent", ("recommender",)
            ),
            Figure.NEIGHBOURS: gauge(
                "neighbours",
                "Neighbouring nodes, by state: fresh, stale, missing.",
                "mostrecent",
                ("recommender", "state"),
            ),
            Figure.MODEL_NONZEROS: gauge(
                "model_nonzeros", "Weights that are not zero.", "mostrecent", ("recommender",)
            ),
            Figure.VOTERS: gauge("voters", "Voters on the roster.", "mostrecent", ("recommender",)),
            Figure.ROUNDS: gauge(
                "rounds",
                "Rounds of objects, by state: open, closed.",
                "mostrecent",
                ("recommender", "state"),
            ),
            Figure.PROFILES: gauge(
                "profiles", "Profiles that were sent.", "mostrecent", ("recommender",)
            ),
            Figure.TRAINING_SECONDS: gauge(
                "training_seconds",
                "How long the last training took.",
                "mostrecent",
                ("recommender",),
            ),
        }
        self.store_failures = counter(
            "store_failures_total", "Operations that the store did not answer.", ("operation",)
        )
        self.store_up = gauge("store_up", "1 if the store answers every worker.", "livemin")
        self.build = gauge("build_info", "The version that is running.", "max", ("version",))
