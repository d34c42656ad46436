"""Store and workers: what the service stands on."""

from deploy.grafana.overview import RATE, ratio
from deploy.grafana.panels import JOB, Board, Limits, Panel, Query, Row

STORE = Row(
    "Store",
    (
        Panel(
            title="Store",
            shows="1 if the store answers every worker of every pod.",
            wrong="at 0 nothing is released. See the runbook of DiscreetStoreDown.",
            unit="bool_on_off",
            queries=(Query(f"min(discreet_store_up{{{JOB}}})"),),
            limits=Limits(None, 1, above=False),
            width=4,
            height=9,
            figure=True,
        ),
        Panel(
            title="Operations",
            shows="What the workers ask of the store, by operation.",
            wrong="spend is one answer's debit, learn one piece of feedback (or many that came "
            "together). Much else beside them: see which; versions is how workers notice new "
            "models, four times a second each.",
            unit="ops",
            queries=(
                Query(
                    "sum by (operation) "
                    f"(rate(discreet_store_duration_seconds_count{{{JOB}}}{RATE}))",
                    "{{operation}}",
                ),
            ),
            width=10,
            stacked=True,
        ),
        Panel(
            title="Slowest 1% by operation",
            shows="From the call to the answer, as a worker sees it.",
            wrong="spend and learn alone: the disk. All of them: the network, or a store that is "
            "out of CPU.",
            unit="s",
            queries=(
                Query(
                    "histogram_quantile(0.99, sum by (operation, le) "
                    f"(rate(discreet_store_duration_seconds_bucket{{{JOB}}}{RATE})))",
                    "{{operation}}",
                ),
            ),
            limits=Limits(0.02, 0.1),
            width=10,
        ),
        Panel(
            title="Failures",
            shows="Operations that the store did not answer in time.",
            wrong="a failover takes seconds, and ends. Anything that lasts is an outage.",
            unit="ops",
            # No failure, no series: then zero is the truth.
            queries=(
                Query(
                    "sum by (operation) "
                    f"(rate(discreet_store_failures_total{{{JOB}}}{RATE})) or vector(0)",
                    "{{operation}}",
                ),
            ),
            limits=Limits(None, 0.001),
            width=12,
            soft_most=1,
        ),
        Panel(
            title="Mean time of a debit",
            shows="A whole round trip to the ledger, with its fsync.",
            wrong="above a few milliseconds the disk under the store is the limit of everything.",
            unit="s",
            queries=(
                Query(
                    f'sum(rate(discreet_store_duration_seconds_sum{{{JOB},operation="spend"}}{RATE}))'
                    " / sum(rate("
                    f'discreet_store_duration_seconds_count{{{JOB},operation="spend"}}{RATE}))'
                ),
            ),
            limits=Limits(0.01, 0.05),
            width=12,
        ),
    ),
)
WORKERS = Row(
    "Pods and workers",
    (
        Panel(
            title="Pods by version",
            shows="Pods that Prometheus reaches.",
            wrong="fewer than the Deployment has: those are down, or their key for /metrics is. "
            "Two versions for long: a rollout that stands still.",
            unit="none",
            queries=(
                Query(
                    f"count by (version) (discreet_build_info{{{JOB}}})",
                    "{{version}}",
                ),
            ),
            limits=Limits(2, 1, above=False),
            width=4,
            height=9,
            figure=True,
        ),
        Panel(
            title="Requests in flight",
            shows="Requests being answered, by pod.",
            wrong="growing without more traffic: requests queue for a slow store or vendor.",
            unit="none",
            queries=(
                Query(
                    f"sum by (instance) (discreet_requests_in_flight{{{JOB}}})",
                    "{{instance}}",
                ),
            ),
            limits=Limits(100, 1000),
            width=6,
        ),
        Panel(
            title="Requests refused (429)",
            shows="Refused before anything was counted or debited. overloaded: more than a worker "
            "can answer soon; rate-exceeded: more than its key may; too-many-connections.",
            wrong="overloaded for minutes: more pods. rate-exceeded: find the key's owner. See the "
            "runbook of DiscreetOverloaded.",
            unit="reqps",
            queries=(
                Query(
                    f"sum by (reason) (rate(discreet_requests_refused_total{{{JOB}}}{RATE}))",
                    "{{reason}}",
                ),
            ),
            limits=Limits(1, 100),
            width=7,
        ),
        Panel(
            title="Requests by route",
            shows="By route template; an address that nobody serves has none.",
            wrong="more /health than /recommend is an idle service; many /recommend/batch are "
            "better than as many single calls.",
            unit="reqps",
            queries=(
                Query(
                    "sum by (method, route) "
                    f"(rate(discreet_request_duration_seconds_count{{{JOB}}}{RATE}))",
                    "{{method}} {{route}}",
                ),
            ),
            width=7,
            stacked=True,
        ),
        Panel(
            title="Slowest 1% by route",
            shows="From the request's last byte to the answer's.",
            wrong="/recommend and /feedback have an objective of 0.1 s; /metrics waits for every "
            "worker and may take longer.",
            unit="s",
            queries=(
                Query(
                    "histogram_quantile(0.99, sum by (route, le) "
                    f"(rate(discreet_request_duration_seconds_bucket{{{JOB}}}{RATE})))",
                    "{{route}}",
                ),
            ),
            limits=Limits(0.1, 0.5),
        ),
        Panel(
            title="Mean time by route",
            shows="All the time that answers took, over their number.",
            wrong="a mean far above the median (overview) comes from a few that wait long: for a "
            "vendor, or for the store.",
            unit="s",
            queries=(
                Query(
                    ratio(
                        f"discreet_request_duration_seconds_sum{{{JOB}}}",
                        f"discreet_request_duration_seconds_count{{{JOB}}}",
                        by="route",
                    ),
                    "{{route}}",
                ),
            ),
            limits=Limits(0.05, 0.25),
        ),
        Panel(
            title="Requests by pod",
            shows="How evenly the traffic is spread.",
            wrong="one pod with most of it: callers keep one connection for ever. Let them open "
            "several.",
            unit="reqps",
            queries=(
                Query(
                    "sum by (instance) "
                    f"(rate(discreet_request_duration_seconds_count{{{JOB}}}{RATE}))",
                    "{{instance}}",
                ),
            ),
            stacked=True,
        ),
    ),
)
BOARD = Board(
    name="store",
    title="Discreet / store and workers",
    description="The store as the workers see it, and the pods.",
    rows=(STORE, WORKERS),
    by_recommender=False,
)
