"""Federated clusters of linear bandits, as served: what every reading of them does.

After X. Liu, H. Zhao, T. Yu, S. Li, J. C. S. Lui: Federated Online Clustering of Bandits. UAI 2022
(CDP-FCLUB-DC). Users with linear preferences live on local servers; users alike share what they
have taught; a global server joins the clusters of several servers. The setting is theirs. How
likeness is judged, what is sent and how it is protected are not: their noise, really applied, costs
more regret than sharing saves, and their proof leaves out releases that they make
(`discreet.research.published.fclub` is their own reading).

| paper's symbol | name here | range |
|---|---|---|
| d | `dimensions` | 1 .. 256 |
| x, y | an item's features, `reward` | |x| <= 1, [0, 1] |
| epsilon, delta | `epsilon`, `delta` | > 0, (0, 1) |
| V_i, b_i, T_i | `LinearSums` of a user, with y - `baseline` for y | |
| beta | `exploration` * `reward_variance`**0.5 | >= 0 |
| sigma_0**2 | `reward_variance` | > 0 |
| lambda | `reward_variance` / `variety` | > 0 |
| alpha_1, alpha_2 | `margin`: log-odds at which users are taken to be alike | >= 0 |
| U, D | `growth`: an update when so much more has come | > 0 |

Rewards are modelled as baseline + theta.x. Where an item's features have a constant among them,
the baseline changes nothing; otherwise it is what an item without features would get.

Feedback adds to the client's own sums and to nothing else. What others learn from it is decided at
a release, by one of two readings: `by_person` and `by_observation`.
"""

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.families.fclub.codec import Arrays, unpack
from discreet.families.fclub.evidence import (
    Clustering,
    Floats,
    Knowledge,
    Labels,
    potential,
    widened,
)
from discreet.families.fclub.model import ClusterModel
from discreet.families.fclub.own_rows import OwnEncoding
from discreet.families.fclub.sums import COUNT, Privatizer, SumsEncoding
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import Store

Integers = npt.NDArray[np.int64]

AT_ONCE = 200
"""Users read or charged in one round trip, so that requests need not wait behind thousands."""

_SPREADS = (0.0, 0.02, 0.05, 0.1, 0.2)
"""How far, in each coordinate, users of a cluster may be taken to be from other servers' users."""

_CLEAR = 0.8
"""First updates wait until they tell this much, compared with what is known about anybody."""

_SETTLED = 20
"""Observations a dimension after which a server knows what to show a user."""


@dataclass(frozen=True, slots=True, eq=False)
class OwnSums:
    """Users and their own sums, a row each, with what `by_person` noted at its end."""

    principals: tuple[bytes, ...]
    steps: Integers


async def own_sums_by_chunk(
    store: Store, *, generation: bytes, owners: Sequence[bytes], own: OwnEncoding
) -> AsyncIterator[OwnSums]:
    """Yield these users' own sums, some users at a time; who has no observations is left out.

    The store is asked once also if there is nobody, which /metrics would tell otherwise.
    """
    for start in range(0, max(len(owners), 1), AT_ONCE):
        some = owners[start : start + AT_ONCE]
        found = await store.own(generation=generation, principals=some)
        steps = await asyncio.to_thread(own.steps, found)
        there = np.flatnonzero(steps[:, COUNT] > 0).tolist()
        yield OwnSums(tuple(some[place] for place in there), steps[there])


def lot(principal: bytes, number: int) -> float:
    """Return a number from 0 to 1 that a user draws for a release: the same if it is repeated."""
    digest = blake2b(principal, digest_size=8, salt=number.to_bytes(8, "little")).digest()
    return int.from_bytes(digest, "big") / 2**64


M = TypeVar("M", bound=ClusterModel)


class Reading(ABC, Generic[M]):
    """How models are released: what they are made from, and whom their noise protects."""

    @abstractmethod
    def blank(self) -> M:
        """Return the model before anything was released."""

    @abstractmethod
    async def gather(self, number: int, model: M) -> Any:
        """Return what release `number`, the one after `model`, is made from."""

    @abstractmethod
    def release(self, model: M, gathered: Any, noise: NoiseSource) -> M:
        """Return the next model."""

    @abstractmethod
    def as_arrays(self, model: M) -> Arrays:
        """Return a model as named arrays."""

    @abstractmethod
    def from_arrays(self, arrays: Arrays) -> M:
        """Return the model that `as_arrays` wrote."""

    def decode(self, content: bytes) -> M:
        """Return a model that was packed, or raise `ValueError`."""
        arrays = unpack(content)
        try:
            return self.from_arrays(arrays)
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError("a model of fclub cannot be read") from error

    async def before_forgetting(self, principal: bytes) -> None:
        """Prepare for a user's own sums to be erased."""

    async def erase(self) -> None:
        """Erase whatever lies beside users' own sums and the model."""


@dataclass(frozen=True, slots=True, eq=False)
class LocalClusters:
    """Clusters of a server's users, found in exact sums, and what each is known to like.

    `others` has one piece a user: what everybody but that user tells about them. It does not change
    while they teach more; adding their live sums gives what to decide by.
    """

    labels: Labels
    others: Knowledge
    total: Knowledge

    @property
    def clusters(self) -> int:
        """How many clusters have a user of this server."""
        return len(np.unique(self.labels))


@dataclass(frozen=True, slots=True, kw_only=True)
class FederatedClusters:
    """The parameters of a local server, and what it does with them; it has no state."""

    dimensions: int
    epsilon: float | None = 1.0
    delta: float = 1e-6
    baseline: float = 0.5
    exploration: float = 0.7
    reward_variance: float = 0.2
    variety: float | None = None
    margin: float = 1.0
    first_update: int | None = None
    growth: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.exploration) and self.exploration >= 0):
            raise InvalidArgument("exploration", "must be finite and not negative")
        if not (math.isfinite(self.reward_variance) and self.reward_variance > 0):
            raise InvalidArgument("reward_variance", "must be finite and greater than 0")
        if self.first_update is not None and self.first_update < 1:
            raise InvalidArgument("first_update", "must be at least 1")
        if not (math.isfinite(self.growth) and self.growth > 0):
            raise InvalidArgument("growth", "must be finite and greater than 0")
        _ = (self.privatizer, self.clustering)  # refuse what is wrong with the others

    @property
    def privatizer(self) -> Privatizer:
        """What is added up, and how updates that protect one observation are written."""
        return Privatizer(
            dimensions=self.dimensions,
            epsilon=self.epsilon,
            delta=self.delta,
            baseline=self.baseline,
        )

    @property
    def encoding(self) -> SumsEncoding:
        """What is added up."""
        return SumsEncoding(dimensions=self.dimensions, baseline=self.baseline)

    @property
    def clustering(self) -> Clustering:
        """How users are told apart. Preference vectors of length 1/sqrt(2) are expected."""
        variety = 0.5 / self.dimensions if self.variety is None else self.variety
        return Clustering(variety=variety, margin=self.margin)

    @property
    def introduction(self) -> int:
        """How many observations a user's first update is about, at least (by observation)."""
        if self.first_update is not None:
            return self.first_update
        # An update about N observations knows about v^2 / (s2 v + noise), v = N / 2d, of each
        # coordinate; it should be `_CLEAR` times what was known about anybody before.
        rule, variety = self.privatizer, self.clustering.variety
        noise = rule.moment_scale**2 + rule.gram_scale**2 * self.dimensions * variety
        known = _CLEAR / variety
        half = known * self.reward_variance / 2
        size = half + math.sqrt(half * half + known * noise)
        return max(_SETTLED * self.dimensions, math.ceil(2 * self.dimensions * size))

    def due(
        self, *, counts: npt.ArrayLike, sent: npt.ArrayLike, groups: Mapping[int, int]
    ) -> list[tuple[int, ...]]:
        """Return whose pending observations make an update now, one tuple an update.

        `counts` and `sent` are, for each user of this server, how many observations there are and
        how many were in updates; `groups` is the cluster, by the merged model, of users who have
        been introduced. Nothing else may be looked at: `by_observation` has the proof.
        """
        have = np.asarray(counts, dtype=np.int64)
        told = np.asarray(sent, dtype=np.int64)
        if have.shape != told.shape or have.ndim != 1 or (told > have).any():
            raise InvalidArgument("sent", "must be as many numbers as counts, none of them larger")
        least = self.introduction
        fresh = np.flatnonzero((told == 0) & (have >= least))
        updates: list[tuple[int, ...]] = [(int(user),) for user in fresh]
        together: dict[int, list[int]] = {}
        for user in np.flatnonzero(told > 0):
            together.setdefault(groups.get(int(user), -1 - int(user)), []).append(int(user))
        for members in together.values():
            already = int(told[members].sum())
            if int(have[members].sum()) - already >= max(least, self.growth * already):
                # Somebody with nothing new would only be named for nothing.
                updates.append(tuple(user for user in members if have[user] > told[user]))
        return updates

    def knowledge(self, *, grams: Floats, moments: Floats) -> Knowledge:
        """Return exact sums as information about preference vectors."""
        return Knowledge(grams / self.reward_variance, moments / self.reward_variance)

    def local_clusters(
        self, *, users: Knowledge, foreign: Knowledge | None = None
    ) -> LocalClusters:
        """Return the clusters of this server's users, with what other servers tell about them.

        `users` is exact knowledge, a piece a user; `foreign` is the merged model's, a piece a
        cluster. What comes from elsewhere is believed only as far as the own exact data of the
        cluster bear it out, so sharing cannot mislead for long: see `_believed`.
        """
        if foreign is None:
            foreign = Knowledge.nothing(dimensions=self.dimensions, pieces=0)
        labels = self.clustering.labels(users=users, known=foreign)
        clusters = max(len(foreign), int(labels.max(initial=-1)) + 1)
        own = users.totals(labels, clusters)
        total = Knowledge(own.matrix.copy(), own.vector.copy())
        for cluster in range(len(foreign)):
            believed = self._believed(own[cluster], foreign[cluster])
            total.matrix[cluster] += believed.matrix
            total.vector[cluster] += believed.vector
        others = Knowledge(total.matrix[labels] - users.matrix, total.vector[labels] - users.vector)
        return LocalClusters(labels=labels, others=others, total=total)

    def _believed(self, own: Knowledge, foreign: Knowledge) -> Knowledge:
        """Return what comes from elsewhere, loosened as the own data ask for.

        Other servers' users of a cluster may differ a little from ours, or a few of them may be in
        the wrong cluster. The spread between us and them is the one under which our own data are
        most probable; while we know little, that is none.
        """
        prior = self.clustering.prior(self.dimensions)
        if not own.matrix.any():
            return foreign
        best, chosen = -math.inf, foreign
        for spread in _SPREADS:
            loose = Knowledge(*widened(foreign.matrix, foreign.vector, spread))
            known = prior + loose.matrix
            evidence = float(
                potential(known + own.matrix, loose.vector + own.vector)
                - potential(known, loose.vector)
            )
            if evidence > best:
                best, chosen = evidence, loose
        return chosen

    def posterior(self, *, own: Knowledge, others: Knowledge) -> tuple[Floats, Floats]:
        """Return the estimate of preferences and its covariance matrix, of one user or of many."""
        known = self.clustering.prior(self.dimensions) + own.matrix + others.matrix
        covariance = np.asarray(np.linalg.inv(known), dtype=np.float64)
        vector = own.vector + others.vector
        estimate: Floats = (covariance @ vector[..., None])[..., 0]
        return estimate, covariance
