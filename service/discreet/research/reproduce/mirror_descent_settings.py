"""Which settings of sparse mirror descent are played, and what came of one.

As published the algorithm learns nothing at an epsilon of 1. So that what its figures claim can be
judged at all, they are played twice: at 1, and at the least power of ten at which it learns
(`LEARNS`), with the same lambdas measured in deviations of its noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.research.reproduce.mirror_descent_trials import MirrorRun, Reading
from discreet.research.reproduce.node_topologies import TOPOLOGIES, Topology

NODES = 8
TRUNCATION = 2.0
SERVED_EPSILONS = (0.1, 1.0, 10.0)
PUBLISHED_EPSILONS = (1.0, 10.0, 100.0, 1_000.0, 10_000.0)
LEARNS, QUICK_LEARNS = 1_000.0, 100.0
"""The least of these at which the published algorithm learns anything; small runs have a tenth of
the features, and less noise."""
TRUNCATIONS = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0)
LASSOS = (0.0, 5.0, 10.0, 20.0, 40.0)
"""At `LEARNS`, where the noise of a feature ends at a deviation of 11 steps; without noise too."""
DROWNED_LASSO = 20.0
"""The only one of them that is played at an epsilon of 1."""
COUNTS = (4, 8, 12, 16)


@dataclass(frozen=True, slots=True)
class MirrorSetting:
    """What distinguishes one row from another. `lasso` is the row's lambda."""

    reading: Reading
    epsilon: float | None
    topology: Topology = "ring"
    nodes: int = NODES
    lasso: float = 0.0


SERVED = MirrorSetting("served", 1.0, lasso=TRUNCATION)
SERVED_EXACT = MirrorSetting("served", None)
NON_PRIVATE = MirrorSetting("non-private", None)
DROWNED = MirrorSetting("published", 1.0)


def settings(learns: float = LEARNS) -> list[MirrorSetting]:
    """Return every setting of the four figures, once each."""
    learned: tuple[Reading, float | None] = ("published", learns)
    plain: tuple[Reading, float | None] = ("non-private", None)
    drowned: tuple[Reading, float | None] = ("published", 1.0)
    wanted = [
        *(MirrorSetting("served", epsilon, lasso=TRUNCATION) for epsilon in SERVED_EPSILONS),
        *(MirrorSetting("published", epsilon) for epsilon in PUBLISHED_EPSILONS),
        NON_PRIVATE,
        SERVED_EXACT,
        *(MirrorSetting("served", 1.0, topology=kind, lasso=TRUNCATION) for kind in TOPOLOGIES),
        *(
            MirrorSetting(*one, topology=kind)
            for one in (learned, plain, drowned)
            for kind in TOPOLOGIES
        ),
        *(MirrorSetting("served", 1.0, lasso=lasso) for lasso in TRUNCATIONS),
        *(MirrorSetting(*one, lasso=lasso) for one in (learned, plain) for lasso in LASSOS),
        MirrorSetting(*drowned, lasso=DROWNED_LASSO * learns),
        *(MirrorSetting("served", 1.0, nodes=nodes, lasso=TRUNCATION) for nodes in COUNTS),
        *(
            MirrorSetting(*one, nodes=nodes)
            for one in (learned, plain, drowned)
            for nodes in COUNTS
        ),
        MirrorSetting("laplace-batches", 1.0, lasso=TRUNCATION),
    ]
    return list(dict.fromkeys(wanted))


def movielens_settings(*, quick: bool) -> list[MirrorSetting]:
    """Return what is worth asking of real ratings."""
    return [
        *(MirrorSetting("served", epsilon, lasso=TRUNCATION) for epsilon in SERVED_EPSILONS),
        *(MirrorSetting("served", epsilon, lasso=x) for epsilon in (1.0, 10.0) for x in (0.0, 1.0)),
        *(() if quick else (DROWNED,)),
        NON_PRIVATE,
        SERVED_EXACT,
    ]


@dataclass(frozen=True, slots=True)
class MirrorOutcome:
    """A setting's runs, one a seed."""

    setting: MirrorSetting
    runs: tuple[MirrorRun, ...]

    @property
    def regret(self) -> float:
        """Return the mean regret at the end."""
        return float(np.mean([run.regret[-1] for run in self.runs]))

    @property
    def accuracy(self) -> float:
        """Return the mean accuracy of the last quarter."""
        return float(np.mean([run.late_accuracy for run in self.runs]))

    @property
    def sparsity(self) -> float:
        """Return the mean share of features that do not count."""
        return float(np.mean([run.sparsity for run in self.runs]))

    def row(self) -> dict[str, Any]:
        """Return the row that programs read."""
        regrets = [float(run.regret[-1]) for run in self.runs]
        return {
            "reading": self.setting.reading,
            "epsilon": self.setting.epsilon,
            "topology": self.setting.topology,
            "nodes": self.setting.nodes,
            "lambda": self.setting.lasso,
            "sparsity": self.sparsity,
            "regret_mean": self.regret,
            "regret_std": float(np.std(regrets, ddof=1)) if len(regrets) > 1 else 0.0,
            "accuracy": self.accuracy,
        }

    def detail(self) -> dict[str, Any]:
        """Return everything else that is worth keeping."""
        return {
            **self.row(),
            "accuracy_overall": float(np.mean([run.accuracy for run in self.runs])),
            "accuracy_std": float(np.std([run.late_accuracy for run in self.runs])),
            "releases": self.runs[0].releases,
            "seconds": float(np.sum([run.seconds for run in self.runs])),
            "curve": {
                "records": self.runs[0].rounds.tolist(),
                "regret": np.mean([run.regret for run in self.runs], axis=0).tolist(),
                "right": np.mean([run.right for run in self.runs], axis=0).tolist(),
            },
        }


def outcome_of(outcomes: Sequence[MirrorOutcome], setting: MirrorSetting) -> MirrorOutcome:
    """Return what came of a setting."""
    return next(one for one in outcomes if one.setting == setting)
