"""CDP-FCLUB-DC as published, with its noise really applied; and what it becomes without parts.

X. Liu, H. Zhao, T. Yu, S. Li, J. C. S. Lui: Federated Online Clustering of Bandits. UAI 2022.
Algorithms 1 to 5, line by line, for simulations and comparison. Not served.

| paper's symbol | name here | range |
|---|---|---|
| n, L, m | `servers` (one entry a user), their number, `clusters` assumed | >= 1 |
| V_i, b_i, T_i | `users` | |
| S_j^l, u_j^l, T_j^l | `local`, one model a local cluster | |
| Delta S, Delta u, Delta T (up) | `buffer` | |
| Delta S^-l (down) | `waiting` | |
| S_k^g, u_k^g, T_k^g | `shared` | |
| alpha_1, alpha_2 | `delete`, `merge` | > 0 |
| U, D | `upload`, `download` | >= 1 |
| rho, nu, t_c | `PublishedClusters.shift`, `levels`, `uploads` | |
| beta | `radius` * `confidence` | > 0 |

| algorithm | here |
|---|---|
| CDP-FCLUB-DC | `PublishedClusters(epsilon=..., delta=...)` |
| FCLUB-DC | `PublishedClusters(epsilon=None)`: no noise; lambda in place of the shifts |
| FCLUB | the same with U = D = 1: everything is sent at once |
| Homo-DC, Homo | the same with `detect=False`: everybody is one cluster |

What is claimed, and where the proof is silent
1. Each node of a tree gets variance 64 nu ln(2/delta)/eps^2 (line 3 of Algorithm 5; the text has
   ln^2). The tree as a whole needs a sixth of that deviation (`discreet.privacy.matrices`).
2. Every phase uploads each cluster again, outside the tree (Algorithm 2, line 5), and a changed
   clustering starts new trees over the same observations: releases that the proof does not add up.
   In T = 100,000 rounds there are 16 phases.
3. Which cluster an upload is about depends on raw observations, and so does when it happens
   (Algorithm 3, line 2). Neither is paid for.
4. The claim is for delta = 0.1.

Where the pseudocode leaves a choice: t_c, the number of uploads for which a tree is built, is the
paper's own bound d ln(T) / ln(min(U, D)); preference vectors are estimated with ridge lambda; the
confidence radius of Lemma 1 is multiplied by `confidence`, because no implementation of this
family plays with the theoretical constant (the authors' program multiplies by 0.005). A fresh
upload buffer already holds the shift 3 rho I, so with noise the determinant test is passed at every
round, until the clusters that share have made d / ln(U) uploads since they were last renewed, and
rarely from then on: that is what the lines say.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.privacy.calibration import published_privatizer_scale
from discreet.privacy.noise import NoiseSource
from discreet.privacy.numeric import GRANULARITY
from discreet.research.published.linear_bank import LinearBank
from discreet.research.published.similarity_graph import Graph

Floats = npt.NDArray[np.float64]

RIDGE = 1.0
REWARD_DEVIATION = 0.5
"""sigma_0: a reward in [0, 1] is sub-Gaussian with this."""


def certainty(counts: npt.ArrayLike) -> Floats:
    """Return F(T) = sqrt((1 + ln(1 + T)) / (1 + T))."""
    after = 1.0 + np.asarray(counts, dtype=np.float64)
    found: Floats = np.sqrt((1 + np.log(after)) / after)
    return found


def radius(
    *, count: float, dimensions: int, failure: float, sharing: int, least: float, most: float
) -> float:
    """Return beta of Lemma 1 without kappa; `least` and `most` bound the regulariser."""
    growth = dimensions * math.log(most / least + count / (dimensions * sharing * least))
    return REWARD_DEVIATION * math.sqrt(2 * math.log(1 / failure) + growth) + math.sqrt(
        sharing * most
    )


class NoiseTree:
    """The privatizer of one local cluster (Algorithm 5): the noise of each partial sum in turn."""

    def __init__(self, *, order: int, scale: float, noise: NoiseSource) -> None:
        self._order, self._scale, self._noise = order, scale, noise
        self._nodes: list[Floats | None] = []
        self._step = 0

    def next(self) -> Floats:
        """Return the noise of the next partial sum: that of the nodes that cover it."""
        level = ((self._step + 1) & -(self._step + 1)).bit_length() - 1
        self._step += 1
        while len(self._nodes) <= level:
            self._nodes.append(None)
        self._nodes[:level] = [None] * level
        self._nodes[level] = self._node()
        total: Floats = np.sum([node for node in self._nodes if node is not None], axis=0)
        return total

    def _node(self) -> Floats:
        drawn = self._noise.discrete_gaussian(scale=self._scale / GRANULARITY, size=self._order**2)
        square = drawn.reshape(self._order, self._order) * GRANULARITY
        symmetric: Floats = (square + square.T) / math.sqrt(2)
        return symmetric


class PublishedClusters:
    """All servers of the federation at once, as in the paper's experiments."""

    def __init__(
        self,
        *,
        servers: Sequence[int],
        dimensions: int,
        rounds: int,
        noise: NoiseSource,
        epsilon: float | None = None,
        delta: float = 0.1,
        upload: float = 1.01,
        download: float = 1.01,
        delete: float = 2.0,
        merge: float = 2.0,
        confidence: float = 0.05,
        clusters: int = 4,
        detect: bool = True,
    ) -> None:
        if min(upload, download) < 1:
            raise InvalidArgument("upload", "must be at least 1, as must download")
        self.servers = np.asarray(servers, dtype=np.int64)
        self.users = LinearBank(models=len(self.servers), dimensions=dimensions, ridge=RIDGE)
        self.communications = 0
        self._d, self._noise, self._detects = dimensions, noise, detect
        self._at_once = upload == download == 1 and epsilon is None
        self._log_u, self._log_d = math.log(upload), math.log(download)
        self._delete, self._merge, self._confidence = delete, merge, confidence
        self._count = int(self.servers.max()) + 1
        self._failure = 1 / (8 * rounds) / (clusters * self._count)
        slowest = math.log(min(upload, download)) if min(upload, download) > 1 else 1 / rounds
        self.uploads = math.ceil(dimensions * math.log(max(rounds, 2)) / slowest)
        self.levels = math.ceil(math.log2(self.uploads + 1)) + 1
        self.scale = 0.0
        self.shift = 0.0
        if epsilon is not None:
            self.scale = published_privatizer_scale(
                levels=self.levels, epsilon=epsilon, delta=delta
            )
            self.shift = (  # rho, equation (7)
                8
                * math.sqrt(2 * self.levels)
                * math.log(4 / delta)
                * (4 * math.sqrt(dimensions) + 2 * math.log(2 / self._failure))
                / epsilon
            )
        self._graphs = [Graph(int((self.servers == one).sum())) for one in range(self._count)]
        self._people = [np.flatnonzero(self.servers == one) for one in range(self._count)]
        self._round, self._phase = 0, 1
        self._partition: tuple[tuple[int, ...], ...] = ()
        self._adjust()

    # Algorithm 1, lines 10 to 15

    def choose(self, user: int, items: Floats) -> int:
        """Return the item with the largest upper bound by the local cluster's synchronised copy."""
        j = self.home[user]
        return self.local.choose(j, items, self._width[j])

    def learn(self, user: int, x: Floats, y: float) -> None:
        """Update the user, then check the upload and the download event."""
        self.users.add(user, x, y)
        j = self.home[user]
        if self._at_once:
            self._synchronise(j, x, y)
        else:
            self._keep(j, x, y)
        self._round += 1
        if self._round == 2**self._phase - 1:
            self._phase += 1
            if self._detects:
                self._adjust()

    def _synchronise(self, j: int, x: Floats, y: float) -> None:
        """Send one observation up and down at once: what U = D = 1 comes to without noise."""
        inside = self._inside[self._global[j]]
        self.communications += len(inside)
        for each in inside:
            self.local.add(int(each), x, y)
        self._width[inside] = self._confidence * self._radius(j)

    def _keep(self, j: int, x: Floats, y: float) -> None:
        self._buffer_s[j] += x[:, None] * x
        self._buffer_u[j] += y * x
        self._buffer_t[j] += 1
        grown = np.linalg.slogdet(self.local.gram[j] + self._buffer_s[j])[1]
        if grown - self._size[j] >= self._log_u:  # Algorithm 3, line 2
            self._upload(j)

    def _upload(self, j: int) -> None:
        k = self._global[j]
        self.communications += 1
        change = (self._buffer_s[j].copy(), self._buffer_u[j].copy(), self._buffer_t[j])
        self._shared_s[k] += change[0]
        self._shared_u[k] += change[1]
        self._shared_size[k] = np.linalg.slogdet(self._shared_s[k])[1]
        for other in self._inside[k]:
            if other != j:
                self._waiting_s[other] += change[0]
                self._waiting_u[other] += change[1]
                self._waiting_t[other] += change[2]
        self._receive(j, *change)
        self._fresh_buffer(j)
        for other in self._inside[k]:  # Algorithm 4
            if self._shared_size[k] - self._size[other] >= self._log_d and self._waiting_t[other]:
                self.communications += 1
                self._receive(
                    other, self._waiting_s[other], self._waiting_u[other], self._waiting_t[other]
                )
                self._waiting_s[other] = 0.0
                self._waiting_u[other] = 0.0
                self._waiting_t[other] = 0

    def _receive(self, j: int, s: Floats, u: Floats, t: float) -> None:
        self.local.replace(
            j,
            gram=self.local.gram[j] + s,
            moment=self.local.moment[j] + u,
            count=self.local.count[j] + t,
        )
        self._measure(j)

    def _measure(self, j: int) -> None:
        self._size[j] = np.linalg.slogdet(self.local.gram[j])[1]
        self._width[j] = self._confidence * self._radius(j)

    def _radius(self, j: int) -> float:
        sharing = len(self._inside[self._global[j]])
        least = self.shift or RIDGE
        most = 3 * self.shift * (1 + self.uploads) if self.shift else RIDGE
        beta = radius(
            count=float(self.local.count[j]),
            dimensions=self._d,
            failure=self._failure,
            sharing=sharing,
            least=least,
            most=most,
        )
        if self.shift:
            beta += (
                math.sqrt(sharing)
                * float(np.linalg.norm(self._last[j][:-1, -1]))
                / math.sqrt(self.shift)
            )
        return beta

    def _fresh_buffer(self, j: int) -> None:
        """Algorithm 3, lines 9 and 10; Algorithm 2, line 15."""
        self._buffer_s[j] = 0.0
        self._buffer_u[j] = 0.0
        self._buffer_t[j] = 0
        if self.shift:
            following = self._trees[j].next()
            change = following - self._last[j]
            self._last[j] = following
            self._buffer_s[j] = 3 * self.shift * np.eye(self._d) + change[:-1, :-1]
            self._buffer_u[j] = change[:-1, -1]

    # Algorithm 2

    def _adjust(self) -> None:
        home = np.zeros(len(self.servers), dtype=np.int64)
        found = 0
        for graph, people in zip(self._graphs, self._people, strict=True):
            if self._detects and self._round:
                graph.delete(
                    points=self.users.estimate[people],
                    radii=self._delete * certainty(self.users.count[people]),
                )
            labels = graph.labels()
            home[people] = found + labels
            found += int(labels.max()) + 1
        trees = [self._tree() for _ in range(found)]
        last = [tree.next() if self.shift else np.zeros((1, 1)) for tree in trees]
        sums = self._clustered(home, found, last)
        belongs = self._merged(home, sums)
        # Local clusters are numbered by server and first member, global ones by first cluster, so
        # two equal structures have equal numbers.
        partition = (tuple(home.tolist()), tuple(belongs.tolist()))
        self.communications += found if self._round else 0
        if partition != self._partition:
            self._partition, self.home = partition, home
            self._renew(belongs, sums, trees, last)

    def _tree(self) -> NoiseTree:
        return NoiseTree(order=self._d + 1, scale=self.scale, noise=self._noise)

    def _clustered(
        self, home: npt.NDArray[np.int64], found: int, last: Sequence[Floats]
    ) -> tuple[Floats, Floats, Floats]:
        """Return the (V, b, T) that the servers upload at the beginning of a phase (line 5)."""
        identity = np.eye(self._d)
        s = np.zeros((found, self._d, self._d))
        u = np.zeros((found, self._d))
        np.add.at(s, home, self.users.gram - RIDGE * identity)
        np.add.at(u, home, self.users.moment)
        t = np.zeros(found)
        np.add.at(t, home, self.users.count)
        if self.shift:
            s += np.array([each[:-1, :-1] for each in last]) + 2 * self.shift * identity
            u += np.array([each[:-1, -1] for each in last])
        else:
            s += RIDGE * identity
        return s, u, t

    def _merged(
        self, home: npt.NDArray[np.int64], sums: tuple[Floats, Floats, Floats]
    ) -> npt.NDArray[np.int64]:
        """Return the global cluster of each local one (line 7)."""
        s, u, t = sums
        if not (self._detects and self._round):
            return np.zeros(len(t), dtype=np.int64)
        where = np.zeros(len(t), dtype=np.int64)
        where[home] = self.servers
        graph = Graph(len(t))
        graph.edges = (where[:, None] != where) | np.eye(len(t), dtype=np.bool_)
        estimates = np.asarray(np.linalg.solve(s, u[..., None])[..., 0], dtype=np.float64)
        graph.delete(points=estimates, radii=self._merge * certainty(t))
        return graph.labels()

    def _renew(
        self,
        belongs: npt.NDArray[np.int64],
        sums: tuple[Floats, Floats, Floats],
        trees: list[NoiseTree],
        last: list[Floats],
    ) -> None:
        """Start every cluster afresh from what was uploaded (lines 9 to 18)."""
        s, u, t = sums
        local, shared = len(t), int(belongs.max()) + 1
        self._global = belongs
        self._inside = [np.flatnonzero(belongs == k) for k in range(shared)]
        self._trees, self._last = trees, last
        self._shared_s = np.array([s[inside].sum(axis=0) for inside in self._inside])
        self._shared_u = np.array([u[inside].sum(axis=0) for inside in self._inside])
        self._shared_size = np.linalg.slogdet(self._shared_s)[1]
        self.local = LinearBank(models=local, dimensions=self._d, ridge=RIDGE)
        self._size = np.zeros(local)
        self._width = np.zeros(local)
        self._buffer_s, self._buffer_u = np.zeros_like(s), np.zeros_like(u)
        self._waiting_s, self._waiting_u = np.zeros_like(s), np.zeros_like(u)
        self._buffer_t, self._waiting_t = np.zeros(local), np.zeros(local)
        for j, k in enumerate(belongs):
            self.local.replace(
                j,
                gram=self._shared_s[k],
                moment=self._shared_u[k],
                count=float(t[self._inside[k]].sum()),
            )
            self._measure(j)
            self._fresh_buffer(j)
