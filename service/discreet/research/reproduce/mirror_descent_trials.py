"""One reading of sparse mirror descent on one stream of records: what it predicted, how well.

Every reading meets the same records at the same nodes: record t * m + i is node i's t-th. All
predict a record before they learn from it. Accuracy counts each node's own predictions; regret is
the paper's (its Definition 3): the hinge loss of the mean of all nodes' models, less that of the
comparator.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.families.mirror_descent.document import MirrorReleasesDocument
from discreet.families.mirror_descent.learning import MirrorLearner
from discreet.families.mirror_descent.model import MirrorModel, NodeSums, blank_sums
from discreet.families.mirror_descent.sparse import STEPS, Floats, GridRows
from discreet.privacy.noise import NoiseSource
from discreet.research.noise import SeededNoise
from discreet.research.published.mirror_descent import Algorithm1, laplace, published_rate
from discreet.research.reproduce.node_topologies import Topology, edges_of, metropolis
from discreet.research.worlds.environments import seeded
from discreet.research.worlds.mirror_descent import LabelledRecords

Reading = Literal["served", "published", "non-private", "laplace-batches"]

STREAM_SECONDS = 50.0
"""How long a run lasts on the simulated clock by which nodes release, however many records it has:
after 2% of them, 4%, 8%, …"""
MIXINGS = 8
"""Mixing rounds between two releases; they cost no privacy."""
DELTA = 1e-6


@dataclass(frozen=True, slots=True)
class MirrorRun:
    """Regret and right predictions after `rounds` records of all nodes.

    `idle` is the regret of predicting nothing to the end, `radius` the length of the comparator.
    """

    rounds: npt.NDArray[np.int64]
    regret: Floats
    right: Floats
    idle: float
    radius: float
    sparsity: float
    releases: int
    seconds: float

    @property
    def accuracy(self) -> float:
        """Return the share of right predictions over all records."""
        return float(self.right[-1] / self.rounds[-1])

    @property
    def late_accuracy(self) -> float:
        """Return the share over the last quarter or so."""
        at = int(np.searchsorted(self.rounds, 0.75 * self.rounds[-1]))
        at = min(at, len(self.rounds) - 2)
        done = self.right[-1] - self.right[at]
        return float(done / (self.rounds[-1] - self.rounds[at]))


@dataclass(frozen=True, slots=True)
class MirrorTrial:
    """A reading, its parameters and a world by its seed. Picklable.

    `lasso` is the paper's lambda for its own readings; for the served one it is the truncation in
    deviations of the noise. `epsilon` None is the served learner with exact sums.
    """

    reading: Reading
    world: Callable[[int], LabelledRecords]
    rounds: int
    seed: int
    epsilon: float | None = None
    topology: Topology = "ring"
    nodes: int = 8
    lasso: float = 2.0

    @property
    def label(self) -> str:
        """Return what to show while it runs."""
        return f"{self.reading}, seed {self.seed}"

    def run(self) -> MirrorRun:
        """Play it."""
        (found,) = MirrorTrials((self,)).run()
        return found

    def weights(self, rng: np.random.Generator) -> Callable[[], Floats]:
        """Return the matrix of every next round; a random topology changes each time."""
        if self.topology == "random":
            return lambda: metropolis(edges_of("random", self.nodes, rng), self.nodes)
        fixed = metropolis(edges_of(self.topology, self.nodes), self.nodes)
        return lambda: fixed


@dataclass(frozen=True, slots=True)
class MirrorTrials:
    """Trials of one world, seed and network, played side by side. Picklable.

    The noise of the published reading, a number for every feature of every node in every round, is
    most of the work. Drawn in units of its scale it is the same for all of them.
    """

    trials: tuple[MirrorTrial, ...]

    @property
    def rounds(self) -> int:
        """How long they are together."""
        return sum(trial.rounds for trial in self.trials)

    @property
    def label(self) -> str:
        """Return what to show while they run."""
        return self.trials[0].label

    def run(self) -> list[MirrorRun]:
        """Play them."""
        first = self.trials[0]
        records = first.world(first.seed)
        if len(records.labels) < 8 * first.nodes:
            raise InvalidArgument("rounds", "must be at least 8 records a node")
        noise = SeededNoise(np.random.SeedSequence([first.seed, 7]))
        started = time.perf_counter()
        if first.reading in ("published", "non-private"):
            tracks = _published(self.trials, records, noise)
        else:
            (trial,) = self.trials
            tracks = [_served(trial, records, noise)]
        seconds = (time.perf_counter() - started) / len(tracks)
        return [track.run(records, seconds) for track in tracks]


def side_by_side(trials: Sequence[MirrorTrial]) -> list[MirrorTrials]:
    """Return the trials with those together that meet the same records, nodes and noise."""
    groups: dict[tuple[object, ...], list[MirrorTrial]] = {}
    for trial in trials:
        network = (trial.world, trial.seed, trial.topology, trial.nodes)
        alone = () if trial.reading == "published" else (trial,)
        groups.setdefault((*network, trial.reading, *alone), []).append(trial)
    return [MirrorTrials(tuple(many)) for many in groups.values()]


class _Track:
    """Adds up predictions as they are made."""

    def __init__(self) -> None:
        self.count: list[int] = []
        self.right: list[float] = []
        self.loss: list[float] = []
        self.sparsity = 0.0
        self.releases = 0

    def add(self, *, own: Floats, mean: Floats, labels: npt.NDArray[np.int64]) -> None:
        """Count predictions of nodes, and the loss of the mean model."""
        self.count.append(len(labels))
        # Without an opinion (w.x = 0) half of the predictions are right.
        self.right.append(float((labels * own > 0).sum() + 0.5 * (own == 0).sum()))
        self.loss.append(float(np.maximum(1 - labels * mean, 0).sum()))

    def run(self, records: LabelledRecords, seconds: float) -> MirrorRun:
        """Return it at up to 100 points."""
        count = np.cumsum(self.count)
        right, loss = np.cumsum(self.right), np.cumsum(self.loss)
        marks = np.linspace(count[-1] / 100, count[-1], 100)
        at = np.unique(np.searchsorted(count, marks - 1e-6))
        share = count[at] / len(records.labels)
        return MirrorRun(
            rounds=count[at],
            regret=loss[at] - share * records.best_loss,
            right=right[at],
            idle=float(count[-1] - share[-1] * records.best_loss),
            radius=records.norm,
            sparsity=self.sparsity,
            releases=self.releases,
            seconds=seconds,
        )


def _published(
    trials: Sequence[MirrorTrial], records: LabelledRecords, noise: NoiseSource
) -> list[_Track]:
    nodes, private = trials[0].nodes, trials[0].reading == "published"
    turns = len(records.labels) // nodes
    algorithms = [
        Algorithm1(
            nodes=nodes,
            dimension=records.dimension,
            rate=published_rate(
                radius=records.norm, bound=1.0, lasso=trial.lasso, records=turns * nodes
            ),
            lasso=trial.lasso,
            epsilon=trial.epsilon if private else None,
        )
        for trial in trials
    ]
    weights = trials[0].weights(seeded("topology", trials[0].seed))
    tracks = [_Track() for _ in trials]
    drawn = None
    for turn in range(turns):
        start = turn * nodes
        rows = records.rows.between(start, start + nodes)
        labels = records.labels[start : start + nodes]
        matrix = weights()
        if private:
            drawn = laplace(noise, nodes=nodes, dimension=records.dimension)
        for algorithm, track in zip(algorithms, tracks, strict=True):
            own, mean = algorithm.predict(rows)
            track.add(own=own, mean=mean, labels=labels)
            algorithm.learn(rows=rows, labels=labels, margins=own, weights=matrix, noise=drawn)
    for algorithm, track in zip(algorithms, tracks, strict=True):
        track.sparsity, track.releases = algorithm.sparsity(), turns
    return tracks


def _served(trial: MirrorTrial, records: LabelledRecords, noise: NoiseSource) -> _Track:
    nodes, turns = trial.nodes, len(records.labels) // trial.nodes
    learner = MirrorLearner(
        dimension=records.dimension,
        epsilon=trial.epsilon,
        delta=DELTA,
        truncation=trial.lasso,
    )
    # The records of one node side by side, so that what a release gathers is a slice.
    order = np.arange(turns * nodes).reshape(turns, nodes).T.reshape(-1)
    rows, labels = records.rows.take(order), records.labels[order]
    release: Release = learner.release
    if trial.reading == "laplace-batches":
        release = _laplace_release(learner, largest=float(rows.sums(np.abs(rows.values)).max()))
    weights = trial.weights(seeded("topology", trial.seed))
    sums = [blank_sums(records.dimension)] * nodes
    models = [learner.model(one) for one in sums]
    clock = MirrorReleasesDocument()
    track, done = _Track(), 0
    while done < turns:
        pause = clock.pause(STREAM_SECONDS * done / turns)
        batch = min(max(1, round(turns * pause / STREAM_SECONDS)), turns - done)
        mean = replace(models[0], weights=np.mean([one.weights for one in models], axis=0))
        for node, model in enumerate(models):
            first = node * turns + done
            part, marks = rows.between(first, first + batch), labels[first : first + batch]
            track.add(own=model.margins(part), mean=mean.margins(part), labels=marks)
            gathered = _gathered(learner, model, part, marks)
            sums[node] = release(sums[node], gathered, noise)
        for _ in range(MIXINGS):
            sums = _mixed(weights(), sums)
        done += batch
        models = [learner.model(one) for one in sums]
        track.releases += 1
    track.sparsity = float(1 - np.mean([model.nonzeros for model in models]) / records.dimension)
    return track


Release = Callable[[NodeSums, npt.NDArray[np.int64], NoiseSource], NodeSums]


def _gathered(
    learner: MirrorLearner, model: MirrorModel, rows: GridRows, labels: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return what these records add up to, as `MirrorLearner.summed` gives it."""
    total = np.zeros(1 + learner.dimension, dtype=np.int64)
    total[0] = learner.count_steps * len(labels)
    np.add.at(total, 1 + rows.indices, learner.gradients(model, rows, (1 + labels) / 2))
    return total


def _mixed(weights: Floats, sums: list[NodeSums]) -> list[NodeSums]:
    """Return every node's sums after one round of mixing."""
    gradients = weights @ np.stack([one.gradients for one in sums])
    counts = weights @ np.array([(one.count, one.squares) for one in sums])
    return [
        NodeSums(each, float(count), float(squares))
        for each, (count, squares) in zip(gradients, counts, strict=True)
    ]


def _laplace_release(learner: MirrorLearner, *, largest: float) -> Release:
    """Return the alternative: Laplace noise for the records' L1 norm, which is `largest`."""
    exact = replace(learner, epsilon=None)
    scale = 2 * largest / (learner.epsilon or 1.0) * STEPS

    def release(own: NodeSums, total: npt.NDArray[np.int64], noise: NoiseSource) -> NodeSums:
        noisy = total.copy()
        noisy[1:] += noise.discrete_laplace(scale=scale, size=learner.dimension)
        return exact.release(own, noisy, noise)

    return release
