"""`discreet audit`: all claims hold, and it can say no.

The whole quick audit runs once: its claims here, its planted faults in `test_audit_faults.py`, side
by side. Tests of its parts do not examine every claim again, and `tests/audit/test_discovery.py`
sees that none is left out. It runs with the operating system's noise, doubts a true claim with
probability below 1e-6 and overlooks one of its sampled faults with probability below 1e-9.
"""

import io
import json
import math
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

from discreet import cli
from discreet.audit import discovery
from discreet.audit.claims import Claim
from discreet.audit.command import run_audit
from discreet.audit.mechanisms import choices, ledgers, numbers, stores
from discreet.privacy import choice, pricing
from discreet.privacy.charges import Charge
from discreet.privacy.noise import SystemNoise
from discreet.privacy.numeric import LaplaceMechanism
from discreet.state import memory_sums

SHORTLIST = "shortlist of 2, epsilon 1:"


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


def quick_audit(without: str) -> Outcome:
    """Run the audit as a user does, but for one half of it."""
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(output):
        patch.setattr(discovery, without, lambda: iter(()))
        code = cli.main(["audit", "--quick", "--json"])
    return Outcome(code, output.getvalue())


@pytest.fixture(scope="module")
def quick() -> Outcome:
    return quick_audit(without="all_faults")


@pytest.fixture
def examine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """Run the command on a few claims: those of a provider whose names contain a text."""

    def run(provider: Callable[[], Iterator[Claim]], part: str = "") -> Outcome:
        chosen = [claim for claim in provider() if part in claim.name]
        assert chosen
        monkeypatch.setattr(discovery, "all_claims", lambda: iter(chosen))
        monkeypatch.setattr(discovery, "all_faults", lambda: iter(()))
        monkeypatch.setattr(discovery, "unaudited", list)
        code = run_audit(quick=True, as_json=True)
        return Outcome(code, capsys.readouterr().out)

    return run


@pytest.mark.timeout(5400)
def test_every_claim_holds(quick: Outcome) -> None:
    doubted = [claim for claim in quick.document["claims"] if not claim["holds"]]
    assert doubted == []
    assert len(quick.document["claims"]) > 100


@pytest.mark.timeout(5400)
def test_the_document_has_exactly_the_promised_shape(quick: Outcome) -> None:
    document = quick.document
    assert quick.code == 0
    assert set(document) == {"claims", "planted", "unaudited"}
    assert document["unaudited"] == []
    for claim in document["claims"]:
        assert set(claim) == {"name", "scope", "claimed", "measured", "method", "holds"}
        assert claim["method"] in ("exact", "lower-bound", "fit")
        assert math.isfinite(claim["claimed"])
        assert math.isfinite(claim["measured"])
        assert claim["holds"] is True
        assert claim["measured"] <= claim["claimed"] * (1 + 1e-12)
    assert {claim["scope"] for claim in document["claims"]} == {"release", "person"}
    assert {claim["method"] for claim in document["claims"]} == {"exact", "lower-bound", "fit"}


def _failed(outcome: Outcome) -> list[str]:
    return [claim["name"] for claim in outcome.document["claims"] if not claim["holds"]]


def test_a_shortlist_a_hair_too_sharp_is_refused(
    examine: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert examine(choices.claims, SHORTLIST).code == 0
    honest = choice.exp_below
    monkeypatch.setattr(
        choice, "exp_below", lambda exponent, bits: honest(exponent + Fraction(1, 10**15), bits)
    )
    outcome = examine(choices.claims, SHORTLIST)
    assert outcome.code == 1
    assert "shortlist of 2, epsilon 1: epsilon" in _failed(outcome)


def test_a_broken_table_is_refused(
    examine: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    base = "with a base measure, epsilon 1:"
    assert examine(choices.claims, base).code == 0
    honest = choice.weight_table
    monkeypatch.setattr(
        choice, "weight_table", lambda epsilon, *rest, **more: honest(1.01 * epsilon, *rest, **more)
    )
    outcome = examine(choices.claims, base)
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
        outcome = examine(choices.claims, SHORTLIST)
        assert outcome.code == 1
        assert _failed(outcome) == ["shortlist of 2, epsilon 1: rho"]
        assert examine(ledgers.claims, "largest shortfall").code == 1
    finally:
        pricing._cost_of.cache_clear()


def test_a_sampler_thirty_per_cent_off_is_refused(
    examine: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = "discrete Laplace sampler, scale 3"
    assert examine(numbers.claims, sampler).code == 0
    honest = SystemNoise.discrete_laplace
    monkeypatch.setattr(
        SystemNoise,
        "discrete_laplace",
        lambda self, *, scale, size: honest(self, scale=1.3 * scale, size=size),
    )
    assert examine(numbers.claims, sampler).code == 1


def test_a_forgotten_rounding_is_refused(
    examine: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    rounded = "Laplace noise on 3 numbers, steps of 0.25"
    assert examine(numbers.claims, rounded).code == 0
    honest = LaplaceMechanism.event
    monkeypatch.setattr(
        LaplaceMechanism,
        "event",
        lambda self, *, size=1, integers=False: honest(self, integers=True),
    )
    assert examine(numbers.claims, rounded).code == 1


def test_a_store_that_charges_every_record_like_the_first_is_refused(
    examine: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert examine(stores.claims, "store, memory: rho short").code == 0

    def like_the_first(charge: Charge, count: int) -> Charge:
        return charge

    monkeypatch.setattr(memory_sums, "nth_price", like_the_first)
    assert examine(stores.claims, "store, memory: rho short").code == 1
