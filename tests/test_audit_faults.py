"""`discreet audit`: all planted faults are caught. See `test_audit_command.py`."""

import pytest

from tests.test_audit_command import Outcome, quick_audit

REQUIRED = (
    "forgotten factor 2",
    "halved sensitivity",
    "float Laplace with its tell-tale low bits",
    "reused noise",
    "permute-and-flip priced as bounded range",
)


@pytest.fixture(scope="module")
def quick() -> Outcome:
    return quick_audit(without="all_claims")


@pytest.mark.timeout(5400)
def test_every_planted_fault_is_caught(quick: Outcome) -> None:
    planted = quick.document["planted"]
    assert quick.code == 0
    assert [fault["name"] for fault in planted if not fault["caught"]] == []
    for required in REQUIRED:
        assert any(required in fault["name"] for fault in planted)


@pytest.mark.timeout(5400)
def test_they_are_told_in_the_promised_shape(quick: Outcome) -> None:
    planted = quick.document["planted"]
    assert all(set(fault) == {"name", "scope", "caught"} for fault in planted)
    assert {fault["scope"] for fault in planted} == {"release", "person"}
