"""A run of the audit: nothing is left out, what breaks down fails, and the exit code says so."""

import io
import json
import math
import sys
from collections.abc import Callable, Sequence

import pytest

from discreet.audit import discovery
from discreet.audit.claims import AuditRun, Claim, Finding, Method, PlantedFault
from discreet.audit.command import audit, run_audit

Plant = Callable[..., None]


def _true(_: AuditRun) -> Finding:
    return Finding(1.0, 0.5, holds=True)


def _false(_: AuditRun) -> Finding:
    return Finding(1.0, math.inf, holds=False)


def _breaks(_: AuditRun) -> Finding:
    raise ZeroDivisionError("nothing to divide by")


TRUE = Claim("something true", Method.EXACT, _true)
CAUGHT = PlantedFault("something broken", _false)


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Plant:
    """Let a run find these claims and faults and no others."""

    def planted(
        claims: Sequence[Claim], faults: Sequence[PlantedFault], unaudited: Sequence[str] = ()
    ) -> None:
        monkeypatch.setattr(discovery, "all_claims", lambda: iter(claims))
        monkeypatch.setattr(discovery, "all_faults", lambda: iter(faults))
        monkeypatch.setattr(discovery, "unaudited", lambda: list(unaudited))

    return planted


@pytest.mark.parametrize(
    ("claims", "faults", "unaudited", "code"),
    [
        ([TRUE], [CAUGHT], [], 0),
        ([TRUE, Claim("something false", Method.FIT, _false)], [CAUGHT], [], 1),
        ([TRUE, Claim("something unexaminable", Method.FIT, _breaks)], [CAUGHT], [], 1),
        ([TRUE], [CAUGHT, PlantedFault("overlooked", _true)], [], 1),
        ([TRUE], [CAUGHT, PlantedFault("caught only by breaking down", _breaks)], [], 1),
        ([TRUE], [CAUGHT], ["a-sixth"], 1),
    ],
)
def test_the_exit_code_is_0_only_if_everything_is_well(
    claims: list[Claim],
    faults: list[PlantedFault],
    unaudited: list[str],
    code: int,
    plant: Plant,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plant(claims, faults, unaudited)
    assert run_audit(quick=True, as_json=True) == code
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert [row["name"] for row in document["claims"]] == [claim.name for claim in claims]
    assert [row["name"] for row in document["planted"]] == [fault.name for fault in faults]
    assert document["unaudited"] == unaudited
    assert ("could not be examined" in captured.err) == any(
        row.examine is _breaks for row in (*claims, *faults)
    )


def test_what_breaks_down_does_not_stop_what_follows(capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []
    report = audit(
        AuditRun(quick=True),
        claims=[Claim("unexaminable", Method.FIT, _breaks), TRUE],
        faults=[PlantedFault("broken down", _breaks), CAUGHT],
        progress=shown.append,
    )
    assert [row.finding.holds for row in report.claims] == [False, True]
    assert [row.caught for row in report.planted] == [False, True]
    assert shown == ["unexaminable", "something true", "broken down", "something broken"]
    assert "unexaminable: could not be examined: ZeroDivisionError" in capsys.readouterr().err


def test_all_examinations_share_one_runs_luck() -> None:
    run = AuditRun(quick=True)

    def sampled(given: AuditRun) -> Finding:
        given.allowance.share()
        return _true(given)

    claims = [Claim(name, Method.FIT, sampled) for name in "abc"]
    audit(run, claims=claims, faults=[])
    assert run.allowance.taken == 3


@pytest.mark.parametrize("quick", [True, False])
def test_the_run_is_as_quick_as_was_asked(quick: bool, plant: Plant) -> None:
    seen: list[bool] = []

    def examine(run: AuditRun) -> Finding:
        seen.append(run.quick)
        return _true(run)

    plant([Claim("size", Method.EXACT, examine)], [])
    run_audit(quick=quick, as_json=True)
    assert seen == [quick]


def test_only_what_has_the_text_in_its_name_is_examined(
    plant: Plant, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Claim("left out", Method.EXACT, _false)
    plant([TRUE, other], [CAUGHT, PlantedFault("overlooked", _true)], ["a-sixth"])
    assert run_audit(quick=True, as_json=True, only="something") == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in document["claims"]] == ["something true"]
    assert [row["name"] for row in document["planted"]] == ["something broken"]
    assert document["unaudited"] == []


def test_a_name_that_nothing_has_is_a_failure(
    plant: Plant, capsys: pytest.CaptureFixture[str]
) -> None:
    plant([TRUE], [CAUGHT])
    assert run_audit(quick=True, as_json=True, only="somthing") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "somthing" in captured.err


def test_people_get_tables_and_a_verdict(plant: Plant, capsys: pytest.CaptureFixture[str]) -> None:
    plant([TRUE], [CAUGHT, PlantedFault("overlooked", _true)])
    assert run_audit(quick=True, as_json=False) == 1
    captured = capsys.readouterr()
    assert "something true" in captured.out
    assert "1 of 1 claims hold, 1 of 2 planted faults caught" in captured.out
    assert captured.err == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_progress_on_standard_error(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant([TRUE], [CAUGHT])
    terminal, output = Terminal(), io.StringIO()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(sys, "stdout", output)
    assert run_audit(quick=True, as_json=True) == 0
    assert "2/2" in terminal.getvalue()
    assert set(json.loads(output.getvalue())) == {"claims", "planted", "unaudited"}
