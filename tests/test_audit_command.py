"""`discreet audit`: all claims hold, all faults are caught, and it can say no.

The whole quick audit runs once, with the operating system's noise. It doubts a true claim with
probability below 1e-6 and overlooks one of its sampled faults with probability below 1e-9.
"""

import io
import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from discreet.audit.mechanisms.__main__ import main
from discreet.audit.mechanisms.books import book_checks
from discreet.audit.mechanisms.claims import Bench, Check, Fault, Finding, Method

from discreet import cli
from discreet.audit.mechanisms import catalogue, command
from discreet.audit.mechanisms.choices import exponential_checks, shortlist_checks
from discreet.audit.mechanisms.numbers import number_checks, sampler_checks
from discreet.audit.mechanisms.sums import sum_checks
from discreet.privacy import choice, pricing
from discreet.privacy.noise import SystemNoise
from discreet.privacy.numeric import LaplaceMechanism
from discreet.research.continual import BinaryTree

REQUIRED = (
    "forgotten factor 2",
    "halved sensitivity",
    "float Laplace with its tell-tale low bits",
    "reused noise",
    "permute-and-flip priced as bounded range",
)


@dataclass(frozen=True)
class Outcome:
    code: int
    output: str

    @property
    def document(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.output, parse_constant=_refuse)
        return parsed


def _refuse(constant: str) -> float:
    raise AssertionError(f"{constant} is no JSON number")


@pytest.fixture(scope="module")
def quick() -> Outcome:
    """The audit as a user runs it."""
    output = io.StringIO()
    with redirect_stdout(output):
        code = cli.main(["audit", "--quick", "--json"])
    return Outcome(code, output.getvalue())


@pytest.fixture
def examine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """Run the command on a few claims: those of a provider whose names contain a text."""

    def run(provider: Callable[[], Iterator[Check]], part: str = "") -> Outcome:
        chosen = [check for check in provider() if part in check.name]
        assert chosen
        monkeypatch.setattr(catalogue, "CHECKS", (lambda: chosen,))
        monkeypatch.setattr(catalogue, "FAULTS", ())
        code = command.run(quick=True, as_json=True)
        return Outcome(code, capsys.readouterr().out)

    return run


@pytest.mark.timeout(600)
def test_every_claim_holds(quick: Outcome) -> None:
    doubted = [claim for claim in quick.document["claims"] if not claim["holds"]]
    assert doubted == []
    assert len(quick.document["claims"]) > 100


@pytest.mark.timeout(600)
def test_every_planted_fault_is_caught(quick: Outcome) -> None:
    planted = quick.document["planted"]
    assert [fault["name"] for fault in planted if not fault["caught"]] == []
    for required in REQUIRED:
        assert any(required in fault["name"] for fault in planted)


@pytest.mark.timeout(600)
def test_the_document_has_exactly_the_promised_shape(quick: Outcome) -> None:
    document = quick.document
    assert quick.code == 0
    assert set(document) == {"claims", "planted"}
    for claim in document["claims"]:
        assert set(claim) == {"name", "claimed", "measured", "method", "holds"}
        assert claim["method"] in ("exact", "lower-bound", "fit")
        assert math.isfinite(claim["claimed"])
        assert math.isfinite(claim["measured"])
        assert claim["holds"] is True
        assert claim["measured"] <= claim["claimed"] * (1 + 1e-12)
    for fault in document["planted"]:
        assert set(fault) == {"name", "caught"}
    assert {claim["method"] for claim in document["claims"]} == {"exact", "lower-bound", "fit"}


def _failed(outcome: Outcome) -> list[str]:
    return [claim["name"] for claim in outcome.document["claims"] if not claim["holds"]]


def test_a_shortlist_a_hair_too_sharp_is_refused(
    examine: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert examine(shortlist_checks, "shortlist of 2, epsilon 1:").code == 0
    honest = choice.exp_below
    monkeypatch.setattr(
        choice, "exp_below", lambda exponent, bits: honest(exponent + Fraction(1, 10**15), bits)
    )
    outcome = examine(shortlist_checks, "shortlist of 2, epsilon 1:")
    assert outcome.code == 1
    assert "shortlist of 2, epsilon 1: epsilon" in _failed(outcome)


def test_a_broken_table_is_refused(
    examine: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = choice.weight_table
    monkeypatch.setattr(
        choice, "weight_table", lambda epsilon, *rest, **more: honest(1.01 * epsilon, *rest, **more)
    )
    outcome = examine(exponential_checks, "with a base measure, epsilon 1:")
    assert outcome.code == 1
    assert _failed(outcome) == ["exponential choice with a base measure, epsilon 1: epsilon"]


def test_a_cheaper_price_is_refused(
    examine: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Randomised response at the price of bounded range."""
    prices = dict(pricing._PRICES)
    prices[choice.RandomisedResponse] = prices[choice.ExponentialChoice]
    monkeypatch.setattr(pricing, "_PRICES", prices)
    pricing._cost_of.cache_clear()
    try:
        outcome = examine(shortlist_checks, "shortlist of 2, epsilon 1:")
        assert outcome.code == 1
        assert _failed(outcome) == ["shortlist of 2, epsilon 1: rho"]
        assert examine(book_checks, "largest shortfall").code == 1
    finally:
        pricing._cost_of.cache_clear()


def test_a_sampler_thirty_per_cent_off_is_refused(
    examine: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = SystemNoise.discrete_laplace
    monkeypatch.setattr(
        SystemNoise,
        "discrete_laplace",
        lambda self, *, scale, size: honest(self, scale=1.3 * scale, size=size),
    )
    outcome = examine(sampler_checks, "discrete Laplace sampler, scale 3")
    assert outcome.code == 1


def test_a_forgotten_rounding_is_refused(
    examine: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = LaplaceMechanism.event
    monkeypatch.setattr(
        LaplaceMechanism,
        "event",
        lambda self, *, size=1, integers=False: honest(self, integers=True),
    )
    assert examine(number_checks, "Laplace noise on 3 numbers, steps of 0.25").code == 1


def test_a_tree_with_a_level_too_few_is_refused(
    examine: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BinaryTree, "most_nodes", property(lambda self: self.height - 1))
    outcome = examine(sum_checks, "binary tree, Gaussian sum, steps of 0.25")
    assert outcome.code == 1


def _only(monkeypatch: pytest.MonkeyPatch, *, checks: list[Check], faults: list[Fault]) -> None:
    monkeypatch.setattr(catalogue, "CHECKS", (lambda: checks,))
    monkeypatch.setattr(catalogue, "FAULTS", (lambda: faults,))


def _true(_: Bench) -> Finding:
    return Finding(1.0, 0.5, holds=True)


def _false(_: Bench) -> Finding:
    return Finding(1.0, math.inf, holds=False)


def _breaks(_: Bench) -> Finding:
    raise ZeroDivisionError("nothing to divide by")


TRUE = Check("something true", Method.EXACT, _true)
CAUGHT = Fault("something broken", _false)


@pytest.mark.parametrize(
    ("checks", "faults", "code"),
    [
        ([TRUE], [CAUGHT], 0),
        ([TRUE, Check("something false", Method.FIT, _false)], [CAUGHT], 1),
        ([TRUE, Check("something unexaminable", Method.FIT, _breaks)], [CAUGHT], 1),
        ([TRUE], [CAUGHT, Fault("overlooked", _true)], 1),
        ([TRUE], [CAUGHT, Fault("caught only by breaking down", _breaks)], 1),
    ],
)
def test_the_exit_code_is_0_only_if_everything_is_well(
    checks: list[Check],
    faults: list[Fault],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _only(monkeypatch, checks=checks, faults=faults)
    assert command.run(quick=True, as_json=True) == code
    captured = capsys.readouterr()
    assert len(json.loads(captured.out, parse_constant=_refuse)["claims"]) == len(checks)
    assert ("could not be examined" in captured.err) == any(
        row.examine is _breaks for row in (*checks, *faults)
    )


def test_claims_of_higher_layers_are_examined_as_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _only(monkeypatch, checks=[TRUE], faults=[CAUGHT])
    further = Check("a family's own claim", Method.EXACT, _false)
    assert command.run(quick=True, as_json=True, further=[further]) == 1
    assert "a family's own claim" in capsys.readouterr().out


def test_people_get_tables_and_a_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _only(monkeypatch, checks=[TRUE], faults=[CAUGHT, Fault("overlooked", _true)])
    assert command.run(quick=True, as_json=False) == 1
    captured = capsys.readouterr()
    assert "something true" in captured.out
    assert "1 of 1 claims hold, 1 of 2 planted faults caught" in captured.out
    assert captured.err == ""


def test_the_audit_runs_without_the_rest_of_the_service(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _only(monkeypatch, checks=[TRUE], faults=[CAUGHT])
    monkeypatch.setattr(sys, "argv", ["audit", "--quick", "--json"])
    assert main() == 0
    assert set(json.loads(capsys.readouterr().out)) == {"claims", "planted"}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_progress_on_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    _only(monkeypatch, checks=[TRUE], faults=[CAUGHT])
    terminal, output = Terminal(), io.StringIO()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(sys, "stdout", output)
    assert command.run(quick=True, as_json=True) == 0
    assert "2/2" in terminal.getvalue()
    assert set(json.loads(output.getvalue())) == {"claims", "planted"}
