"""Short runs with every fault break no promise; planted ones are found."""

from pathlib import Path

import pytest

from tests.chaos.planted import FAULTS
from tests.chaos.run import run, run_on_cluster

WORKERS = {"kill worker", "freeze worker", "skew clock"}
STORE = {"kill store", "freeze store", "partition", "full memory", "full disk", "roll back"}
CLUSTER = {"kill master", "freeze master"}

pytestmark = pytest.mark.needs("cc")


def test_every_fault_and_no_violation(tmp_path: Path) -> None:
    verdict = run(tmp_path, seed=20, seconds=1)
    assert {name for name, _, _ in verdict.history.faults} == WORKERS | STORE
    assert verdict.answered > 20 * len(verdict.history.faults)
    assert any(one.release and one.stored for one in verdict.history)
    assert verdict.violations == []


def test_masters_of_a_cluster_may_die(tmp_path: Path) -> None:
    verdict = run_on_cluster(tmp_path, seed=22, seconds=0)
    struck = {name for name, _, _ in verdict.history.faults}
    # What a failover lost was noticed, and ended the run; or nothing was lost.
    assert struck == WORKERS | CLUSTER or (verdict.fenced and struck & CLUSTER)
    assert verdict.violations == []


def test_every_planted_fault_is_found_from_outside(tmp_path: Path) -> None:
    """What is seen is what callers happened to ask: whatever a run misses is left to the next."""
    faults = ["skew clock", "freeze store", "kill worker", "skew clock"]
    missed = {words for _, _, _, words in FAULTS.values()} | {"debits lost"}
    for seed in range(21, 25):
        folder = tmp_path / str(seed)
        folder.mkdir()
        verdict = run(folder, seed=seed, seconds=5, faults=faults, planted=True)
        missed = {words for words in missed if not any(words in one for one in verdict.violations)}
        if not missed:
            break
    assert missed == set(), verdict.summary()
