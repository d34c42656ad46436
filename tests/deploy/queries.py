"""Every PromQL query that is shipped: of dashboards, of recording rules, of alerts."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import promql_parser
import yaml
from prometheus_client import CollectorRegistry

from discreet.metrics.series import MetricSeries
from tests.house import ROOT

RULES = ROOT / "deploy" / "prometheus" / "rules.yaml"
DASHBOARDS = sorted((ROOT / "deploy" / "grafana").glob("*.json"))


@dataclass(frozen=True, slots=True)
class Shipped:
    """A query, where it stands, and its text with Grafana's variables filled in."""

    where: str
    expr: str


def panels(dashboard: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return every panel of a dashboard that is no heading."""
    for panel in dashboard["panels"]:
        yield from (each for each in (panel, *panel.get("panels", ())) if each["type"] != "row")


def filled_in(expr: str, dashboard: dict[str, Any], *, window: str) -> str:
    """Do what Grafana does with a query before it is sent: everything chosen, a short range."""
    expr = expr.replace("$__rate_interval", window).replace("$__range", window)
    for variable in dashboard["templating"]["list"]:
        value = variable.get("allValue") or variable.get("query")
        expr = re.sub(rf"\${variable['name']}\b", str(value), expr)
    return expr


def of_dashboards(*, window: str = "1m") -> list[Shipped]:
    """Return the queries of all dashboards."""
    found = []
    for path in DASHBOARDS:
        dashboard = json.loads(path.read_text())
        for panel in panels(dashboard):
            found += [
                Shipped(
                    f"{path.name}: {panel['title']}",
                    filled_in(target["expr"], dashboard, window=window),
                )
                for target in panel["targets"]
            ]
    return found


def rules() -> list[dict[str, Any]]:
    """Return all recording rules and alerts."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def of_rules() -> list[Shipped]:
    """Return the queries of recording rules."""
    return [Shipped(rule["record"], rule["expr"]) for rule in rules() if "record" in rule]


def of_alerts() -> list[Shipped]:
    """Return the conditions of alerts. They find nothing while all is well."""
    return [Shipped(rule["alert"], rule["expr"]) for rule in rules() if "alert" in rule]


def selectors(expr: str) -> Iterator[promql_parser.VectorSelector]:
    """Return every series that an expression reads."""
    yield from _selectors(promql_parser.parse(expr))


def _selectors(node: Any) -> Iterator[promql_parser.VectorSelector]:
    if isinstance(node, promql_parser.VectorSelector):
        yield node
        return
    for name in ("expr", "lhs", "rhs", "vector_selector"):
        below = getattr(node, name, None)
        if below is not None and not isinstance(below, str):
            yield from _selectors(below)
    for argument in getattr(node, "args", ()) or ():
        yield from _selectors(argument)


def served_series() -> set[str]:
    """Return the names that the service declares, with the endings that histograms have."""
    registry = CollectorRegistry()
    MetricSeries(registry)
    endings = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
    return {
        metric.name + ending
        for metric in registry.collect()
        for ending in endings.get(metric.type, ("",))
    }
