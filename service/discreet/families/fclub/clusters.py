"""Federated clusters of linear bandits, as served: what a local server decides, learns and sends.

After X. Liu, H. Zhao, T. Yu, S. Li, J. C. S. Lui: Federated Online Clustering of Bandits. UAI 2022
(CDP-FCLUB-DC). Users with linear preferences live on local servers; users alike share what they
have taught; a global server joins the clusters of several servers. The setting is theirs. How
likeness is judged, what is sent and how it is protected are not: their noise, really applied, costs
more regret than sharing saves, and their proof leaves out releases that they make
(`federated_clusters_published` is their own reading and says which).

| paper's symbol | name here | range |
|---|---|---|
| d | `dimensions` | 1 .. 256 |
| x, y | an item's features, `reward` | |x| <= 1, [0, 1] |
| epsilon, delta | `epsilon`, `delta`, of one observation | > 0, (0, 1) |
| V_i, b_i, T_i | `Sums` of a user, with y - `baseline` for y | |
| beta | `exploration` * `reward_variance`**0.5 | >= 0 |
| sigma_0**2 | `reward_variance` | > 0 |
| lambda | `reward_variance` / `variety` | > 0 |
| alpha_1, alpha_2 | `margin`: log-odds at which users are taken to be alike | >= 0 |
| U, D | `growth`: a letter when so much more has come | > 0 |

Rewards are modelled as baseline + theta.x. Where an item's features have a constant among them,
the baseline changes nothing; otherwise it is what an item without features would get.

Guarantee card
- Who is protected: whoever gave an observation (an item that was shown and what came of it),
  against everybody outside the local server: the global server, the other local servers, their
  users, and all of them together.
- Neighbouring inputs: two records of a local server's observations that differ in the (x, y) of
  one. Who arrives, when, and how often is public, as are the numbers of users in letters.
- Mechanism: letters (`federated_letters`): sums over observations with discrete Gaussian noise.
- Sensitivity: 1.81 (proved there), whatever the dimension.
- Cost of an observation: one letter, that is (epsilon, delta), by exact calibration. An observation
  is in one letter only, and nothing else leaves the server.
- Assumptions: noise from the operating system; a letter is charged and kept before it is sent. The
  local server is trusted, and so are its own users: it does not noise its own data for them. What
  an observation made the server *show later* is a matter of later observations, each protected in
  its own right; the definition (as the paper's) keeps those fixed.

Why letters do not compose. Let two records differ in observation o of user i. Whether and when a
letter is written, about whom, and which observations it covers, depends on counts and on the
clusters that the global server has told, and those are a function of letters sent before. So, given
the letters sent before, the two records' next letters cover the same observations. Exactly one
letter covers o; every other has the same distribution for both records. By the argument for
adaptive composition, in which all but one of the mechanisms have zero loss, all letters together
lose what that one loses. Clusters that a local server finds in its own exact data are used for its
own users only. They never decide what is in a letter: they depend on observations, and a change of
one could move a whole user from one letter to another.

A user's first letter is therefore about that user alone (an introduction), sent after
`first_letter` observations, when noise no longer drowns it. The global server puts introduced users
into clusters, and from then on users of one server and one cluster share letters: fewer letters,
less noise.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.families.fclub.evidence import (
    Clustering,
    Floats,
    Knowledge,
    Labels,
    potential,
    widened,
)
from discreet.families.fclub.letters import Privatizer, Sums
from discreet.families.fclub.linear import choose
from discreet.errors import InvalidArgument

_SPREADS = (0.0, 0.02, 0.05, 0.1, 0.2)
"""How far, in each coordinate, users of a cluster may be taken to be from other servers' users."""

_CLEAR = 0.8
"""Introductions wait until they tell this much, compared with what is known about anybody."""

_SETTLED = 20
"""Observations a dimension after which a server knows what to show a user."""


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """What a local server believes, from a snapshot: clusters, and what each is known to like.

    `others` has one piece a user: what everybody but herself tells about her. It does not change
    while she teaches more; adding her live sums gives what to decide by.
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
    first_letter: int | None = None
    growth: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.exploration) and self.exploration >= 0):
            raise InvalidArgument("exploration", "must be finite and not negative")
        if not (math.isfinite(self.reward_variance) and self.reward_variance > 0):
            raise InvalidArgument("reward_variance", "must be finite and greater than 0")
        if self.first_letter is not None and self.first_letter < 1:
            raise InvalidArgument("first_letter", "must be at least 1")
        if not (math.isfinite(self.growth) and self.growth > 0):
            raise InvalidArgument("growth", "must be finite and greater than 0")
        _ = (self.privatizer, self.clustering)  # refuse what is wrong with the others

    @property
    def privatizer(self) -> Privatizer:
        """What is added up, and how letters are protected."""
        return Privatizer(
            dimensions=self.dimensions,
            epsilon=self.epsilon,
            delta=self.delta,
            baseline=self.baseline,
        )

    @property
    def clustering(self) -> Clustering:
        """How users are told apart. Preference vectors of length 1/sqrt(2) are expected."""
        variety = 0.5 / self.dimensions if self.variety is None else self.variety
        return Clustering(variety=variety, margin=self.margin)

    @property
    def introduction(self) -> int:
        """How many observations a user's first letter is about, at least."""
        if self.first_letter is not None:
            return self.first_letter
        # A letter about N observations knows about v^2 / (s2 v + noise), v = N / 2d, of each
        # coordinate; it should be `_CLEAR` times what was known about anybody before.
        rule, variety = self.privatizer, self.clustering.variety
        noise = rule.moment_scale**2 + rule.gram_scale**2 * self.dimensions * variety
        known = _CLEAR / variety
        half = known * self.reward_variance / 2
        size = half + math.sqrt(half * half + known * noise)
        return max(_SETTLED * self.dimensions, math.ceil(2 * self.dimensions * size))

    # What is sent

    def due(
        self, *, counts: npt.ArrayLike, sent: npt.ArrayLike, groups: Mapping[int, int]
    ) -> list[tuple[int, ...]]:
        """Return whose pending observations make a letter now, one tuple a letter.

        `counts` and `sent` are, for each user of this server, how many observations there are and
        how many were in letters; `groups` is the cluster, by the global server's word, of users who
        have been introduced and heard of. Nothing else may be looked at.
        """
        have = np.asarray(counts, dtype=np.int64)
        told = np.asarray(sent, dtype=np.int64)
        if have.shape != told.shape or have.ndim != 1 or (told > have).any():
            raise InvalidArgument("sent", "must be as many numbers as counts, none of them larger")
        least = self.introduction
        fresh = np.flatnonzero((told == 0) & (have >= least))
        letters: list[tuple[int, ...]] = [(int(user),) for user in fresh]
        together: dict[int, list[int]] = {}
        for user in np.flatnonzero(told > 0):
            together.setdefault(groups.get(int(user), -1 - int(user)), []).append(int(user))
        for members in together.values():
            already = int(told[members].sum())
            if int(have[members].sum()) - already >= max(least, self.growth * already):
                # Somebody with nothing new would only be named for nothing.
                letters.append(tuple(user for user in members if have[user] > told[user]))
        return letters

    # What is decided

    def knowledge(self, *, grams: Floats, moments: Floats) -> Knowledge:
        """Return exact sums as information about preference vectors."""
        return Knowledge(grams / self.reward_variance, moments / self.reward_variance)

    def outlook(self, *, users: Knowledge, foreign: Knowledge | None = None) -> Outlook:
        """Return the clusters of this server's users, with what other servers tell about them.

        `users` is exact knowledge, a piece a user; `foreign` is the global server's, a piece a
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
        return Outlook(labels=labels, others=others, total=total)

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
        """Return the estimate of a user's preferences and its covariance matrix."""
        known = self.clustering.prior(self.dimensions) + own.matrix + others.matrix
        covariance = np.asarray(np.linalg.inv(known), dtype=np.float64)
        return covariance @ (own.vector + others.vector), covariance

    def recommend(self, *, own: Sums, others: Knowledge, items: Floats) -> int:
        """Return which row of `items` to show: the one with the largest upper bound."""
        if items.ndim != 2 or items.shape[1] != self.dimensions or len(items) == 0:
            raise InvalidArgument("items", f"must be rows of {self.dimensions} numbers")
        estimate, covariance = self.posterior(
            own=self.knowledge(grams=own.gram, moments=own.moment), others=others
        )
        return choose(items=items, estimate=estimate, inverse=covariance, width=self.exploration)


def gathered(
    sums: Sequence[Sums], *, dimensions: int
) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """Return the Gram matrices, moments and counts of several users as stacks."""
    grams = np.array([each.gram for each in sums]).reshape(-1, dimensions, dimensions)
    moments = np.array([each.moment for each in sums]).reshape(-1, dimensions)
    return grams, moments, np.array([each.count for each in sums], dtype=np.int64)
