"""Dashboards: in step with their code, complete, and readable by Grafana and Prometheus."""

import json
from pathlib import Path
from typing import Any

import promql_parser
import pytest

from deploy.grafana.__main__ import BOARDS, CHART, HERE, files
from deploy.grafana.panels import Limits
from tests.deploy import queries
from tests.deploy.queries import DASHBOARDS, panels

each_dashboard = pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


def test_the_files_are_in_step_with_the_code() -> None:
    wanted = files()
    stale = [str(path) for path, text in wanted.items() if path.read_text() != text]
    assert stale == [], "run `make dashboards`"
    present = {
        *HERE.glob("*.json"),
        *(CHART / "dashboards").iterdir(),
        *(CHART / "rules").iterdir(),
    }
    assert present == set(wanted)


def test_there_are_four() -> None:
    assert {path.stem for path in DASHBOARDS} == {"overview", "privacy", "learning", "store"}
    uids = [_read(path)["uid"] for path in DASHBOARDS]
    assert len(set(uids)) == len(uids)


@each_dashboard
def test_every_panel_is_complete(path: Path) -> None:
    found = list(panels(_read(path)))
    assert len(found) >= 8
    for panel in found:
        where = panel["title"]
        defaults = panel["fieldConfig"]["defaults"]
        assert defaults["unit"], where
        assert defaults["thresholds"]["steps"], where
        assert "When it looks wrong: " in panel["description"], where
        assert len(panel["description"]) > 60, where
        assert panel["targets"], where
        assert panel["datasource"]["uid"] == "${datasource}"


@each_dashboard
def test_panels_fit_and_do_not_overlap(path: Path) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels(_read(path)):
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


@each_dashboard
def test_every_query_is_filtered_by_the_release(path: Path) -> None:
    dashboard = _read(path)
    for panel in panels(dashboard):
        for target in panel["targets"]:
            filled = queries.filled_in(target["expr"], dashboard, window="1m")
            for selector in queries.selectors(filled):
                assert "job" in {matcher.name for matcher in selector.matchers.matchers}


def test_queries_parse_and_read_series_that_exist() -> None:
    known = queries.served_series()
    shipped = queries.of_dashboards()
    assert len(shipped) > 60
    for query in shipped:
        assert "$" not in query.expr, f"{query.where}: {query.expr}"
        read = {selector.name for selector in queries.selectors(query.expr)}
        assert read, query
        assert read <= known, query


def test_every_series_of_the_service_is_shown_somewhere() -> None:
    shown = {
        selector.name
        for query in queries.of_dashboards()
        for selector in queries.selectors(query.expr)
    }
    assert queries.served_series() - shown == set()


def test_a_query_that_cannot_be_read_would_be_found() -> None:
    with pytest.raises(ValueError, match="invalid promql"):
        promql_parser.parse("sum by (x) rate(y[1m])")


@pytest.mark.parametrize(
    ("limits", "colours"),
    [
        (Limits(), ["blue"]),
        (Limits(1, 2), ["green", "orange", "red"]),
        (Limits(None, 2), ["green", "red"]),
        (Limits(2, 1, above=False), ["red", "orange", "green"]),
        (Limits(None, 1, above=False), ["red", "green"]),
        (Limits(2, None, above=False), ["orange", "green"]),
    ],
)
def test_limits_become_ascending_steps(limits: Limits, colours: list[str]) -> None:
    steps = limits.steps()
    assert [step.color for step in steps] == colours
    marks = [step.value for step in steps]
    assert marks[0] is None
    assert marks[1:] == sorted(mark for mark in marks[1:] if mark is not None)


def test_the_boards_are_those_that_are_written() -> None:
    assert {board.name for board in BOARDS} == {path.stem for path in DASHBOARDS}
