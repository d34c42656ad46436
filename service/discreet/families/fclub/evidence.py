"""Who shares a preference vector, judged by evidence: sums in, clusters out.

What is known about a preference vector theta is kept in information form: a matrix A and a vector
a, with log-likelihood a.theta - theta.A.theta / 2 up to a constant. Independent pieces of knowledge
add up. Exact sums of a linear model with reward variance s2 have A = V/s2, a = b/s2; noisy updates
have less (`discreet.families.fclub.consensus`). Before anything is known theta is taken to be
normal around 0 with variance `variety` in each coordinate, which is itself such a piece: A = I /
variety, a = 0.

With f(A, a) = a.A^-1.a / 2 - ln det(A) / 2, the probability of data (A, a) given knowledge (Q, q)
is exp(f(Q + A, q + a) - f(Q, q)), up to a factor that does not depend on (Q, q). So the Bayes
factor between "this user has the cluster's vector" and "this user has one of their own" is a
difference of four such terms. It rewards agreement, punishes contradiction, and is near 1 while
there is little to compare: no thresholds on distances or counts are needed.

`Clustering` starts with everybody alone and joins, again and again, the two clusters with the
largest Bayes factor while that is above `margin`: what is certain comes first, and makes the next
comparison sharper. That takes n^2 steps, so with many users it is done for the `seeds` best known,
and everybody else is then placed in one go. Sweeps finally move everybody to where they fit best
without themselves.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

_BLOCK_CELLS = 1 << 21
"""Numbers in a block of matrices: 16 MiB."""


def potential(matrix: Floats, vector: Floats) -> Floats:
    """Return f(A, a) for stacks of positive definite matrices and vectors."""
    root = np.linalg.cholesky(matrix)
    half = np.linalg.solve(root, vector[..., None])[..., 0]
    logs = np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
    found: Floats = 0.5 * (half * half).sum(axis=-1) - logs
    return found


def widened(matrix: Floats, vector: Floats, spread: float) -> tuple[Floats, Floats]:
    """Return the knowledge about somebody who differs from this by `spread` in each coordinate.

    The variance A^-1 becomes A^-1 + spread^2 I, the mean stays.
    """
    loosened = np.eye(matrix.shape[-1]) + spread**2 * matrix
    wide: Floats = np.asarray(np.linalg.solve(loosened, matrix), dtype=np.float64)
    shifted = np.asarray(np.linalg.solve(loosened, vector[..., None])[..., 0], dtype=np.float64)
    return (wide + np.swapaxes(wide, -1, -2)) / 2, shifted


@dataclass(frozen=True, slots=True, eq=False)
class Knowledge:
    """Information about one vector, or about several: leading axes are stacks."""

    matrix: Floats
    vector: Floats

    def __post_init__(self) -> None:
        order = self.vector.shape[-1] if self.vector.ndim else 0
        if order < 1 or self.matrix.shape != (*self.vector.shape, order):
            raise InvalidArgument("matrix", "must be square and of the vector's length")

    def __getitem__(self, place: int | slice | Labels | npt.NDArray[np.bool_]) -> "Knowledge":
        return Knowledge(self.matrix[place], self.vector[place])

    def __add__(self, other: "Knowledge") -> "Knowledge":
        return Knowledge(self.matrix + other.matrix, self.vector + other.vector)

    def __len__(self) -> int:
        return len(self.vector)

    @classmethod
    def nothing(cls, *, dimensions: int, pieces: int | None = None) -> "Knowledge":
        """Return no information at all, or a stack of that."""
        lead = () if pieces is None else (pieces,)
        return cls(np.zeros((*lead, dimensions, dimensions)), np.zeros((*lead, dimensions)))

    def totals(self, labels: Labels, parts: int) -> "Knowledge":
        """Return the sum over each part of a partition of this stack."""
        total = Knowledge.nothing(dimensions=self.vector.shape[-1], pieces=parts)
        np.add.at(total.matrix, labels, self.matrix)
        np.add.at(total.vector, labels, self.vector)
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Clustering:
    """The rule. `variety` is the prior variance of a coordinate, `margin` the log-odds to join."""

    variety: float
    margin: float = 1.0
    sweeps: int = 2
    seeds: int = 128

    def __post_init__(self) -> None:
        if not (np.isfinite(self.variety) and self.variety > 0):
            raise InvalidArgument("variety", "must be finite and greater than 0")
        if not (np.isfinite(self.margin) and self.margin >= 0):
            raise InvalidArgument("margin", "must be finite and not negative")
        if self.sweeps < 0 or self.seeds < 1:
            raise InvalidArgument("seeds", "must be at least 1, and sweeps not negative")

    def prior(self, dimensions: int) -> Floats:
        """Return the matrix of what is known about anybody."""
        return np.eye(dimensions) / self.variety

    def factors(self, *, users: Knowledge, clusters: Knowledge) -> Floats:
        """Return the log Bayes factor of every user (row) with every cluster (column)."""
        dimensions = users.vector.shape[-1]
        prior = self.prior(dimensions)
        alone = potential(prior + users.matrix, users.vector) - potential(
            prior, np.zeros(dimensions)
        )
        known = prior + clusters.matrix
        before = potential(known, clusters.vector)
        rows = max(1, _BLOCK_CELLS // (max(1, len(clusters)) * dimensions**2))
        found = np.empty((len(users), len(clusters)))
        for start in range(0, len(users), rows):
            block = slice(start, start + rows)
            together = potential(
                known + users.matrix[block, None], clusters.vector + users.vector[block, None]
            )
            found[block] = together - before - alone[block, None]
        return found

    def labels(self, *, users: Knowledge, known: Knowledge | None = None) -> Labels:
        """Return each user's cluster.

        The first `len(known)` numbers are the clusters that were known before, which users may
        join; those who found or join another are numbered from there, by first member.
        """
        if not len(users):
            return np.zeros(0, dtype=np.int64)
        dimensions = users.vector.shape[-1]
        fixed = known if known is not None else Knowledge.nothing(dimensions=dimensions, pieces=0)
        labels, total = self._found(users, fixed)
        for _ in range(self.sweeps):
            moved = self._sweep(users, fixed, labels, total)
            if np.array_equal(moved, labels):
                break
            labels = moved
            total = self._totals(users, fixed, labels)
        return _renumbered(labels, len(fixed))

    def _totals(self, users: Knowledge, fixed: Knowledge, labels: Labels) -> Knowledge:
        parts = max(len(fixed), int(labels.max(initial=-1)) + 1)
        total = users.totals(labels, parts)
        total.matrix[: len(fixed)] += fixed.matrix
        total.vector[: len(fixed)] += fixed.vector
        return total

    def _found(self, users: Knowledge, fixed: Knowledge) -> tuple[Labels, Knowledge]:
        """Join the best known users two by two, the most alike first; then place the others."""
        prior = self.prior(users.vector.shape[-1])
        size = np.linalg.slogdet(prior + users.matrix)[1]
        order = np.argsort(-size, kind="stable")
        labels: Labels = np.full(len(users), -1, dtype=np.int64)
        seeds = order[: self.seeds]
        labels[seeds] = self._joined(users[seeds], fixed)
        labels[seeds] = _renumbered(labels[seeds], len(fixed))
        rest = order[self.seeds :]
        if len(rest):
            total = self._totals(users[seeds], fixed, labels[seeds])
            factors = self.factors(users=users[rest], clusters=total)
            best = factors.argmax(axis=1)
            joins = factors[np.arange(len(rest)), best] > self.margin
            labels[rest] = np.where(joins, best, len(total) + np.arange(len(rest)))
        return labels, self._totals(users, fixed, labels)

    def _joined(self, users: Knowledge, fixed: Knowledge) -> Labels:
        """Return clusters by joining, again and again, the two that are most likely to be one."""
        prior = self.prior(users.vector.shape[-1])
        matrix = prior + np.concatenate([fixed.matrix, users.matrix])
        vector = np.concatenate([fixed.vector, users.vector])
        alone = potential(matrix, vector)
        nobody = float(potential(prior, np.zeros(len(prior))))
        members: Labels = np.arange(len(vector), dtype=np.int64)

        def factors(node: int) -> Floats:
            together = potential(matrix + (matrix[node] - prior), vector + vector[node])
            found: Floats = together - alone - alone[node] + nobody
            return found

        table = np.array([factors(node) for node in range(len(vector))])
        np.fill_diagonal(table, -np.inf)
        table[: len(fixed), : len(fixed)] = -np.inf
        while True:
            one, other = sorted(divmod(int(table.argmax()), len(table)))
            if not table[one, other] > self.margin:
                break
            matrix[one] += matrix[other] - prior
            vector[one] += vector[other]
            alone[one] = potential(matrix[one], vector[one])
            members[members == other] = one
            gone = np.isneginf(table[one]) & np.isneginf(table[other])
            table[other], table[:, other] = -np.inf, -np.inf
            fresh = factors(one)
            fresh[gone] = -np.inf
            fresh[other] = fresh[one] = -np.inf
            if one < len(fixed):
                fresh[: len(fixed)] = -np.inf
            table[one], table[:, one] = fresh, fresh
        return members[len(fixed) :]

    def _sweep(
        self, users: Knowledge, fixed: Knowledge, labels: Labels, total: Knowledge
    ) -> Labels:
        """Move every user to the cluster that fits best without counting the user in it."""
        sizes = np.bincount(labels, minlength=len(total))
        sizes[: len(fixed)] += 2  # a cluster known from elsewhere stands without members of ours
        real = np.flatnonzero(sizes > 1)
        if len(real) == 0:
            return labels
        factors = self.factors(users=users, clusters=total[real])
        inside = np.flatnonzero(sizes[labels] > 1)
        without = Knowledge(
            total.matrix[labels[inside]] - users.matrix[inside],
            total.vector[labels[inside]] - users.vector[inside],
        )
        factors[inside, np.searchsorted(real, labels[inside])] = self._pairs(users[inside], without)
        best = factors.argmax(axis=1)
        joins = factors[np.arange(len(users)), best] > self.margin
        fresh = len(total) + np.arange(len(users))
        lonely = np.where(sizes[labels] == 1, labels, fresh)
        moved: Labels = np.where(joins, real[best], lonely).astype(np.int64)
        return moved

    def _pairs(self, users: Knowledge, clusters: Knowledge) -> Floats:
        """Return the log Bayes factor of each user with the cluster in the same place."""
        dimensions = users.vector.shape[-1]
        prior = self.prior(dimensions)
        found: Floats = (
            potential(prior + users.matrix + clusters.matrix, users.vector + clusters.vector)
            - potential(prior + clusters.matrix, clusters.vector)
            - potential(prior + users.matrix, users.vector)
            + potential(prior, np.zeros(dimensions))
        )
        return found


def _renumbered(labels: Labels, fixed: int) -> Labels:
    """Keep the first numbers, and close the gaps behind them."""
    others = labels >= fixed
    labels = labels.copy()
    if others.any():
        labels[others] = fixed + numbered(labels[others])
    return labels


def numbered(labels: Labels) -> Labels:
    """Return the same partition with parts numbered 0, 1, 2, … by their first member."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))
    renamed: Labels = order[inverse.reshape(-1)].astype(np.int64)
    return renamed
