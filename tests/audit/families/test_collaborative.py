"""The audit of profile perturbation: it passes on what is shipped and says no to its faults."""

import pytest

from discreet.audit.claims import AuditRun, Claim, PlantedFault
from discreet.audit.families.collaborative import profile_checks, profile_faults


@pytest.mark.parametrize("check", list(profile_checks()), ids=lambda check: check.name)
def test_every_claim_holds(check: Claim) -> None:
    found = check.examine(AuditRun(quick=True))
    assert found.holds
    assert 0 < found.measured <= found.claimed == 0.7


@pytest.mark.parametrize("fault", list(profile_faults()), ids=lambda fault: fault.name)
def test_every_fault_is_caught(fault: PlantedFault) -> None:
    assert not fault.examine(AuditRun(quick=True)).holds
