"""What a person or an observation moves comes close to what is charged: the claims are sharp."""

import pytest

from discreet.audit.claims import AuditRun, Claim
from discreet.audit.families.fclub.observations import _record as record
from discreet.audit.families.fclub.observations import claims, public_groups, updates_of
from discreet.audit.scripted_noise import ConstantNoise

SHARP = [claim for claim in claims() if "delta" not in claim.name]


@pytest.mark.parametrize("claim", SHARP, ids=lambda claim: claim.name)
def test_a_claim_could_be_broken(claim: Claim) -> None:
    found = claim.examine(AuditRun(quick=True))
    assert found.holds
    assert found.measured > 0.95 * found.claimed


def test_a_life_has_several_updates_and_no_observation_is_in_two() -> None:
    updates = updates_of(record(), public_groups, ConstantNoise())
    assert len(updates) > 4
    assert 20 < sum(update.count for update in updates) <= len(record())
