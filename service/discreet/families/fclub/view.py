"""What the global server tells a local one, as it is sent and kept: believing nothing of it.

    {"version": 7, "matrices": [[…], …], "vectors": [[…], …], "users": [0, …], "labels": [2, …]}

Matrices and vectors are the other servers' knowledge of each cluster (upper triangles, row by row);
users are those whom this server introduced, labels the clusters they were put into.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.families.fclub.evidence import Knowledge
from discreet.families.fclub.linear import positive
from discreet.families.fclub.recommender import ClusterRecommender
from discreet.errors import InvalidArgument
from discreet.privacy.matrices import half_size

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

MOST_CLUSTERS = 4_096
MOST_NUMBER = 2**31
_LARGEST = 1e15
"""No knowledge is that certain: it would take 10**14 observations."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """`foreign` is knowledge by cluster; `groups` the cluster of each user who was introduced."""

    version: int
    foreign: Knowledge
    groups: dict[int, int]

    def encode(self) -> bytes:
        """Return the message."""
        rows, columns = np.triu_indices(self.foreign.vector.shape[-1])
        return json.dumps(
            {
                "version": self.version,
                "matrices": self.foreign.matrix[:, rows, columns].tolist(),
                "vectors": self.foreign.vector.tolist(),
                "users": list(self.groups),
                "labels": list(self.groups.values()),
            },
            separators=(",", ":"),
        ).encode()


def read_view(content: bytes, *, dimensions: int) -> View:
    """Return a view that was sent or stored; raise `InvalidArgument` for what cannot be one."""
    try:
        fields = json.loads(content, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise _malformed() from None
    if not isinstance(fields, dict) or set(fields) != {
        "version",
        "matrices",
        "vectors",
        "users",
        "labels",
    }:
        raise _malformed()
    vectors = _numbers(fields["vectors"], dimensions)
    halves = _numbers(fields["matrices"], half_size(dimensions))
    if len(halves) != len(vectors):
        raise _malformed()
    rows, columns = np.triu_indices(dimensions)
    matrices = np.zeros((len(halves), dimensions, dimensions))
    matrices[:, rows, columns] = matrices[:, columns, rows] = halves
    for place in range(len(matrices)):
        # Rounding, or malice, must not make what we add to our own knowledge indefinite.
        matrices[place] = positive(matrices[place], floor=0.0)
    users, labels = _whole(fields["users"]), _whole(fields["labels"])
    if len(users) != len(labels) or len(set(users)) != len(users):
        raise _malformed()
    (version,) = _whole([fields["version"]])
    return View(version, Knowledge(matrices, vectors), dict(zip(users, labels, strict=True)))


async def stored_view(runtime: "Runtime", recommender: ClusterRecommender) -> View | None:
    """Return what the global server told last, if anything that can be read."""
    (blob,) = await runtime.store.load(keys=[recommender.key(b"view")])
    if blob is None:
        return None
    try:
        return read_view(blob.content, dimensions=recommender.dimensions)
    except InvalidArgument:
        return None  # written by another version; the next download replaces it


def _numbers(value: Any, width: int) -> "np.ndarray[Any, np.dtype[np.float64]]":
    if not isinstance(value, list) or len(value) > MOST_CLUSTERS:
        raise _malformed()
    for row in value:
        if not isinstance(row, list) or len(row) != width:
            raise _malformed()
        if not all(type(one) in (int, float) and -_LARGEST <= one <= _LARGEST for one in row):
            raise _malformed()
    return np.array(value, dtype=np.float64).reshape(-1, width)


def _whole(value: Any) -> list[int]:
    if not isinstance(value, list):
        raise _malformed()
    if not all(type(one) is int and 0 <= one < MOST_NUMBER for one in value):
        raise _malformed()
    return value


def _refuse(name: str) -> float:
    raise ValueError(name)  # NaN and the infinities are not JSON, whatever json.loads thinks


def _malformed() -> InvalidArgument:
    return InvalidArgument("view", "is not one that a global server of ours sends")
