"""The audit of federated clusters: it passes on what is shipped and says no to its faults."""

import pytest

from discreet.audit.claims import AuditRun, Claim, PlantedFault
from discreet.audit.families.fclub import cluster_checks, cluster_faults


@pytest.mark.parametrize("check", list(cluster_checks()), ids=lambda check: check.name)
def test_every_claim_holds(check: Claim) -> None:
    finding = check.examine(AuditRun(quick=True))
    assert finding.holds
    # A claim that is far from what was found could not be broken by this examination.
    assert finding.measured > 0.7 * finding.claimed


@pytest.mark.parametrize("fault", list(cluster_faults()), ids=lambda fault: fault.name)
def test_every_fault_is_caught(fault: PlantedFault) -> None:
    assert not fault.examine(AuditRun(quick=True)).holds
