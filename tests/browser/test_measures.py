"""The page's reading of Prometheus text, run where it runs: in a browser."""

import math
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Watched
from tests.demo_server import Demo

TEXT = r"""# HELP discreet_recommendations_total Answers.
# TYPE discreet_recommendations_total counter
discreet_recommendations_total{recommender="films",algorithm="p-dap",outcome="personalised"} 30.0
discreet_recommendations_total{recommender="films",algorithm="p-dap",outcome="degraded"} 10.0
discreet_recommendations_total{recommender="films",algorithm="p-dap",outcome="repeated"} 5.0
discreet_recommendations_total{recommender="a \"b\", \\ c}",algorithm="p-dap",outcome="degraded"} 7
discreet_forged_feedback_total 1
discreet_released_feedback{recommender="films"} 20.5
discreet_released_reward_mean{recommender="films"} 7.5e-01
discreet_released_regret{recommender="films"} 0.1
discreet_clients_spent_total{recommender="films",algorithm="p-dap",share="0"} 20
discreet_clients_spent_total{recommender="films",algorithm="p-dap",share="0.1"} 11
discreet_clients_spent_total{recommender="films",algorithm="p-dap",share="0.2"} 10
discreet_clients_spent_total{recommender="films",algorithm="p-dap",share="0.5"} 3
discreet_clients_spent_total{recommender="films",algorithm="p-dap",share="1"} 2
discreet_release{recommender="films"} 12
discreet_cells{recommender="films"} 9
discreet_splits{recommender="films"} 2
discreet_request_duration_seconds_bucket{le="+Inf",route="/feedback"} +Inf
discreet_store_up 1
discreet_build_info{version="1.2.3"} 1
nonsense
"""


@pytest.fixture
def page(tab: Watched, demo: Demo) -> Page:
    tab.page.goto(demo.url)
    return tab.page


def run(page: Page, body: str, argument: Any = None) -> Any:
    modules = "{...await import('/page/measures.js'), ...await import('/page/chart.js')}"
    return page.evaluate(f"async (given) => {{ const m = {modules}; {body} }}", argument)


def test_samples_and_labels(page: Page) -> None:
    samples = run(page, "return m.parse(given)", TEXT)
    assert len(samples) == 19
    assert samples[0]["name"] == "discreet_recommendations_total"
    assert samples[0]["labels"]["outcome"] == "personalised"
    assert samples[0]["value"] == 30
    assert samples[3]["labels"]["recommender"] == 'a "b", \\ c}'
    assert samples[16]["value"] == float("inf")


def test_recommenders_and_server(page: Page) -> None:
    names = run(page, "return m.recommenders(m.parse(given))", TEXT)
    assert names == ['a "b", \\ c}', "films"]
    server = run(page, "return m.server(m.parse(given))", TEXT)
    assert server == {"storeUp": True, "version": "1.2.3"}
    down = run(page, "return m.server(m.parse('discreet_store_up 0.0')).storeUp")
    assert down is False


def test_totals_of_one_and_of_all(page: Page) -> None:
    films = run(page, "return m.totals(m.parse(given), 'films', 7)", TEXT)
    assert films == {
        "at": 7,
        "answers": 45,
        "decided": 40,
        "degraded": 10,
        "learned": 20.5,
        "reward": 0.75,
        "regret": 0.1,
        "clients": 20,
        "spentHalf": 0.2,
        "spentMost": 1,
        "release": 12,
        "cells": 9,
        "splits": 2,
    }
    everything = run(page, "return m.totals(m.parse(given), '', 7)", TEXT)
    assert everything["degraded"] == 17
    assert math.isnan(everything["reward"])


def test_nobody_was_charged_where_nothing_is(page: Page) -> None:
    spent = run(page, "return m.spending(m.parse(given), 'others')", TEXT)
    assert spent["clients"] == 0
    assert math.isnan(spent["spentHalf"])


def test_what_happened_between_two_moments(page: Page) -> None:
    before = dict.fromkeys(
        ("answers", "decided", "degraded", "learned", "reward", "regret", "clients"), 0
    )
    now = {
        "answers": 45,
        "decided": 40,
        "degraded": 10,
        "learned": 20.5,
        "reward": 0.75,
        "regret": 0.1,
        "clients": 20,
        "spentHalf": 0.2,
        "spentMost": 0.9,
    }
    moments = [
        {**before, "at": 0, "release": 3, "cells": 1, "splits": 0},
        {**now, "at": 5, "release": 12, "cells": 9, "splits": 2},
    ]
    point = run(page, "return m.between(...given)", moments)
    assert point == {
        "at": 5,
        "reward": 0.75,
        "regret": 0.1,
        "clients": 20,
        "spentHalf": 0.2,
        "spentMost": 0.9,
        "release": 12,
        "cells": 9,
        "splits": 2,
        "degraded": 0.25,
        "answerRate": 9,
        "learned": 20.5,
    }


def test_history_is_bounded_and_begins_anew_with_the_server(page: Page) -> None:
    script = """
      const history = new m.History(300);
      const zero = {answers: 0, decided: 0, degraded: 0, learned: 0, reward: 0,
        regret: 0, clients: 0, release: 0, cells: 0, splits: 0};
      for (let at = 0; at < 1000; at += 1) history.add({...zero, at, answers: at});
      const long = [history.points.length, history.totals.length, history.points.at(-1).answerRate];
      history.add({...zero, at: 1000, answers: 3});
      return [...long, history.points.length, history.totals.length];
    """
    points, totals, rate, points_after, totals_after = run(page, script)
    assert points == 301
    assert totals <= 22
    assert rate == 1.0
    assert (points_after, totals_after) == (0, 1)


@pytest.mark.parametrize(
    ("value", "top"),
    [(0.0, 1), (0.03, 0.04), (0.55, 1), (1, 1), (1.01, 2), (37, 40), (401, 500), (1e6, 1e6)],
)
def test_scales_end_at_round_numbers(page: Page, value: float, top: float) -> None:
    found = run(page, "return m.roundUp(given)", value)
    assert found["top"] == pytest.approx(top)
    steps = found["top"] / found["step"]
    assert steps == pytest.approx(round(steps))
