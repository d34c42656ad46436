"""The audit of many answers at once: it passes on what is shipped and says no to its faults."""

from fractions import Fraction

import pytest
from discreet.audit.families.p_dap_many import Batch, Place, Tape, many_checks, row_law, shown
from discreet.audit.families.p_dap_many_planted import many_faults
from discreet.families.p_dap.outlook import COIN_SIDES

from discreet.audit.claims import AuditRun, Claim, PlantedFault
from discreet.audit.families.p_dap import Taught


@pytest.mark.parametrize("check", list(many_checks()), ids=lambda check: check.name)
def test_every_claim_holds(check: Claim) -> None:
    assert check.examine(AuditRun(quick=True)).holds


@pytest.mark.parametrize("fault", list(many_faults()), ids=lambda fault: fault.name)
def test_every_fault_is_caught(fault: PlantedFault) -> None:
    assert not fault.examine(AuditRun(quick=True)).holds


def test_the_neighbours_of_the_audit_share_cells_with_some_contexts_and_not_with_others() -> None:
    """Otherwise a batch that looks at who lies together would not be noticed."""
    taught = Taught(mode="geometric")
    first, last = taught.found(0.04).address, taught.found(0.95).address
    assert first == taught.found(0.05).address
    assert first.level != last.level
    assert taught.found(0.3).address not in (first, last)


def test_a_law_has_probability_one_and_the_outlooks_share_of_exploration() -> None:
    taught = Taught(mode="geometric")
    law = row_law(Batch(taught, (0.04, 0.3, 0.95)), 1)
    assert sum(law.values()) == sum(shown(law).values()) == 1
    explored = sum(
        mass
        for outcome, mass in law.items()
        if isinstance(outcome, tuple) and "explored" in outcome
    )
    assert explored == Fraction(taught.learner.memory.outlook.coin, COIN_SIDES)
    assert 0 < explored < 1


def test_a_tape_says_what_it_was_given_in_one_place_and_its_byte_everywhere_else() -> None:
    tape = Tape(0xA5, Place(1, 2), (7, 9))
    plain = int.from_bytes(b"\xa5" * 12, "little")
    assert tape.bits(96) == plain
    assert tape.bits(960) == int.from_bytes(b"\xa5" * 120, "little")
    coins = tape.bits(96).to_bytes(12, "little")
    assert coins == b"\xa5" * 8 + (7).to_bytes(4, "little")
    uniforms = tape.bits(960).to_bytes(120, "little")
    assert uniforms == b"\xa5" * 80 + (9).to_bytes(40, "little")
