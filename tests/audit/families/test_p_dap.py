"""The audit of the served learner: it passes on what is shipped and says no to its faults."""

import pytest

from discreet.audit.claims import AuditRun, Claim, PlantedFault
from discreet.audit.families.p_dap import Taught, learner_checks, learner_faults, listed_law


@pytest.mark.parametrize("check", list(learner_checks()), ids=lambda check: check.name)
def test_every_claim_holds(check: Claim) -> None:
    assert check.examine(AuditRun(quick=True)).holds


@pytest.mark.parametrize("fault", list(learner_faults()), ids=lambda fault: fault.name)
def test_every_fault_is_caught(fault: PlantedFault) -> None:
    assert not fault.examine(AuditRun(quick=True)).holds


def test_the_lesson_leaves_cells_that_disagree_at_different_depths() -> None:
    """Otherwise there would be nothing to find."""
    taught = Taught(mode="geometric")
    found = [taught.found(context) for context in (0.05, 0.3, 0.6)]
    assert len({one.address.level for one in found}) > 1
    assert len({int(one.mixture.odds.ranking[one.mixture.best]) for one in found}) == 3


def test_lists_have_probability_one() -> None:
    assert sum(listed_law(Taught(mode="uniform", limit=2).found(0.3).mixture, 2).values()) == 1
