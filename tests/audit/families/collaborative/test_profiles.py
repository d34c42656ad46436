"""The audit of profile perturbation finds exactly what is charged."""

import pytest

from discreet.audit.claims import AuditRun, Claim
from discreet.audit.families.collaborative.profiles import claims


@pytest.mark.parametrize("claim", list(claims()), ids=lambda claim: claim.name)
def test_an_item_loses_what_is_charged_and_hardly_less(claim: Claim) -> None:
    found = claim.examine(AuditRun(quick=True))
    assert found.holds
    assert 0.699999 < found.measured <= found.claimed == 0.7
