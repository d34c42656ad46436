"""Windows and groups: the audit's claims hold, and its faults are caught."""

import pytest

from discreet.audit.claims import AuditRun, Scope
from discreet.audit.mechanisms import windows
from discreet.state.memory import MemoryStore

RUN = AuditRun(quick=True)
CLAIMS = {claim.name: claim for claim in windows.claims()}
FAULTS = {fault.name: fault for fault in windows.faults()}


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_a_claim_holds(name: str) -> None:
    assert CLAIMS[name].scope is Scope.PERSON
    assert CLAIMS[name].examine(RUN).holds


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_is_caught(name: str) -> None:
    assert FAULTS[name].scope is Scope.PERSON
    found = FAULTS[name].examine(RUN)
    assert not found.holds
    assert found.measured > 0


@pytest.mark.anyio
async def test_a_window_is_used_up() -> None:
    """The claim is not true because nothing is granted."""
    assert await windows.over_in_memory(MemoryStore) == 0
