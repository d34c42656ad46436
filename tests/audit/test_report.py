"""A report: JSON for programs, tables for people, and a verdict that leaves nothing out."""

import io
import json
import math
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from discreet.audit.claims import AuditRun, Claim, Finding, Method, PlantedFault, Scope
from discreet.audit.report import ExaminedClaim, ExaminedFault, Report, table_console


def _never(_: AuditRun) -> Finding:
    raise AssertionError("a report examines nothing")


CLAIM = Claim("a shortlist", Method.EXACT, _never)
LOOP = Claim("a closed loop", Method.LOWER_BOUND, _never, Scope.PERSON)
HELD = ExaminedClaim(CLAIM, Finding(1.0, 0.5, holds=True))
DOUBTED = ExaminedClaim(LOOP, Finding(1.0, math.inf, holds=False))
CAUGHT = ExaminedFault(PlantedFault("half the noise", _never), caught=True)
OVERLOOKED = ExaminedFault(PlantedFault("no noise", _never, Scope.PERSON), caught=False)
GOOD = Report([HELD], [CAUGHT])


def _refuse(constant: str) -> float:
    raise AssertionError(f"{constant} is no JSON number")


def test_it_passes_if_all_is_well() -> None:
    assert GOOD.passed


@pytest.mark.parametrize(
    "report",
    [
        replace(GOOD, claims=[HELD, DOUBTED]),
        replace(GOOD, planted=[CAUGHT, OVERLOOKED]),
        replace(GOOD, unaudited=["a-sixth"]),
    ],
    ids=["a claim doubted", "a fault overlooked", "a family left out"],
)
def test_it_fails_for_any_one_reason(report: Report) -> None:
    assert not report.passed


def test_json_says_everything_in_finite_numbers() -> None:
    report = Report([HELD, DOUBTED], [CAUGHT, OVERLOOKED], ["a-sixth"])
    assert json.loads(report.as_json(), parse_constant=_refuse) == {
        "claims": [
            {
                "name": "a shortlist",
                "scope": "release",
                "claimed": 1.0,
                "measured": 0.5,
                "method": "exact",
                "holds": True,
            },
            {
                "name": "a closed loop",
                "scope": "person",
                "claimed": 1.0,
                "measured": sys.float_info.max,
                "method": "lower-bound",
                "holds": False,
            },
        ],
        "planted": [
            {"name": "half the noise", "scope": "release", "caught": True},
            {"name": "no noise", "scope": "person", "caught": False},
        ],
        "unaudited": ["a-sixth"],
    }


def _printed(report: Report) -> str:
    output = io.StringIO()
    report.print(Console(file=output, width=120))
    return output.getvalue()


def test_tables_name_every_row_and_mark_what_failed() -> None:
    shown = _printed(Report([HELD, DOUBTED], [CAUGHT, OVERLOOKED], ["a-sixth"]))
    lines = shown.splitlines()
    for name, mark in (
        ("a shortlist", "yes"),
        ("a closed loop", "NO"),
        ("half the noise", "yes"),
        ("no noise", "NO"),
    ):
        (row,) = (line for line in lines if name in line)
        assert mark in row
    assert "a-sixth has no audit" in shown
    assert "NO" not in _printed(GOOD)


def test_the_verdict_counts_one_release_and_the_whole_person_apart() -> None:
    verdict = Report([HELD, DOUBTED], [CAUGHT, OVERLOOKED]).verdict()
    assert "release: 1 of 1 claims hold, 1 of 1 planted faults caught." in verdict
    assert "person: 0 of 1 claims hold, 0 of 1 planted faults caught." in verdict
    assert "1e-06" in verdict


def test_a_table_in_a_log_is_wide_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert table_console().width == 120
