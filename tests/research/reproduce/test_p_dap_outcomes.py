"""An algorithm's runs, added up."""

import numpy as np
import pytest

from discreet.research.reproduce.p_dap_algorithms import PartitionAlgorithm
from discreet.research.reproduce.p_dap_outcomes import PartitionOutcome, outcome_of
from discreet.research.simulate.runs import WorldRun


def played(regret: float) -> WorldRun:
    rounds = np.array([25.0, 50.0, 75.0, 100.0])
    return WorldRun(
        rounds=rounds, regret=regret * rounds, reward=0.5 * rounds, optimal=rounds, seconds=1.0
    )


def test_regrets_are_of_the_runs_ends() -> None:
    one = PartitionOutcome(PartitionAlgorithm("dap"), (played(0.1), played(0.3)))
    assert one.regrets == pytest.approx([10.0, 30.0])
    assert one.regret == pytest.approx(20.0)
    assert one.row()["regret_std"] == pytest.approx(14.142, abs=1e-3)
    assert one.detail()["regrets"] == one.regrets
    assert one.accuracy_at(50) == 0.5
    assert one.accuracy_at(500) is None


def test_an_outcome_is_found_by_its_epsilons() -> None:
    exact = PartitionOutcome(PartitionAlgorithm("served", 1.0), (played(0.1),))
    noisy = PartitionOutcome(PartitionAlgorithm("served", 1.0, 2.0), (played(0.2),))
    assert outcome_of([exact, noisy], "served", 1.0) is exact
    assert outcome_of([exact, noisy], "served", 1.0, 2.0) is noisy
