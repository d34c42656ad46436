"""From everybody's noisy updates to clusters, and to what each server may use of the others.

Everything here is computed from noisy updates alone, so it is post-processing: it costs nobody
anything, and may be repeated.

What an update is worth. It says V~ = V + E and b~ = b + e, where b = V theta + (reward noise of
variance s2 V). The entries of E and e are as likely to be positive as negative, but inverting V~
is not linear: while V is of the size of its noise, V~^-1 b~ is nonsense. Therefore:

1. V is first estimated better than by V~. All updates together tell well how x x^T looks on average
   (M); V is taken to be normal around count * M, entry by entry, with the variance that the updates
   show beyond their noise. Each entry of V~ is drawn towards count * M as far as its noise is
   larger than that: V^ = count*M + k (V~ - count*M), 0 <= k <= 1, leaving an error of variance
   k * noise. For large updates k is 1.
2. Then b~ = V^ theta + an error of variance R = s2 V^ + noise of b~ + what the error of V^ does to
   theta of the expected size. So the update's knowledge of theta is V^ R^-1 V^, and not V^ / s2:
   little while the noise is larger than the sums, and all of it when it is small. That is why
   sharing cannot hurt much.

Who is alike. Estimates of theta from a single user's update are too blurred to compare, for the
same reason. The mean moment b~ / count is not: it is linear in the noise, and since a server soon
shows each user what they like, users of different tastes have clearly different mean moments, more
so than their thetas. So users are put into clusters by that (`evidence` does it, with the mean
moment in place of theta). Users with the same taste but very different catalogues may be kept apart
by this, which costs them the help of each other and nothing else; and whether a cluster's knowledge
fits its own users is for every local server to judge, from exact data.

Updates about one member introduce that member, and say in which cluster it is; updates about
several are placed in clusters in the same way, and help to tell who belongs there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.errors import InvalidArgument
from discreet.families.fclub.evidence import Clustering, Floats, Knowledge
from discreet.families.fclub.linear import positive
from discreet.families.fclub.sums import LinearSums, NoisyUpdate, SumsEncoding

_TINY = 1e-9

_SERVERS_DIFFER = 0.05
"""Variance of a taste's mean moment between servers, compared with that between tastes."""


@dataclass(frozen=True, slots=True, eq=False)
class ServerUpdate:
    """A noisy update, and which server it came from."""

    server: str
    update: NoisyUpdate


@dataclass(frozen=True, slots=True, eq=False)
class Consensus:
    """What the updates say: members' clusters, and knowledge by server and cluster.

    `shares` has one row a server and one column a cluster; rows follow `servers`.
    """

    servers: tuple[str, ...]
    labels: Mapping[tuple[str, int], int]
    shares: Knowledge
    counts: Floats

    @property
    def clusters(self) -> int:
        """How many clusters there are."""
        return int(self.counts.shape[1])

    def foreign(self, server: str) -> Knowledge:
        """Return what the other servers' updates tell about each cluster."""
        others = np.array([name != server for name in self.servers], dtype=np.bool_)
        return Knowledge(
            self.shares.matrix[others].sum(axis=0), self.shares.vector[others].sum(axis=0)
        )

    def foreign_counts(self, server: str) -> Floats:
        """Return how many observations of other servers are in each cluster."""
        others = np.array([name != server for name in self.servers], dtype=np.bool_)
        counts: Floats = self.counts[others].sum(axis=0)
        return counts

    def groups(self, server: str) -> dict[int, int]:
        """Return the cluster of each member whom the server has introduced."""
        return {member: label for (name, member), label in self.labels.items() if name == server}


def consensus(
    received: Sequence[ServerUpdate],
    *,
    encoding: SumsEncoding,
    clustering: Clustering,
    reward_variance: float,
) -> Consensus:
    """Return what all updates together say."""
    if not received:
        raise InvalidArgument("received", "there must be at least one update")
    if not (np.isfinite(reward_variance) and reward_variance > 0):
        raise InvalidArgument("reward_variance", "must be finite and greater than 0")
    updates = [each.update for each in received]
    knowledge = worth(
        updates, encoding=encoding, variety=clustering.variety, reward_variance=reward_variance
    )
    moments, variety = mean_moments(updates, encoding=encoding)
    servers = tuple(sorted({each.server for each in received}))
    # All updates of one server about the same members are compared as one.
    sources = [(each.server, tuple(sorted(each.update.members))) for each in received]
    place = {source: number for number, source in enumerate(dict.fromkeys(sources))}
    source_of = np.array([place[source] for source in sources], dtype=np.int64)
    alike = Clustering(variety=variety, margin=clustering.margin, sweeps=clustering.sweeps)
    labels = alike.labels(users=moments.totals(source_of, len(place)))
    clusters = int(labels.max()) + 1
    row_of = {server: row for row, server in enumerate(servers)}
    rows = np.array([row_of[each.server] for each in received])
    columns = labels[source_of]
    cells = knowledge.totals(rows * clusters + columns, len(servers) * clusters)
    dimensions = cells.vector.shape[-1]
    counts = np.zeros((len(servers), clusters))
    np.add.at(counts, (rows, columns), [float(each.count) for each in updates])
    return Consensus(
        servers=servers,
        labels={
            (server, members[0]): int(labels[number])
            for (server, members), number in place.items()
            if len(members) == 1
        },
        shares=Knowledge(
            cells.matrix.reshape(len(servers), clusters, dimensions, dimensions),
            cells.vector.reshape(len(servers), clusters, dimensions),
        ),
        counts=counts,
    )


def mean_moments(
    updates: Sequence[NoisyUpdate], *, encoding: SumsEncoding
) -> tuple[Knowledge, float]:
    """Return what each update tells about its members' mean moment, and how these vary at all.

    An update's mean moment has the variance of its noise, that of its observations (a centred
    reward is at most h, so at most h^2 / d a coordinate for |x| <= 1), and a part for servers that
    show the same taste different things.
    """
    sums = encoding.sums(np.array([each.steps for each in updates]))
    counts, dimensions = sums.count, encoding.dimensions
    sampling = max(encoding.baseline, 1 - encoding.baseline) ** 2 / dimensions
    noise = np.array([(each.deviation / encoding.weight) ** 2 for each in updates])
    variance = (noise + sampling * counts) / counts**2
    means = sums.moment / counts[:, None]
    # Updates that are mostly noise have little to say about how tastes vary.
    weight = 1 / variance
    beyond = weight * ((means**2).mean(axis=1) - variance)
    variety = max(float(beyond.sum() / weight.sum()), _TINY)
    precision = 1 / (variance + _SERVERS_DIFFER * variety)
    matrix = precision[:, None, None] * np.eye(dimensions)
    return Knowledge(matrix, precision[:, None] * means), variety


def worth(
    updates: Sequence[NoisyUpdate],
    *,
    encoding: SumsEncoding,
    variety: float,
    reward_variance: float,
) -> Knowledge:
    """Return what each update tells about its members' preference vector."""
    sums = encoding.sums(np.array([each.steps for each in updates]))
    noise = np.array([each.deviation for each in updates])
    return information(
        sums,
        gram_noise=noise**2,
        moment_noise=(noise / encoding.weight) ** 2,
        variety=variety,
        reward_variance=reward_variance,
    )


def information(
    sums: LinearSums,
    *,
    gram_noise: Floats,
    moment_noise: Floats,
    variety: float,
    reward_variance: float,
) -> Knowledge:
    """Return what each row of noisy sums tells, given the variances of their noise."""
    moments, counts = sums.moment, sums.count
    better, error = _denoised(sums.gram, counts, gram_noise)
    floor = _TINY * counts
    matrices = np.empty_like(better)
    vectors = np.empty_like(moments)
    for place in range(len(counts)):
        gram = positive(better[place], floor=float(floor[place]))
        spoiled = moment_noise[place] + variety * error[place].sum(axis=1)
        residual = reward_variance * gram + np.diag(spoiled)
        weight = np.linalg.solve(residual, gram)
        matrices[place] = _symmetric(gram @ weight)
        vectors[place] = weight.T @ moments[place]
    return Knowledge(matrices, vectors)


def _denoised(grams: Floats, counts: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Return better estimates of the Gram matrices, and the variance of their entries' errors."""
    if not noise.any():
        return grams, np.zeros_like(grams)
    mean, mean_error = _typical(grams, counts, noise)
    typical = counts[:, None, None] * mean
    excess = (grams - typical) ** 2 - noise[:, None, None]
    # How much the share of an entry varies from update to update, beyond noise; never taken to be
    # less than a thousandth of its largest possible size, so that a large update is believed.
    varies = np.maximum(excess.sum(axis=0) / (counts**2).sum(), 1e-6)
    room = varies * counts[:, None, None] ** 2
    kept = room / (room + noise[:, None, None])
    error = kept * noise[:, None, None]
    error += ((1 - kept) * counts[:, None, None]) ** 2 * mean_error
    return typical + kept * (grams - typical), error


def _typical(grams: Floats, counts: Floats, noise: Floats) -> tuple[Floats, float]:
    """Return how x x^T looks on average, and the variance of its entries' errors.

    While there are few observations the average itself is mostly noise, in which inverting would
    find directions that are not there; it is drawn towards a multiple of the identity.
    """
    mean = grams.sum(axis=0) / counts.sum()
    variance = float(noise.sum() / counts.sum() ** 2)
    level = np.trace(mean) / len(mean) * np.eye(len(mean))
    beyond = max(float(((mean - level) ** 2).mean()) - variance, 0.0)
    kept = beyond / (beyond + variance)
    return positive(level + kept * (mean - level), floor=0.0), kept * variance


def _symmetric(matrix: Floats) -> Floats:
    half: Floats = (matrix + matrix.T) / 2
    return half
