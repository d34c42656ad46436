"""The benchmark's JSON, bars, table, chart and options, from a run in the recorded shape."""

import argparse
import copy
import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import batches
import bench
import chart
import compare
import growth
import pytest
import report
from drive import Sample
from stage import Target

from tests.loadtests import recorded


@pytest.fixture
def found() -> dict[str, Any]:
    """A run in which every bar is met."""
    run: dict[str, Any] = {
        "machine": recorded.MACHINE,
        "quick": False,
        "recommend": report.with_summary(
            {"1": recorded.compared(5.0), "2": recorded.compared(3.8)}
        ),
        "feedback": report.with_summary({"1": recorded.compared(4.7), "2": recorded.compared(3.6)}),
        "batch": recorded.BATCH,
        "families": recorded.FAMILIES,
        "scaling": recorded.scaling(),
        "clients": recorded.CLIENTS,
        "protocol": recorded.PROTOCOL,
        "releases": recorded.RELEASES,
        "memory": recorded.MEMORY,
        "store": recorded.STORE,
        "mixed": recorded.MIXED,
    }
    run = copy.deepcopy(run)
    run["bars"] = report.bars(run)
    return run


def missed(run: dict[str, Any]) -> list[str]:
    return [bar["bar"] for bar in report.bars(run) if not bar["met"]]


def test_the_promised_keys_stand_at_their_places(found: dict[str, Any]) -> None:
    promised = {"rps", "p50_ms", "p99_ms", "cpu_us", "ratio_to_floor", "ratio_to_alternative"}
    for path in ("recommend", "feedback"):
        figures = [found[path][key] for key in promised]
        assert all(isinstance(one, int | float) for one in figures)
        assert set(found[path]["workers"]) == {"1", "2"}
        for row in found[path]["workers"].values():
            for service in ("discreet", "floor", "alternative"):
                assert {"rps", "cpu_us", "p50_ms", "p99_ms"} <= set(row[service])
    assert found["recommend"]["ratio_to_floor"] == 5.0
    assert json.loads(json.dumps(found)) == found


def test_a_bar_says_what_was_measured_and_what_is_allowed(found: dict[str, Any]) -> None:
    assert missed(found) == []
    assert len(found["bars"]) == 2 * 2 * 3 + 2 * 6 + 5
    assert all(set(bar) == {"bar", "measured", "limit", "met"} for bar in found["bars"])


@pytest.mark.parametrize(
    ("place", "value", "culprit"),
    [
        ("recommend.workers.1.ratio_to_floor.median", 4.49, "recommend, 1 worker: times the floor"),
        ("feedback.workers.2.ratio_to_floor.median", 2.99, "feedback, 2 workers: times the floor"),
        ("recommend.workers.1.ratio_to_alternative.min", 0.99, "times the alternative"),
        ("recommend.workers.2.discreet.p99_ms", 12.01, "recommend, 2 workers: p99"),
        ("recommend.workers.1.discreet.dropped", 1, "recommend, 1 worker: p99"),
        ("feedback.workers.1.discreet.failed_share", 0.01, "feedback, 1 worker: p99"),
        ("batch.decisions_per_second", 39_999, "decisions a second"),
        ("families.kinds.p-rec.feedback.ratio_to_floor.median", 2.49, "p-rec, feedback: times"),
        ("families.kinds.p-rec.recommend.p99_ms", 12.01, "p-rec, recommend: p99"),
        ("families.kinds.p-rec.feedback.failed_share", 0.01, "p-rec, feedback: p99"),
        ("families.kinds.p-rec.batch.ratio_to_floor.median", 2.49, "p-rec, batches: times"),
        ("families.kinds.p-rec.batch.failed", 1, "p-rec, batches: entries that failed"),
        ("scaling.arms.growth", 1.5, "10 to 1,000 arms"),
        ("scaling.cells.growth", 1.5, "1 to 1,023 cells"),
        ("scaling.clients.growth", 1.2, "1 to 1,000,000 clients"),
        ("memory.ledger_bytes", 200.1, "bytes of a ledger"),
    ],
)
def test_a_missed_bar_is_found_and_marked(
    found: dict[str, Any], place: str, value: float, culprit: str
) -> None:
    *way, last = place.split(".")
    inner = found
    for step in way:
        inner = inner[step]
    inner[last] = value
    (wrong,) = missed(found)
    assert culprit in wrong
    found["bars"] = report.bars(found)
    assert [line for line in report.table(found).splitlines() if "MISSED" in line and wrong in line]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("recommend.workers.1.ratio_to_floor.median", 4.5),
        ("recommend.workers.1.discreet.p99_ms", 12.0),
        ("batch.decisions_per_second", 40_000),
        ("scaling.arms.growth", 1.49),
        ("memory.ledger_bytes", 200),
    ],
)
def test_just_good_enough_is_good_enough(found: dict[str, Any], place: str, value: float) -> None:
    *way, last = place.split(".")
    inner = found
    for step in way:
        inner = inner[step]
    inner[last] = value
    assert missed(found) == []


def test_the_table_shows_everything(found: dict[str, Any]) -> None:
    text = report.table(found)
    assert "fsync always" in text
    assert "5.00 times the floor (4.90 to 5.10)" in text
    assert "45,000 decisions a second" in text
    assert "0 of 15,000 failed" in text
    assert "1,023: 260" in text
    assert "block of sums (a cell), by arms" in text
    assert "spend of 1, appendfsync always" in text
    assert "coredis" in text
    assert "uvicorn" in text
    assert "166,446" in text
    assert "0.80 (0.70 to 0.90), 0.80 (0.70 to 0.90)" in text
    assert "p-dap" in text
    assert "MISSED" not in text
    for service in report.SERVICES:
        assert text.count(f"  {service:12}") == 4


@pytest.mark.parametrize("section", bench.SECTIONS)
def test_a_section_alone_can_be_shown_and_drawn(
    found: dict[str, Any], section: str, tmp_path: Path
) -> None:
    alone = {"machine": found["machine"], section: found[section]}
    alone["bars"] = report.bars(alone)
    assert report.table(alone)
    chart.draw(alone, tmp_path / "alone.svg")


def test_the_chart_is_an_svg_with_five_panels(found: dict[str, Any], tmp_path: Path) -> None:
    assert chart.can_draw()
    for name in ("one.svg", "two.svg"):
        chart.draw(found, tmp_path / name)
    drawn = (tmp_path / "one.svg").read_text()
    assert drawn == (tmp_path / "two.svg").read_text()
    root = ElementTree.fromstring(drawn)
    groups = [one.get("id", "") for one in root.iter("{http://www.w3.org/2000/svg}g")]
    assert len([one for one in groups if one.startswith("axes_")]) == 5


def test_feedback_that_came_twice_is_shown(found: dict[str, Any]) -> None:
    assert "came twice" not in report.table(found)
    found["feedback"]["workers"]["2"]["alternative"]["repeated"] = 349
    assert "349 of all feedback came twice" in report.table(found)


def test_only_reads_sections_in_the_order_of_the_run() -> None:
    assert bench.sections_of("memory, batch") == ("batch", "memory")
    assert bench.arguments().parse_args([]).only is None
    assert set(bench.QUICK_SECTIONS) < set(bench.SECTIONS)
    for wrong in ("", "batch,speed"):
        with pytest.raises(argparse.ArgumentTypeError):
            bench.sections_of(wrong)


def test_a_saved_run_is_shown_without_measuring(
    found: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    saved, picture = tmp_path / "run.json", tmp_path / "run.svg"
    found["batch"]["decisions_per_second"] = 1
    saved.write_text(json.dumps(found))
    monkeypatch.setattr(bench, "measured", pytest.fail)
    monkeypatch.setattr(sys, "argv", ["bench", "--from", str(saved), "--chart", str(picture)])
    assert bench.main() == 0
    assert "MISSED  batch" in capsys.readouterr().out
    assert picture.read_text().startswith("<?xml")
    monkeypatch.setattr(sys, "argv", ["bench", "--from", str(saved), "--json"])
    assert bench.main() == 0
    assert json.loads(capsys.readouterr().out)["batch"]["decisions_per_second"] == 1


def test_a_ratio_is_the_median_of_the_turns_and_not_of_the_rates() -> None:
    # Noise that falls on whole turns moves the rates, and leaves the ratios alone.
    ours = [Sample(rate, 1, 1) for rate in (3_000, 300, 600)]
    theirs = [Sample(rate, 1, 1) for rate in (1_000, 100, 300)]
    assert compare.ratio(ours, theirs) == {"median": 3.0, "min": 2.0, "max": 3.0}


def test_discreet_is_everybodys_neighbour_and_the_order_turns_round() -> None:
    assert [compare.order(turn)[1] for turn in range(3)] == ["discreet"] * 3
    assert list(compare.order(0)) == list(compare.order(1))[::-1]


def test_variants_are_compared_with_the_first_of_them_turn_by_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The machine is twice as fast in the second turn.
    runs = {"first": [(1_000, 200), (2_000, 100)], "other": [(500, 300), (1_000, 150)]}
    rates = {name: [Sample(rate, cpu, rate) for rate, cpu in turns] for name, turns in runs.items()}
    monkeypatch.setattr(compare, "throughput_turns", lambda *arguments, **named: rates)
    targets = {name: Target(name, "http://127.0.0.1:1", (1,)) for name in rates}
    found = compare.compare_variants(
        targets, "recommend", seconds=1, rounds=2, say=lambda text: None
    )
    assert found["first"]["rps_ratio"]["median"] == 1.0
    assert found["other"]["rps_ratio"] == {"median": 0.5, "min": 0.5, "max": 0.5}
    assert found["other"]["cpu_ratio"]["median"] == 1.5
    assert (found["other"]["rps"], found["other"]["cpu_us"]) == (750, 225)


def test_a_batch_is_the_better_connections_middle_turn_and_not_its_best() -> None:
    samples = {
        1: [(9_000.0, 50.0), (8_000.0, 51.0)],
        2: [(1.0, 1.0), (9_500.0, 60.0), (99_000.0, 2.0)],
    }
    found = batches.summary(samples)
    assert (found["decisions_per_second"], found["cpu_us_per_decision"]) == (9_500, 60.0)
    assert found["in_flight"]["1"] == {"decisions_per_second": 8_000, "cpu_us_per_decision": 51.0}


def test_growth_is_from_the_smallest_to_the_largest_within_a_turn() -> None:
    turns = [
        {10: Sample(1, 100, 1), 1_000: Sample(1, 120, 1)},
        {1_000: Sample(1, 600, 1), 10: Sample(1, 500, 1)},
    ]
    assert growth.summary(turns)["growth"] == 1.2
    assert list(growth.summary(turns)["cpu_us"]) == ["10", "1000"]
