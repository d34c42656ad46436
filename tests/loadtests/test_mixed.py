"""Mixed traffic: who is asked how often, what is made of k6's summary, and a short real run."""

import importlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.waiting import PATIENT

LOADTESTS = Path(__file__).resolve().parents[2] / "loadtests"
MOST_IN_FLIGHT = 256
"""`maxVUs` of mixed.js."""


@pytest.fixture
def mixed(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(LOADTESTS)
    return importlib.import_module("mixed")


def shares(plan: list[dict[str, Any]]) -> dict[str, float]:
    picked = Counter(row["family"] for row in plan)
    return {family: many / len(plan) for family, many in picked.items()}


def test_families_are_picked_by_their_weights(mixed: ModuleType) -> None:
    plan = mixed.planned(list(mixed.WEIGHTS), 20_000)
    wanted = {family: weight / 100 for family, weight in mixed.WEIGHTS.items()}
    # Five deviations at most; a weight of 10 that is wrong by 30% is fourteen away.
    assert shares(plan) == pytest.approx(wanted, abs=0.017)
    assert shares(plan)["p-rec"] == pytest.approx(0.1, abs=0.0106)
    told = sum(row["likes"] is not None for row in plan) / len(plan)
    assert told == pytest.approx(0.5, abs=0.018)


def test_who_is_left_out_leaves_their_share_to_the_others(
    mixed: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mixed.installed() == list(mixed.WEIGHTS)
    monkeypatch.setattr(mixed, "find_spec", lambda name: None)
    families = mixed.installed()
    assert families == ["p-dap", "fclub", "mirror-descent", "p-rec"]
    found = shares(mixed.planned(families, 20_000))
    assert found["p-dap"] == pytest.approx(4 / 9, abs=0.018)
    assert "collaborative" not in found


def test_every_arrival_is_an_answerable_question_of_its_own_family(mixed: ModuleType) -> None:
    for row in mixed.planned(list(mixed.WEIGHTS), 1_000):
        body = json.loads(row["body"])
        assert body["recommender"] == f"mixed-{row['family']}"
        assert ("context" in body) == (row["family"] == "p-dap")
        assert ("features" in body) == (row["family"] == "mirror-descent")


def test_a_client_comes_again_only_when_the_last_visit_must_be_over(mixed: ModuleType) -> None:
    last: dict[tuple[str, str], int] = {}
    for at, row in enumerate(mixed.planned(list(mixed.WEIGHTS), 20_000)):
        who = row["family"], json.loads(row["body"])["client"]
        assert at - last.get(who, -MOST_IN_FLIGHT - 1) > MOST_IN_FLIGHT, who
        last[who] = at
    assert f"maxVUs: {MOST_IN_FLIGHT}," in (LOADTESTS / "mixed.js").read_text()


def recorded(mixed: ModuleType) -> dict[str, Any]:
    """Return what k6 1.1 exported about one family, with two refusals and a lost reply put in."""
    counts = {
        "recommend": {0: 1, 200: 106, 503: 2},
        "feedback": {200: 59},
    }
    metrics: dict[str, Any] = {
        "iterations": {"count": 320, "rate": 39.97218446153113},
        "http_reqs": {"count": 479, "rate": 59.83336486585441},
        "dropped_iterations": {"count": 3, "rate": 0.37473922932685434},
        "personalised{family:p-dap}": {"passes": 105, "fails": 1, "value": 0.9905660377358491},
    }
    waited = {"recommend": (3.7652, 16.46721), "feedback": (3.21, 13.629)}
    for path, replies in counts.items():
        tags = f"family:p-dap,path:{path}"
        median, tail = waited[path]
        metrics[f"http_req_duration{{{tags}}}"] = {"med": median, "p(99)": tail, "max": 2 * tail}
        metrics[f"http_reqs{{{tags}}}"] = {"count": sum(replies.values()), "rate": 1.0}
        for status in mixed.STATUSES:
            one = f"http_reqs{{{tags},status:{status}}}"
            metrics[one] = {"count": replies.get(status, 0), "rate": 0.0}
    return {"metrics": metrics}


def test_nothing_of_the_summary_is_hidden(mixed: ModuleType) -> None:
    assert mixed.report(recorded(mixed), ["p-dap"]) == {
        "reached_per_second": 40.0,
        "requests_per_second": 59.8,
        "dropped": 3,
        "left_out": ["fclub", "mirror-descent", "p-rec", "collaborative"],
        "personalised": {"p-dap": 0.9905660377358491},
        "families": {
            "p-dap": {
                "recommend": {
                    "count": 109,
                    "p50_ms": 3.77,
                    "p99_ms": 16.47,
                    "failures": 3,
                    "statuses": {"0": 1, "200": 106, "503": 2},
                },
                "feedback": {
                    "count": 59,
                    "p50_ms": 3.21,
                    "p99_ms": 13.63,
                    "failures": 0,
                    "statuses": {"200": 59},
                },
            }
        },
    }


def test_a_status_that_nobody_expected_is_a_failure_too(mixed: ModuleType) -> None:
    summary = recorded(mixed)
    summary["metrics"]["http_reqs{family:p-dap,path:feedback}"]["count"] += 4
    told = mixed.report(summary, ["p-dap"])["families"]["p-dap"]["feedback"]
    assert (told["failures"], told["statuses"]) == (4, {"200": 59, "other": 4})


def test_what_k6_did_not_export_is_not_taken_for_nothing(mixed: ModuleType) -> None:
    with pytest.raises(KeyError, match="fclub"):
        mixed.report(recorded(mixed), ["p-dap", "fclub"])


def test_the_table_shows_every_status(
    mixed: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    mixed.show({"offered_per_second": 40, **mixed.report(recorded(mixed), ["p-dap"])})
    shown = capsys.readouterr().out
    assert "40.0 of 40 arrivals a second" in shown
    assert "3 dropped" in shown
    assert "3 failed  0: 1, 200: 106, 503: 2" in shown
    assert "not installed: fclub mirror-descent p-rec collaborative" in shown


@pytest.mark.needs("k6")
@pytest.mark.needs("procfs")
def test_a_short_run_against_a_real_server(mixed: ModuleType) -> None:
    command = [sys.executable, str(LOADTESTS / "mixed.py")]
    ran = subprocess.run(
        [*command, "--rate", "20", "--seconds", "3", "--json"],
        capture_output=True,
        text=True,
        timeout=600,
        env=os.environ | PATIENT,
    )
    assert ran.returncode == 0, ran.stderr
    assert "filling p-rec" in ran.stderr
    found = json.loads(ran.stdout)
    assert (found["offered_per_second"], found["seconds"], found["workers"]) == (20, 3, 1)
    assert set(found["families"]) | set(found["left_out"]) == set(mixed.WEIGHTS)
    replies = [row for paths in found["families"].values() for row in paths.values()]
    assert all(row["failures"] == 0 for row in replies), found
    assert all(row["count"] > 0 and 0 < row["p50_ms"] <= row["p99_ms"] for row in replies), found
    # A busy machine may lose some arrivals; all of them are accounted for.
    arrived = sum(paths["recommend"]["count"] for paths in found["families"].values())
    assert 60 <= arrived + found["dropped"] <= 62
    # Nobody is a stranger. Of mirror-descent's answers one in twenty is in random order.
    personalised = found["personalised"]
    assert personalised.pop("mirror-descent") > 0
    assert set(personalised.values()) == {1}
