"""A short run with every fault breaks no promise; a planted one is found."""

from pathlib import Path

from tests.chaos.nemesis import FAULTS
from tests.chaos.run import run


def test_every_fault_and_no_violation(tmp_path: Path) -> None:
    verdict = run(tmp_path, seed=20, seconds=1)
    assert {name for name, _, _ in verdict.history.faults} == set(FAULTS)
    assert verdict.answered > 20 * len(FAULTS)
    assert verdict.violations == []


def test_a_store_that_forgets_and_may_is_found(tmp_path: Path) -> None:
    verdict = run(tmp_path, seed=21, seconds=0, faults=["kill worker"], planted=True)
    assert any("debits lost" in one for one in verdict.violations), verdict.summary()
