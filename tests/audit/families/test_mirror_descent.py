"""The audit of sparse mirror descent: it passes on what is shipped and says no to its faults."""

import pytest

from discreet.audit.claims import AuditRun, Claim, PlantedFault
from discreet.audit.families.mirror_descent import hard_records, mirror_checks, mirror_faults
from discreet.families.mirror_descent.sparse import norms, on_grid


@pytest.mark.parametrize("check", list(mirror_checks()), ids=lambda check: check.name)
def test_every_claim_holds(check: Claim) -> None:
    assert check.examine(AuditRun(quick=True)).holds


@pytest.mark.parametrize("fault", list(mirror_faults()), ids=lambda fault: fault.name)
def test_every_fault_is_caught(fault: PlantedFault) -> None:
    assert not fault.examine(AuditRun(quick=True)).holds


def test_what_is_measured_is_close_to_what_is_claimed() -> None:
    """Otherwise the noise would be more than the promise needs."""
    for check in mirror_checks():
        found = check.examine(AuditRun(quick=True))
        assert found.measured > 0.9 * found.claimed, check.name


def test_the_records_are_hard() -> None:
    lengths = norms(hard_records(2_000))
    assert (lengths < 1e-3).any()
    assert (lengths > 1e3).any()
    near = abs(lengths - 1) < 1e-10
    assert near.sum() > 500
    assert norms(on_grid(hard_records(2_000), bound=1.0)).max() <= 1
