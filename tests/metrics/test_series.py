"""Every series is declared as Prometheus recommends, with labels of bounded kinds."""

import re

from prometheus_client import CollectorRegistry

from discreet.families.observer import FamilyCounter, FamilyGauge
from discreet.metrics.series import MetricSeries

BOUNDED = {
    "account",
    "recommender",
    "algorithm",
    "outcome",
    "share",
    "peer",
    "messages",
    "direction",
    "state",
    "method",
    "route",
    "status",
    "operation",
    "reason",
    "version",
}


def test_names_units_help_and_labels() -> None:
    registry = CollectorRegistry()
    series = MetricSeries(registry)
    declared = [*registry._collector_to_names]
    assert len(declared) > 30
    for metric in declared:
        assert re.fullmatch(r"discreet_[a-z_]+", metric._name)  # type: ignore[attr-defined]
        assert metric._documentation.endswith(".")  # type: ignore[attr-defined]
        assert set(metric._labelnames) <= BOUNDED  # type: ignore[attr-defined]
    assert set(series.family_counters) == set(FamilyCounter)
    assert set(series.family_gauges) == set(FamilyGauge)
