"""What an examination is given and what it returns: its luck, its size, finite numbers."""

import json
import math
import sys

import pytest

from discreet.audit.claims import (
    FALSE_ALARM,
    SHARES,
    Allowance,
    AuditRun,
    Claim,
    Finding,
    Method,
    PlantedFault,
    Scope,
    finite,
)
from discreet.privacy.noise import SystemNoise


def _examine(_: AuditRun) -> Finding:
    return Finding(1.0, 0.5, holds=True)


def test_luck_cannot_be_overspent() -> None:
    allowance = Allowance()
    assert math.fsum(allowance.share() for _ in range(SHARES)) == pytest.approx(FALSE_ALARM)
    with pytest.raises(RuntimeError, match="false-alarm"):
        allowance.share()


def test_runs_do_not_share_their_luck() -> None:
    first, second = AuditRun(quick=True), AuditRun(quick=True)
    first.allowance.share()
    assert (first.allowance.taken, second.allowance.taken) == (1, 0)


def test_a_run_draws_production_noise_unless_it_is_given_another() -> None:
    assert type(AuditRun(quick=False).noise) is SystemNoise


@pytest.mark.parametrize(("quick", "size"), [(True, 3), (False, 70)])
def test_the_size_is_the_runs(quick: bool, size: int) -> None:
    assert AuditRun(quick=quick).size(quick=3, full=70) == size


def test_claims_are_about_one_release_unless_they_say_otherwise() -> None:
    assert Claim("a", Method.EXACT, _examine).scope is Scope.RELEASE
    assert PlantedFault("b", _examine).scope is Scope.RELEASE


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_every_number_can_be_written_as_json(value: float) -> None:
    assert abs(finite(value)) == sys.float_info.max
    assert finite(value) < 0 or value != -math.inf
    json.dumps(finite(value), allow_nan=False)


def test_numbers_that_are_finite_stay_as_they_are() -> None:
    assert [finite(value) for value in (0.0, -1.5, 1e300)] == [0.0, -1.5, 1e300]
