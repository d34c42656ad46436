"""What the runs of one algorithm came to, in the reproduction of P-DAP."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.research.reproduce.p_dap_algorithms import PartitionAlgorithm
from discreet.research.simulate.runs import WorldRun


@dataclass(frozen=True, slots=True)
class PartitionOutcome:
    """An algorithm's runs, one a seed."""

    algorithm: PartitionAlgorithm
    runs: tuple[WorldRun, ...]

    def row(self) -> dict[str, Any]:
        """Return the row that programs read."""
        regrets = self.regrets
        return {
            "algorithm": self.algorithm.algorithm,
            "epsilon": self.algorithm.epsilon,
            "feedback_epsilon": self.algorithm.feedback_epsilon,
            "regret_mean": self.regret,
            "regret_std": float(np.std(regrets, ddof=1)) if len(regrets) > 1 else 0.0,
            "accuracy": float(np.mean([run.accuracy for run in self.runs])),
        }

    def detail(self) -> dict[str, Any]:
        """Return everything else that is worth keeping."""
        return {
            **self.row(),
            "share_of_optimal": float(np.mean([run.share_of_optimal for run in self.runs])),
            "share_of_optimal_in_last_quarter": float(
                np.mean([run.late_share() for run in self.runs])
            ),
            "regrets": self.regrets,
            "seconds": float(np.sum([run.seconds for run in self.runs])),
            "curve": {
                "rounds": self.runs[0].rounds.tolist(),
                "regret": np.mean([run.regret for run in self.runs], axis=0).tolist(),
                "reward": np.mean([run.reward for run in self.runs], axis=0).tolist(),
            },
        }

    @property
    def regrets(self) -> list[float]:
        """Return the regret of every run."""
        return [float(run.regret[-1]) for run in self.runs]

    @property
    def regret(self) -> float:
        """Return the mean regret."""
        return float(np.mean(self.regrets))

    def accuracy_at(self, rounds: int) -> float | None:
        """Return the accuracy over the first rounds, if so many were played."""
        if self.runs[0].rounds[-1] < rounds:
            return None
        return float(np.mean([run.accuracy_at(rounds) for run in self.runs]))


def outcome_of(
    outcomes: Sequence[PartitionOutcome],
    algorithm: str,
    epsilon: float | None = None,
    feedback_epsilon: float | None = None,
) -> PartitionOutcome:
    """Return the outcome of one algorithm with these epsilons."""
    wanted = PartitionAlgorithm(algorithm, epsilon, feedback_epsilon)
    return next(one for one in outcomes if one.algorithm == wanted)
