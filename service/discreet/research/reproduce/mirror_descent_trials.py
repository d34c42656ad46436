"""One reading of sparse mirror descent on one stream of records: what it predicted, how well.

Every reading meets the same records at the same nodes: record t * m + i is node i's t-th. All
predict a record before they learn from it. Accuracy counts each node's own predictions; regret is
the paper's (its Definition 3): the hinge loss of the mean of all nodes' models, less that of the
comparator.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discreet.families.mirror_descent.descent import GRANULARITY, MirrorDescent, Model, batch_due
from discreet.research.published.mirror_descent import Algorithm1, published_rate
from discreet.families.mirror_descent.mixing import Topology, edges_of, metropolis
from discreet.families.mirror_descent.sparse import Floats, norms
from discreet.errors import InvalidArgument
from discreet.privacy.noise import NoiseSource
from discreet.research.worlds.environments import seeded
from discreet.research.worlds.mirror_descent import Records
from discreet.research.noise import SeededNoise

Reading = Literal["served", "published", "non-private", "laplace-batches"]

RADIUS = 400.0
"""|w| in Theorem 2's step. Of 100, 200 and 400 it gives the non-private reading the least regret,
with the same accuracy within half a percent."""
FIRST = 250
GROWTH = 0.25
"""When a node broadcasts: every 250 records, or when a quarter more have come."""
MIXINGS = 8
"""Mixing rounds between two broadcasts; they cost no privacy."""
DELTA = 1e-6
RIDGE = 3e-4


@dataclass(frozen=True, slots=True)
class MirrorRun:
    """What came of it, at `rounds` records (of all nodes): regret and right predictions so far."""

    rounds: npt.NDArray[np.int64]
    regret: Floats
    right: Floats
    sparsity: float
    broadcasts: int
    seconds: float

    @property
    def accuracy(self) -> float:
        """Return the share of right predictions over all records."""
        return float(self.right[-1] / self.rounds[-1])

    @property
    def late_accuracy(self) -> float:
        """Return the share over the last quarter or so, after the learner has had its chance."""
        at = int(np.searchsorted(self.rounds, 0.75 * self.rounds[-1]))
        at = min(at, len(self.rounds) - 2)
        done = self.right[-1] - self.right[at]
        return float(done / (self.rounds[-1] - self.rounds[at]))


@dataclass(frozen=True, slots=True)
class MirrorTrial:
    """A reading, its parameters and a world by its seed. Picklable.

    `lasso` is the paper's lambda for its own readings; for the served one it is the truncation in
    deviations of the noise.
    """

    reading: Reading
    world: Callable[[int], Records]
    rounds: int
    seed: int
    epsilon: float | None = None
    topology: Topology = "ring"
    nodes: int = 8
    lasso: float = 2.0

    def run(self) -> MirrorRun:
        """Play it."""
        records = self.world(self.seed)
        if len(records.labels) < 8 * self.nodes:
            raise InvalidArgument("rounds", "must be at least 8 records a node")
        noise = SeededNoise(np.random.SeedSequence([self.seed, 7]))
        started = time.perf_counter()
        played = _published if self.reading in ("published", "non-private") else _served
        track = played(self, records, noise)
        return track.run(records, time.perf_counter() - started)

    def weights(self, rng: np.random.Generator) -> Callable[[], Floats]:
        """Return the matrix of every next round; a random topology changes each time."""
        if self.topology == "random":
            return lambda: metropolis(edges_of("random", self.nodes, rng), self.nodes)
        fixed = metropolis(edges_of(self.topology, self.nodes), self.nodes)
        return lambda: fixed


class _Track:
    """Adds up predictions as they are made."""

    def __init__(self) -> None:
        self.count: list[int] = []
        self.right: list[float] = []
        self.loss: list[float] = []
        self.sparsity = 0.0
        self.broadcasts = 0

    def add(self, *, own: Floats, mean: Floats, labels: npt.NDArray[np.int64]) -> None:
        """Count predictions of nodes, and the loss of the mean model."""
        self.count.append(len(labels))
        # Without an opinion (w.x = 0) half of the predictions are right.
        self.right.append(float((labels * own > 0).sum() + 0.5 * (own == 0).sum()))
        self.loss.append(float(np.maximum(1 - labels * mean, 0).sum()))

    def run(self, records: Records, seconds: float) -> MirrorRun:
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
            sparsity=self.sparsity,
            broadcasts=self.broadcasts,
            seconds=seconds,
        )


def _published(trial: MirrorTrial, records: Records, noise: NoiseSource) -> _Track:
    private = trial.reading == "published"
    turns = len(records.labels) // trial.nodes
    algorithm = Algorithm1(
        nodes=trial.nodes,
        dimension=records.dimension,
        rate=published_rate(
            radius=RADIUS, bound=1.0, lasso=trial.lasso, records=turns * trial.nodes
        ),
        lasso=trial.lasso,
        epsilon=trial.epsilon if private else None,
    )
    weights = trial.weights(seeded("topology", trial.seed))
    track = _Track()
    for turn in range(turns):
        start = turn * trial.nodes
        rows = records.rows.between(start, start + trial.nodes)
        labels = records.labels[start : start + trial.nodes]
        own, mean = algorithm.predict(rows)
        track.add(own=own, mean=mean, labels=labels)
        algorithm.learn(rows=rows, labels=labels, margins=own, weights=weights(), noise=noise)
    track.sparsity, track.broadcasts = algorithm.sparsity(), turns
    return track


class _Stream:
    """What one node releases of its running sum: through the shipped continual sum."""

    def __init__(self, learner: MirrorDescent) -> None:
        self._sums = learner.sums()
        self._state: Any = self._sums.start()

    def release(self, increment: npt.NDArray[np.int64], noise: NoiseSource) -> Floats:
        """Return the noisy sum of everything so far."""
        self._state = self._sums.observe(
            state=self._state, value=increment * GRANULARITY, noise=noise
        )
        return self._sums.release(state=self._state).value


class _Batches:
    """The alternative: every batch's sum with Laplace noise for its L1 norm, by itself."""

    def __init__(self, *, epsilon: float, bound: float, dimension: int) -> None:
        self._scale = 2 * bound / epsilon
        self._total = np.zeros(dimension)

    def release(self, increment: npt.NDArray[np.int64], noise: NoiseSource) -> Floats:
        """Return the sum of all noisy batches."""
        drawn = noise.discrete_laplace(scale=self._scale / GRANULARITY, size=len(increment))
        self._total = self._total + (increment + drawn) * GRANULARITY
        return self._total


def _served(trial: MirrorTrial, records: Records, noise: NoiseSource) -> _Track:
    if trial.epsilon is None:
        raise InvalidArgument("epsilon", "is needed")
    nodes, turns = trial.nodes, len(records.labels) // trial.nodes
    learner = MirrorDescent(
        dimension=records.dimension,
        epsilon=trial.epsilon,
        delta=DELTA,
        truncation=trial.lasso,
        ridge=RIDGE,
    )
    # The records of one node side by side, so that a batch is a slice.
    order = np.arange(turns * nodes).reshape(turns, nodes).T.reshape(-1)
    rows, labels = records.rows.take(order), records.labels[order]
    streams: list[_Stream | _Batches]
    if trial.reading == "laplace-batches":
        bound = float(norms(rows, "l1").max())
        streams = [
            _Batches(epsilon=trial.epsilon, bound=bound, dimension=records.dimension)
            for _ in range(nodes)
        ]
    else:
        streams = [_Stream(learner) for _ in range(nodes)]
    weights = trial.weights(seeded("topology", trial.seed))
    released = np.zeros((nodes, records.dimension))
    theta = released.copy()
    models = [learner.start()] * nodes
    track, done = _Track(), 0
    while done < turns:
        batch = _next_batch(turns - done, done)
        mean = Model(np.mean([model.weights for model in models], axis=0))
        for node, model in enumerate(models):
            first = node * turns + done
            part, marks = rows.between(first, first + batch), labels[first : first + batch]
            track.add(own=model.margins(part), mean=mean.margins(part), labels=marks)
            _, amounts = learner.gradients(model=model, rows=part, labels=marks)
            told = streams[node].release(learner.summed(rows=part, amounts=amounts), noise)
            theta[node] += told - released[node]
            released[node] = told
        for _ in range(MIXINGS):
            theta = weights() @ theta
        done += batch
        models = [learner.model(theta=vector, count=done) for vector in theta]
        track.broadcasts += 1
    track.sparsity = float(1 - np.mean([model.nonzeros for model in models]) / records.dimension)
    return track


def _next_batch(left: int, counted: int) -> int:
    """Return how many records come before the next broadcast, as `batch_due` decides."""
    batch = max(FIRST, math.ceil(GROWTH * counted))
    assert batch_due(fresh=batch, counted=counted, records=FIRST, growth=GROWTH)
    return min(batch, left)
