"""The records that the audit compares are hard, and the charge is hardly more than they cost."""

import pytest

from discreet.audit.claims import AuditRun, Claim
from discreet.audit.families.contextual.records import claims, faults

RUN = AuditRun(quick=True)


@pytest.mark.parametrize("claim", list(claims()), ids=lambda claim: claim.name)
def test_the_charge_covers_a_record_and_is_hardly_more(claim: Claim) -> None:
    found = claim.examine(RUN)
    assert found.holds
    assert found.measured > 0.95 * found.claimed


def test_every_fault_is_caught() -> None:
    found = list(faults())
    assert len(found) == 6
    for fault in found:
        assert not fault.examine(RUN).holds, fault.name
