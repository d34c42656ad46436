"""The global server: from noisy letters to clusters, and to what each server may use of the others.

Everything here is computed from letters alone, so it is post-processing: it costs nobody anything,
and it may be done again, differently, as often as one likes.

What a letter is worth. It says V~ = V + E and b~ = b + e, where b = V theta + (reward noise of
variance s2 V). The entries of E and e are as likely to be positive as negative, but inverting V~
is not linear: while V is of the size of its noise, V~^-1 b~ is nonsense. Therefore:

1. V is first estimated better than by V~. All letters together tell well how x x^T looks on
   average (M); V is taken to be normal around count * M, entry by entry, with the variance that the
   letters show beyond their noise. Each entry of V~ is drawn towards count * M as far as its noise
   is larger than that: V^ = count*M + k (V~ - count*M), 0 <= k <= 1, leaving an error of variance
   k * noise. For large letters k is 1.
2. Then b~ = V^ theta + an error of variance R = s2 V^ + noise of b~ + what the error of V^ does to
   theta of the expected size. So the letter's knowledge of theta is V^ R^-1 V^, and not V^ / s2:
   little while the noise is larger than the sums, and all of it when it is small.

Who is alike. Estimates of theta from a single user's letter are too blurred to compare, for the
same reason. The mean moment b~ / count is not: it is linear in the noise, and since a server soon
shows each user what she likes, users of different tastes have clearly different mean moments, more
so than their thetas. So users are put into clusters by that (`federated_evidence` does it, with the
mean moment in place of theta). Users with the same taste but very different catalogues may be kept
apart by this, which costs them the help of each other and nothing else; and whether a cluster's
knowledge fits its own users is for every local server to judge, from exact data.

Letters about one user introduce that user, and say in which cluster she is; letters about several
users are placed in clusters in the same way, and help to tell who belongs there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.families.fclub.evidence import Clustering, Floats, Knowledge
from discreet.families.fclub.letters import Letter, Privatizer
from discreet.families.fclub.linear import positive
from discreet.errors import InvalidArgument

_TINY = 1e-9

_SERVERS_DIFFER = 0.05
"""Variance of a taste's mean moment between servers, compared with that between tastes."""


@dataclass(frozen=True, slots=True, eq=False)
class Posted:
    """A letter, who sent it, and how it was privatised (which is public)."""

    server: str
    letter: Letter
    privatizer: Privatizer


@dataclass(frozen=True, slots=True, eq=False)
class Consensus:
    """What the letters say: users' clusters, and knowledge by server and cluster.

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
        """Return what the other servers' letters tell about each cluster."""
        others = np.array([name != server for name in self.servers], dtype=np.bool_)
        return Knowledge(
            self.shares.matrix[others].sum(axis=0), self.shares.vector[others].sum(axis=0)
        )

    def groups(self, server: str) -> dict[int, int]:
        """Return the cluster of each user whom the server has introduced."""
        return {user: label for (name, user), label in self.labels.items() if name == server}


def consensus(
    posted: Sequence[Posted], *, clustering: Clustering, reward_variance: float
) -> Consensus:
    """Return what all letters together say."""
    if not posted:
        raise InvalidArgument("posted", "there must be at least one letter")
    if not (np.isfinite(reward_variance) and reward_variance > 0):
        raise InvalidArgument("reward_variance", "must be finite and greater than 0")
    shapes = {(each.privatizer.dimensions, each.privatizer.baseline) for each in posted}
    if len(shapes) > 1:
        raise InvalidArgument("posted", "letters must agree on their dimensions and baseline")
    knowledge = worth(posted, variety=clustering.variety, reward_variance=reward_variance)
    moments, variety = mean_moments(posted)
    servers = tuple(sorted({each.server for each in posted}))
    # All letters of one server about the same users are one voice.
    voices = [(each.server, tuple(sorted(each.letter.members))) for each in posted]
    place = {voice: number for number, voice in enumerate(dict.fromkeys(voices))}
    speaks = np.array([place[voice] for voice in voices], dtype=np.int64)
    alike = Clustering(variety=variety, margin=clustering.margin, sweeps=clustering.sweeps)
    labels = alike.labels(users=moments.totals(speaks, len(place)))
    clusters = int(labels.max()) + 1
    rows = np.array([servers.index(each.server) for each in posted])
    columns = labels[speaks]
    cells = knowledge.totals(rows * clusters + columns, len(servers) * clusters)
    dimensions = cells.vector.shape[-1]
    counts = np.zeros((len(servers), clusters))
    np.add.at(counts, (rows, columns), [float(each.letter.count) for each in posted])
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


def mean_moments(posted: Sequence[Posted]) -> tuple[Knowledge, float]:
    """Return what each letter tells about its members' mean moment, and how these vary at all.

    A letter's mean moment has the variance of its noise, that of its observations (a centred
    reward is at most h, so at most h^2 / d a coordinate for |x| <= 1), and a part for servers that
    show the same taste different things.
    """
    sums = [each.privatizer.sums(each.letter.steps) for each in posted]
    moments = np.array([each.moment for each in sums])
    counts = np.array([each.count for each in sums], dtype=np.float64)
    dimensions = moments.shape[1]
    baseline = posted[0].privatizer.baseline
    sampling = max(baseline, 1 - baseline) ** 2 / dimensions
    noise = np.array([each.privatizer.moment_scale**2 for each in posted])
    variance = (noise + sampling * counts) / counts**2
    means = moments / counts[:, None]
    # Letters that are mostly noise have little to say about how tastes vary.
    weight = 1 / variance
    beyond = weight * ((means**2).mean(axis=1) - variance)
    variety = max(float(beyond.sum() / weight.sum()), _TINY)
    precision = 1 / (variance + _SERVERS_DIFFER * variety)
    matrix = precision[:, None, None] * np.eye(dimensions)
    return Knowledge(matrix, precision[:, None] * means), variety


def worth(posted: Sequence[Posted], *, variety: float, reward_variance: float) -> Knowledge:
    """Return what each letter tells about its members' preference vector."""
    sums = [each.privatizer.sums(each.letter.steps) for each in posted]
    grams = np.array([each.gram for each in sums])
    moments = np.array([each.moment for each in sums])
    counts = np.array([each.count for each in sums], dtype=np.float64)
    gram_noise = np.array([each.privatizer.gram_scale**2 for each in posted])
    moment_noise = np.array([each.privatizer.moment_scale**2 for each in posted])
    better, error = _denoised(grams, counts, gram_noise)
    floor = _TINY * counts
    matrices = np.empty_like(grams)
    vectors = np.empty_like(moments)
    for place in range(len(posted)):
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
    mean = positive(grams.sum(axis=0) / counts.sum(), floor=0.0)
    typical = counts[:, None, None] * mean
    excess = (grams - typical) ** 2 - noise[:, None, None]
    # How much the share of an entry varies from letter to letter, beyond noise; never taken to be
    # less than a thousandth of its largest possible size, so that a large letter is believed.
    varies = np.maximum(excess.sum(axis=0) / (counts**2).sum(), 1e-6)
    room = varies * counts[:, None, None] ** 2
    kept = room / (room + noise[:, None, None])
    return typical + kept * (grams - typical), kept * noise[:, None, None]


def _symmetric(matrix: Floats) -> Floats:
    half: Floats = (matrix + matrix.T) / 2
    return half
