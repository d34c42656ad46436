"""The records that clipping is attacked with, and how close the charge comes to what they cost."""

import pytest

from discreet.audit.claims import AuditRun, Claim
from discreet.audit.families.mirror_descent.records import claims, hard_records
from discreet.families.mirror_descent.sparse import norms, on_grid


def test_the_records_are_hard() -> None:
    lengths = norms(hard_records(2_000))
    assert (lengths < 1e-3).any()
    assert (lengths > 1e3).any()
    assert (abs(lengths - 1) < 1e-10).sum() > 500
    assert norms(on_grid(hard_records(2_000), bound=1.0)).max() <= 1


RHO = [claim for claim in claims() if claim.name.endswith("rho")]


@pytest.mark.parametrize("claim", RHO, ids=lambda claim: claim.name)
def test_the_charge_is_hardly_more_than_a_record_can_cost(claim: Claim) -> None:
    found = claim.examine(AuditRun(quick=True))
    assert found.holds
    assert found.measured > 0.999999 * found.claimed
