"""What every panel has: queries, a unit, thresholds, and what to do when it looks wrong.

A dashboard is written down as frozen values and built with Grafana's own SDK, so that its JSON is
what this version of Grafana reads. The thresholds are lines in graphs and colours in figures.
"""

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

with warnings.catch_warnings():
    # The SDK would rather have the second version of the schema. Provisioning, the sidecar and
    # Grafana before 12 read the first.
    warnings.simplefilter("ignore", DeprecationWarning)
    from grafana_foundation_sdk.builders import common as commons
    from grafana_foundation_sdk.builders import dashboard as dashboards
    from grafana_foundation_sdk.builders import prometheus, stat, timeseries
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models import common, dashboard

JOB = 'job=~"$job"'
HERE = 'job=~"$job",recommender=~"$recommender"'
"""The label matchers that a dashboard's variables fill in."""

SOURCE = common.DataSourceRef(type_val="prometheus", uid="${datasource}")
COLUMNS = 24
NEUTRAL = "blue"
GOOD, WARNING, BAD = "green", "orange", "red"


@dataclass(frozen=True, slots=True)
class Query:
    """A PromQL expression and how its series are called in the legend."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a panel turns orange and red. Without either, no value is wrong by itself.

    With `above`, larger is worse; else smaller is.
    """

    warning: float | None = None
    bad: float | None = None
    above: bool = True

    def steps(self) -> list[dashboard.Threshold]:
        """Return Grafana's ascending steps; the first has no lower end."""
        if self.warning is None and self.bad is None:
            return [dashboard.Threshold(value=None, color=NEUTRAL)]
        marks = [(self.warning, WARNING), (self.bad, BAD)]
        if self.above:
            rising = [dashboard.Threshold(value=None, color=GOOD)]
            rising += [
                dashboard.Threshold(value=mark, color=colour)
                for mark, colour in marks
                if mark is not None
            ]
            return rising
        falling = [dashboard.Threshold(value=None, color=BAD if self.bad is not None else WARNING)]
        if self.bad is not None:
            after = WARNING if self.warning is not None else GOOD
            falling.append(dashboard.Threshold(value=self.bad, color=after))
        if self.warning is not None:
            falling.append(dashboard.Threshold(value=self.warning, color=GOOD))
        return falling

    def build(self) -> dashboards.ThresholdsConfig:
        """Return them as the SDK wants them."""
        return (
            dashboards.ThresholdsConfig()
            .mode(dashboard.ThresholdsMode.ABSOLUTE)
            .steps(self.steps())
        )


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture. `wrong` says what to do when it looks wrong.

    An axis ends at `most`, or reaches to `soft_most` at least, so that nothing looks like much.
    """

    title: str
    shows: str
    wrong: str
    unit: str
    queries: tuple[Query, ...]
    limits: Limits = Limits()
    width: int = 8
    height: int = 9
    figure: bool = False
    stacked: bool = False
    least: float | None = 0
    most: float | None = None
    soft_most: float | None = None
    decimals: int | None = None

    def description(self) -> str:
        """What stands behind the panel's small i."""
        return f"{self.shows}\n\nWhen it looks wrong: {self.wrong}"

    def build(self) -> stat.Panel | timeseries.Panel:
        """Return the panel as Grafana knows it."""
        built = self._figure() if self.figure else self._graph()
        built = (
            built.title(self.title)
            .description(self.description())
            .datasource(SOURCE)
            .unit(self.unit)
            .thresholds(self.limits.build())
            .span(self.width)
            .height(self.height)
        )
        if self.least is not None:
            built = built.min(self.least)
        if self.most is not None:
            built = built.max(self.most)
        if self.decimals is not None:
            built = built.decimals(self.decimals)
        for number, query in enumerate(self.queries):
            target = (
                prometheus.Dataquery()
                .datasource(SOURCE)
                .expr(query.expr)
                .legend_format(query.legend or self.title)
                .ref_id(chr(ord("A") + number))
            )
            built = built.with_target(target.instant() if self.figure else target.range())
        return built

    def _figure(self) -> stat.Panel:
        return (
            stat.Panel()
            .color_mode(common.BigValueColorMode.VALUE)
            .graph_mode(common.BigValueGraphMode.NONE)
            .reduce_options(commons.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
        )

    def _graph(self) -> timeseries.Panel:
        built = (
            timeseries.Panel()
            .line_width(1.5)
            .fill_opacity(20 if self.stacked else 8)
            .show_points(common.VisibilityMode.NEVER)
            .tooltip(
                commons.VizTooltipOptions()
                .mode(common.TooltipDisplayMode.MULTI)
                .sort(common.SortOrder.DESCENDING)
            )
            .legend(
                commons.VizLegendOptions()
                .display_mode(common.LegendDisplayMode.TABLE)
                .placement(common.LegendPlacement.BOTTOM)
                .show_legend(True)
                .calcs(["mean", "lastNotNull"])
                .sort_by("Last *")
                .sort_desc(True)
            )
        )
        if self.limits != Limits():
            built = built.thresholds_style(
                commons.GraphThresholdsStyleConfig().mode(common.GraphThresholdsStyleMode.DASHED)
            )
        if self.soft_most is not None:
            built = built.axis_soft_max(self.soft_most)
        if self.stacked:
            built = built.stacking(commons.StackingConfig().mode(common.StackingMode.NORMAL))
        return built


@dataclass(frozen=True, slots=True)
class Row:
    """Panels that belong together, with a heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Box:
    """A number that the reader types in."""

    name: str
    label: str
    value: str
    description: str


@dataclass(frozen=True, slots=True)
class Board:
    """A dashboard: `name` is its file and the end of its address."""

    name: str
    title: str
    description: str
    rows: tuple[Row, ...]
    boxes: Sequence[Box] = ()
    by_recommender: bool = True

    def panels(self) -> list[Panel]:
        """Every panel of every row."""
        return [panel for row in self.rows for panel in row.panels]

    def json(self) -> str:
        """Return the dashboard as Grafana imports it."""
        built = (
            dashboards.Dashboard(self.title)
            .uid(f"discreet-{self.name}")
            .description(self.description)
            .tags(["discreet"])
            .timezone("browser")
            .refresh("30s")
            .time("now-6h", "now")
            .readonly()
            .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
            .with_variable(
                dashboards.DatasourceVariable("datasource").label("Prometheus").type("prometheus")
            )
            .with_variable(_labels("job", "Release", "label_values(discreet_build_info, job)"))
            .link(
                dashboards.DashboardLink("Discreet")
                .type(dashboard.DashboardLinkType.DASHBOARDS)
                .tags(["discreet"])
                .keep_time(True)
                .include_vars(True)
            )
        )
        if self.by_recommender:
            where = f"discreet_recommendations_total{{{JOB}}}"
            query = f"label_values({where}, recommender)"
            built = built.with_variable(_labels("recommender", "Recommender", query))
        for box in self.boxes:
            built = built.with_variable(
                dashboards.TextBoxVariable(box.name)
                .label(box.label)
                .description(box.description)
                .default_value(box.value)
                .current(dashboard.VariableOption(selected=True, text=box.value, value=box.value))
            )
        for row in self.rows:
            built = built.with_row(dashboards.Row(row.title))
            for panel in row.panels:
                built = built.with_panel(panel.build())
        known = json.loads(json.dumps(built.build(), cls=JSONEncoder))
        for variable in known["templating"]["list"]:
            # The SDK writes every variable as if it were an interval; Grafana's schema has none.
            for name in ("auto", "auto_count", "auto_min"):
                variable.pop(name, None)
        return json.dumps(known, indent=1, sort_keys=True) + "\n"


def _labels(name: str, label: str, query: str) -> dashboards.QueryVariable:
    everything = dashboard.VariableOption(selected=True, text=["All"], value=["$__all"])
    return (
        dashboards.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(query)
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(dashboard.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        # An empty name matches as well: feedback that nobody can open belongs to no recommender.
        .all_value(".*")
        .current(everything)
    )
