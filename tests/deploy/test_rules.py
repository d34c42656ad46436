"""Recording rules and alerts: valid, each alert tested both ways, each with a runbook."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import house
from tests.deploy import queries
from tests.house import ROOT
from tests.requirements import need

SCENARIOS = sorted((ROOT / "tests" / "deploy" / "rules").glob("*.yaml"))
ALERTS = {rule["alert"]: rule for rule in queries.rules() if "alert" in rule}


def _promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [need("promtool"), *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        env=os.environ | {"GOGC": "800"},  # a quarter less CPU, for some memory
    )


@pytest.mark.needs("promtool")
def test_promtool_reads_the_rules() -> None:
    answer = _promtool("check", "rules", "--lint=all", "--lint-fatal", queries.RULES)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def _scenario(path: Path, folder: Path, rules: str | None = None) -> Path:
    """Put a scenario beside the rules that it is about."""
    (folder / "rules.yaml").write_text(rules or queries.RULES.read_text())
    placed = folder / path.name
    placed.write_text(path.read_text().replace("[RULES]", "[rules.yaml]"))
    return placed


@pytest.mark.needs("promtool")
@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_alerts_fire_when_they_should_and_only_then(path: Path, tmp_path: Path) -> None:
    answer = _promtool("test", "rules", _scenario(path, tmp_path))
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.needs("promtool")
def test_a_rule_that_is_wrong_would_be_found(tmp_path: Path) -> None:
    wrong = queries.RULES.read_text().replace(
        "(discreet_store_up) == 0", "(discreet_store_up) == 1"
    )
    (hours,) = [path for path in SCENARIOS if path.stem == "hours"]
    placed = _scenario(hours, tmp_path, wrong)
    scenario = yaml.safe_load(placed.read_text())
    scenario["tests"] = [
        test for test in scenario["tests"] if "discreet_store_up" in str(test["input_series"])
    ]
    placed.write_text(yaml.safe_dump(scenario))
    answer = _promtool("test", "rules", placed)
    assert answer.returncode != 0
    assert "DiscreetStoreDown" in answer.stdout + answer.stderr


def _cases() -> list[dict[str, Any]]:
    return [
        case
        for path in SCENARIOS
        for test in yaml.safe_load(path.read_text())["tests"]
        for case in test.get("alert_rule_test", ())
    ]


def test_every_alert_is_tested_both_ways() -> None:
    firing = {case["alertname"] for case in _cases() if case["exp_alerts"]}
    silent = {case["alertname"] for case in _cases() if not case["exp_alerts"]}
    assert (firing, silent) == (set(ALERTS), set(ALERTS))
    assert len(ALERTS) >= 15


def test_every_alert_says_what_to_do() -> None:
    headings = house.anchors((ROOT / "docs" / "operations.md").read_text())
    for name, alert in ALERTS.items():
        assert alert["labels"]["severity"] in ("info", "warning", "critical")
        notes = alert["annotations"]
        assert {"summary", "description", "runbook_url"} <= set(notes), name
        page, _, anchor = notes["runbook_url"].partition("#")
        assert (page, anchor) == ("docs/operations.md", name.lower())
        assert anchor in headings, f"docs/operations.md has no runbook for {name}"


def test_every_runbook_has_its_alert() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    assert set(re.findall(r"^#+ (Discreet[A-Z]\w+)$", page, re.MULTILINE)) == set(ALERTS)


def test_rules_read_series_that_exist() -> None:
    known = queries.served_series() | {
        rule["record"] for rule in queries.rules() if "record" in rule
    }
    for shipped in queries.of_rules() + queries.of_alerts():
        read = {selector.name for selector in queries.selectors(shipped.expr)}
        assert read, shipped
        assert read <= known, shipped
