"""What the global server tells a local one, as it is sent and kept; nothing of it is trusted.

    {"version": 7, "matrices": [[…], …], "vectors": [[…], …], "counts": [1200, …],
     "members": [0, …], "labels": [2, …]}

Matrices and vectors are the other servers' knowledge of each cluster (upper triangles, row by row),
counts their observations; members are those whom this server introduced, labels their clusters.
"""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.families.fclub.evidence import Floats, Knowledge
from discreet.families.fclub.linear import positive
from discreet.families.fclub.sums import folded, unfolded
from discreet.privacy.matrices import half_size
from discreet.state.stores import Blobs

MOST_CLUSTERS = 4_096
MOST_NUMBER = 2**31
_LARGEST = 1e15
"""No knowledge is that certain: it would take 10**14 observations."""
_FIELDS = {"version", "matrices", "vectors", "counts", "members", "labels"}


@dataclass(frozen=True, slots=True, eq=False)
class MergedModel:
    """Other servers' knowledge by cluster, and the cluster of each member of ours."""

    version: int
    foreign: Knowledge
    counts: Floats
    groups: dict[int, int]

    def encode(self) -> bytes:
        """Return the message."""
        return json.dumps(
            {
                "version": self.version,
                "matrices": folded(self.foreign.matrix).tolist(),
                "vectors": self.foreign.vector.tolist(),
                "counts": self.counts.tolist(),
                "members": list(self.groups),
                "labels": list(self.groups.values()),
            },
            separators=(",", ":"),
        ).encode()


def read_merged_model(content: bytes, *, dimensions: int) -> MergedModel:
    """Return what was sent or stored; raise `InvalidArgument` for what cannot be a merged model."""
    try:
        fields = json.loads(content, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise _malformed() from None
    if not isinstance(fields, dict) or set(fields) != _FIELDS:
        raise _malformed()
    vectors = _rows(fields["vectors"], dimensions)
    halves = _rows(fields["matrices"], half_size(dimensions))
    if not isinstance(fields["counts"], list):
        raise _malformed()
    counts = _rows([[one] for one in fields["counts"]], 1)[:, 0]
    if not len(halves) == len(vectors) == len(counts):
        raise _malformed()
    matrices = unfolded(halves, dimensions)
    for place in range(len(matrices)):
        # Rounding, or malice, must not make what we add to our own knowledge indefinite.
        matrices[place] = positive(matrices[place], floor=0.0)
    members, labels = _whole(fields["members"]), _whole(fields["labels"])
    if len(members) != len(labels) or len(set(members)) != len(members):
        raise _malformed()
    if any(label >= len(vectors) for label in labels):
        raise _malformed()
    (version,) = _whole([fields["version"]])
    groups = dict(zip(members, labels, strict=True))
    return MergedModel(version, Knowledge(matrices, vectors), np.maximum(counts, 0.0), groups)


@dataclass(frozen=True, slots=True)
class MergedModelStore:
    """Where a local server keeps what it was told last."""

    store: Blobs
    key: bytes
    dimensions: int

    async def load(self) -> MergedModel | None:
        """Return what the global server told last, if it can be read."""
        (blob,) = await self.store.load(keys=[self.key])
        if blob is None:
            return None
        try:
            return read_merged_model(blob.content, dimensions=self.dimensions)
        except InvalidArgument:
            return None  # written by another version; the next download replaces it

    async def save(self, content: bytes) -> None:
        """Keep a message that `read_merged_model` has read."""
        await self.store.save(key=self.key, content=content)


def _rows(value: Any, width: int) -> Floats:
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
    return InvalidArgument("merged model", "is not one that a global server of ours sends")
