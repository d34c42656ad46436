"""What nodes tell each other, and how each moves towards its neighbours. All of it was released.

A node asks its neighbours for their sums every few seconds and replaces its own by a weighted mean.
If the matrix of all nodes' weights is doubly stochastic, the mean over all nodes never changes, and
the nodes come together. Metropolis weights are such a matrix, and a node can compute its row from
its own degree and its neighbours':

    a_ij = 1 / (1 + max(degree_i, degree_j)) for neighbours,   a_ii = 1 - the others.

A neighbour that does not answer is left out of the round: its weight returns to the diagonal. If
neither of two nodes reached the other, the matrix stays doubly stochastic; if only one did, its row
still sums to 1: the nodes still come together, with the mean moved a little.

Releasing and mixing replace two different blobs. The releaser's holds the node's own sums; the
other holds what mixing added: mixed sums less the own ones of that moment. A node's sums are both
together, so a release that comes while neighbours are being asked is added in full, and a round
that comes while noise is being drawn is not undone.

A message is a header and, unless the neighbour has seen this revision, a 32-bit float a feature:

    magic, revision, dimension, degree, count, squares
"""

import asyncio
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
from pydantic_core import to_json

from discreet.errors import InvalidArgument, PeerUnavailable
from discreet.families.mirror_descent.document import NeighbourDocument
from discreet.families.mirror_descent.model import NodeSums, combined
from discreet.families.observer import FamilyGauge, Observer
from discreet.families.peering import PeerGateway

_HEAD = struct.Struct("<4s16sIHdd")
_MAGIC = b"DMD2"
REVISION_BYTES = 16
MOST_SUM = 1e30

_STILL = 1e-4
_EXACT = 1e-6
"""A round changes nothing if it moves no sum by more than this share of the noise, or of the
largest sum: messages are written in 32 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelMessage:
    """A node's sums. `gradients` is None in a message that says: nothing new."""

    revision: bytes
    dimension: int
    degree: int
    count: float
    squares: float
    gradients: npt.NDArray[np.float32] | None

    def shortened(self, seen: bytes) -> "ModelMessage":
        """Return the message without what the neighbour has seen."""
        return replace(self, gradients=None) if seen == self.revision else self

    def encode(self) -> bytes:
        """Return the message as bytes."""
        head = _HEAD.pack(
            _MAGIC, self.revision, self.dimension, self.degree, self.count, self.squares
        )
        return head if self.gradients is None else head + self.gradients.astype("<f4").tobytes()


def write_message(sums: NodeSums, *, revision: bytes, degree: int) -> ModelMessage:
    """Return what a node with these sums and so many neighbours tells."""
    gradients = sums.gradients.astype(np.float32)
    return ModelMessage(revision, len(gradients), degree, sums.count, sums.squares, gradients)


def read_message(content: bytes, *, dimension: int) -> ModelMessage:
    """Return a neighbour's message; raise `InvalidArgument` for what cannot be mixed into ours."""
    if len(content) not in (_HEAD.size, _HEAD.size + 4 * dimension):
        raise InvalidArgument("message", "is of another size")
    magic, revision, stated, degree, count, squares = _HEAD.unpack_from(content)
    if magic != _MAGIC or stated != dimension:
        raise InvalidArgument("message", "is about other features")
    if not (0 <= count <= MOST_SUM and 0 <= squares <= MOST_SUM):  # a NaN is not at most anything
        raise InvalidArgument("message", "has an impossible count")
    gradients = None
    if len(content) > _HEAD.size:
        gradients = np.frombuffer(content, dtype="<f4", offset=_HEAD.size).astype(np.float32)
        if not np.abs(gradients).max(initial=0.0) <= MOST_SUM:
            raise InvalidArgument("message", "has impossible sums")
    return ModelMessage(revision, stated, degree, count, squares, gradients)


def neighbour_weights(degrees: Mapping[str, int], answered: Sequence[str]) -> Mapping[str, float]:
    """Return the weight of each neighbour that answered, seen from one node.

    `degrees` has every configured neighbour, with how many neighbours it has itself. The rest, up
    to 1, is the node's own.
    """
    own = len(degrees)
    return {name: 1 / (1 + max(own, degrees[name])) for name in answered}


class ModelExchange:
    """Answers neighbours with the model that this worker holds."""

    PURPOSE: ClassVar[str] = "models for neighbours"

    def __init__(
        self, *, name: str, message: Callable[[], ModelMessage], observer: Observer
    ) -> None:
        self._name = name
        self._message = message
        self._observer = observer

    def answer(self, *, peer: str, seen: bytes) -> bytes:
        """Return the message for a neighbour that has `seen` this revision, if any."""
        content = self._message().shortened(seen).encode()
        self._observer.exchanged(
            recommender=self._name,
            peer=peer,
            direction="received",
            outcome="answered",
            size=len(content),
        )
        return content


class NeighbourNodes:
    """Asks all neighbours of a node, and remembers what each said last."""

    def __init__(
        self,
        *,
        name: str,
        documents: Sequence[NeighbourDocument],
        dimension: int,
        peers: PeerGateway,
        observer: Observer,
    ) -> None:
        self._name = name
        self._documents = documents
        self._dimension = dimension
        self._peers = peers
        self._observer = observer
        self._last: dict[str, ModelMessage] = {}

    async def ask_all(self) -> dict[str, ModelMessage]:
        """Return the message of every neighbour that answered; what is not new is remembered."""
        answers = await asyncio.gather(*(self._ask(one) for one in self._documents))
        messages: dict[str, ModelMessage] = {}
        states = {"fresh": 0, "stale": 0, "missing": 0}
        for neighbour, answer in zip(self._documents, answers, strict=True):
            before = self._last.get(neighbour.name)
            if answer is not None and answer.gradients is None and before is not None:
                answer = replace(before, degree=answer.degree)
                states["stale"] += 1
            elif answer is None or answer.gradients is None:
                states["missing"] += 1
                continue
            else:
                states["fresh"] += 1
            messages[neighbour.name] = self._last[neighbour.name] = answer
        for state, value in states.items():
            self._observer.gauge(
                recommender=self._name, what=FamilyGauge.NEIGHBOURS, value=value, label=state
            )
        return messages

    def mix(self, sums: NodeSums, messages: Mapping[str, ModelMessage]) -> NodeSums | None:
        """Return a node's sums after a round; None if the round changes nothing."""
        degrees = {
            one.name: messages[one.name].degree if one.name in messages else 0
            for one in self._documents
        }
        weights = neighbour_weights(degrees, list(messages))
        parts = [(1 - sum(weights.values()), sums)]
        for name, message in messages.items():
            assert message.gradients is not None
            theirs = NodeSums(message.gradients, message.count, message.squares)
            parts.append((weights[name], theirs))
        mixed = combined(parts)
        size = np.abs(mixed.gradients)
        moved = float(np.abs(mixed.gradients - sums.gradients).max(initial=0.0))
        still = moved <= _STILL * float(np.median(size)) + _EXACT * float(size.max(initial=0.0))
        if still and abs(mixed.count - sums.count) <= 0.5 + _STILL * mixed.count:
            return None
        return mixed

    async def _ask(self, neighbour: NeighbourDocument) -> ModelMessage | None:
        """Return a neighbour's message, or None if there is none that can be used."""
        if not self._peers.reachable(neighbour.name):
            return None
        before = self._last.get(neighbour.name)
        content = to_json({"seen": "" if before is None else before.revision.hex()})
        name = quote(neighbour.recommender or self._name, safe="")
        outcome, message = "refused", None
        try:
            status, body = await self._peers.post(
                peer=neighbour.name,
                url=f"{neighbour.url}/peers/recommenders/{name}/models",
                content=content,
            )
            if status == 200:
                message = await asyncio.to_thread(read_message, body, dimension=self._dimension)
                outcome = "answered"
            else:
                self._peers.distrust(peer=neighbour.name)
        except PeerUnavailable as failure:
            outcome = failure.reason
        except InvalidArgument:
            outcome = "malformed"
            self._peers.distrust(peer=neighbour.name)
        self._observer.exchanged(
            recommender=self._name,
            peer=neighbour.name,
            direction="sent",
            outcome=outcome,
            size=len(content),
        )
        return message
