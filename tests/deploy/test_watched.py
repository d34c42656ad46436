"""A real Prometheus over real instances under traffic: no query of ours finds nothing.

First everything works, and every query of every dashboard and recording rule has to find data.
Then the store is halted and the vendor killed, and every series that an alert reads has to be
there; two alerts that speak of just this have to be on their way.
"""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.deploy import queries
from tests.deploy.prometheus import Prometheus, scraping
from tests.deploy.queries import Shipped
from tests.deploy.traffic import FAMILIES
from tests.deploy.traffic.stage import Stage, two_instances
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.needs("prometheus"), pytest.mark.timeout(1800)]

LEAST_STEPS = 12
UNPROVOKED = {
    'discreet_trainings_total{outcome="failed"}': "a training fails only if its process dies",
}


@dataclass
class Watched:
    """What was found while all was well, and what was seen afterwards."""

    silent: list[Shipped]
    unseen: list[str] = field(default_factory=list)
    awake: set[str] = field(default_factory=set)
    refused: int = 0


def _silent(prometheus: Prometheus, shipped: list[Shipped]) -> list[Shipped]:
    return [query for query in shipped if not prometheus.ask(query.expr)]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("watched")
    with (
        two_instances(folder) as stage,
        scraping(folder / "prometheus", [stage.a, stage.b]) as prometheus,
    ):
        for family in FAMILIES.values():
            family.prepare(stage)
        found = Watched(silent=_under_traffic(stage, prometheus))
        _halt_the_store(stage, found)
        _lose_the_vendor(stage, prometheus)
        found.unseen = _unseen_for_long(prometheus)
        found.awake = _awake(prometheus, {"DiscreetDebitsUnanswered", "DiscreetVendorGone"})
        yield found


def _under_traffic(stage: Stage, prometheus: Prometheus) -> list[Shipped]:
    """Go on until every query finds something, or for as long as is reasonable."""
    silent = queries.of_dashboards() + queries.of_rules()
    deadline = time.monotonic() + 2 * PATIENCE
    number = 0
    while silent and time.monotonic() < deadline:
        for _ in range(LEAST_STEPS):
            for family in FAMILIES.values():
                family.step(stage, number)
            number += 1
        time.sleep(2)
        silent = _silent(prometheus, silent)
    return silent


def _halt_the_store(stage: Stage, found: Watched) -> None:
    """Stop the store for a moment: requests are refused, and nothing is released."""
    store = stage.a.valkey
    os.kill(store, signal.SIGSTOP)
    try:
        for number in range(3):
            body = {"recommender": "films", "client": f"late-{number}", "context": [0.5, 0.5]}
            answer = stage.a.client.post("/recommend", json=body)
            found.refused += answer.status_code == 503
            time.sleep(1.1)
    finally:
        os.kill(store, signal.SIGCONT)
    stage.a.wait_until_ready()


def _lose_the_vendor(stage: Stage, prometheus: Prometheus) -> None:
    """Kill `b`, and go on asking until it is left out."""
    stage.b.stop()
    deadline = time.monotonic() + PATIENCE
    while not prometheus.ask("discreet_vendor_circuit_open == 1"):
        assert time.monotonic() < deadline, "the vendor is dead, and nobody noticed"
        for each in range(20):
            context = [stage.rng.random(), stage.rng.random()]
            stage.visit("films", f"late-{each}-{deadline}", context=context)


def _unseen_for_long(prometheus: Prometheus) -> list[str]:
    """Return what stays unseen, or is not to be seen: a scrape may take its time."""
    deadline = time.monotonic() + PATIENCE
    while set(missing := _unseen(prometheus)) - set(UNPROVOKED) and time.monotonic() < deadline:
        time.sleep(0.5)
    return missing


def _unseen(prometheus: Prometheus) -> list[str]:
    """Return what alerts read and Prometheus has never heard of."""
    missing = []
    for alert in queries.of_alerts():
        for selector in queries.selectors(alert.expr):
            labels = ",".join(
                f"{one.name}{_SYMBOLS[str(one.op)]}{one.value!r}"
                for one in selector.matchers.matchers
            ).replace("'", '"')
            wanted = f"{selector.name}{{{labels}}}"
            if not prometheus.ask(f"last_over_time({wanted}[10m])"):
                missing.append(wanted)
    return missing


_SYMBOLS = {
    "MatchOp.Equal": "=",
    "MatchOp.NotEqual": "!=",
    "MatchOp.Re": "=~",
    "MatchOp.NotRe": "!~",
}


def _awake(prometheus: Prometheus, wanted: set[str]) -> set[str]:
    """Wait until these alerts are pending or firing."""
    awake: set[str] = set()
    deadline = time.monotonic() + PATIENCE
    while not wanted <= awake and time.monotonic() < deadline:
        awake |= {rule["name"] for rule in prometheus.rules() if rule.get("state") in STATES}
        time.sleep(0.5)
    return awake


STATES = ("pending", "firing")


def test_every_query_finds_data(watched: Watched) -> None:
    assert [f"{query.where}: {query.expr}" for query in watched.silent] == []


def test_a_halted_store_refuses_everything(watched: Watched) -> None:
    assert watched.refused == 3


def test_every_series_that_an_alert_reads_exists(watched: Watched) -> None:
    assert set(watched.unseen) - set(UNPROVOKED) == set()


def test_the_alerts_of_what_happened_wake_up(watched: Watched) -> None:
    assert {"DiscreetDebitsUnanswered", "DiscreetVendorGone"} <= watched.awake
