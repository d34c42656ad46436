"""The released model of a node, and how questions are ranked by it. Pure.

What a node knows are sums over releases. Release k adds the noisy gradients G_k of about n_k
records (n_k is noisy as well). All G_k have the same noise, however many records they are made
from, so they are weighted by n_k, as a matched filter does:

    theta = (sum of n_k G_k) * (sum of n_k) / (sum of n_k^2).

Equal releases are added up as they are; one that hardly anybody contributed to, in a quiet night,
adds hardly any noise. All three sums are additive, over releases and over nodes, so that mixing
nodes' sums mixes what is known in the same proportion.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from discreet.families.choice import (
    COIN_BYTES,
    COIN_SIDES,
    UtilityChoice,
    uniform_integers,
)
from discreet.families.mirror_descent.sparse import (
    Crossing,
    Floats,
    SparseRow,
    SparseRows,
    joined,
)
from discreet.families.questions import Choice, Question
from discreet.privacy.draw import draw_below
from discreet.privacy.noise import NoiseSource

Weights = npt.NDArray[np.float32]
Gradients = npt.NDArray[np.floating]

_HEAD = struct.Struct("<dd")
_MOST_CROSSED = 2**20
"""Numbers that are worked out ahead for a catalogue."""
_SEED_BITS = 64


@dataclass(frozen=True, slots=True, eq=False)
class NodeSums:
    """Sums over releases: of n_k G_k by feature, of n_k, and of n_k squared."""

    gradients: Gradients
    count: float = 0.0
    squares: float = 0.0

    @property
    def theta(self) -> Floats:
        """Return the gradients of `count` records, as the weighted releases estimate them."""
        if self.squares <= 0:
            return np.zeros(len(self.gradients))
        result: Floats = self.gradients.astype(np.float64) * (self.count / self.squares)
        return result

    def encode(self) -> bytes:
        """Return the sums as bytes."""
        return _HEAD.pack(self.count, self.squares) + self.gradients.astype("<f8").tobytes()


def blank_sums(dimension: int) -> NodeSums:
    """Return the sums before the first release."""
    return NodeSums(np.zeros(dimension))


def combined(parts: Sequence[tuple[float, NodeSums]]) -> NodeSums:
    """Return the sum of the parts, each multiplied by its factor."""
    gradients = np.zeros(len(parts[0][1].gradients))
    for factor, part in parts:
        gradients += factor * part.gradients
    return NodeSums(
        gradients,
        sum(factor * part.count for factor, part in parts),
        sum(factor * part.squares for factor, part in parts),
    )


def read_sums(content: bytes, dimension: int) -> NodeSums:
    """Return the sums that `NodeSums.encode` wrote, or raise `ValueError`."""
    if len(content) != _HEAD.size + 8 * dimension:
        raise ValueError("sums of another number of features")
    count, squares = _HEAD.unpack_from(content)
    gradients = np.frombuffer(content, dtype="<f8", offset=_HEAD.size)
    if not np.isfinite([count, squares]).all() or not np.isfinite(gradients).all():
        raise ValueError("sums that are not finite")
    return NodeSums(gradients.astype(np.float64), count, squares)


class CrossedRows:
    """Rows as a model sees them once they are crossed with a client's features.

    w.x of a crossed row is linear in the item and in the client, so no crossed row is made: what a
    client's feature adds to each row's w.x is a vector, and there is one for every feature. They
    are made `ahead` for all features if they are few, whichever features clients have.
    """

    def __init__(
        self, crossing: Crossing, weights: Weights, rows: SparseRows, *, ahead: bool
    ) -> None:
        self._crossing = crossing
        self._rows = rows
        self._places = crossing.clients + rows.indices
        self.squares = rows.sums(rows.values**2)
        self._plain = rows.sums(weights[self._places] * rows.values)
        self._filled = np.flatnonzero(rows.lengths)
        self._by_feature: Floats | None = None
        if ahead and crossing.clients * max(len(rows.indices), len(rows)) <= _MOST_CROSSED:
            self._by_feature = self._of(weights, np.arange(crossing.clients))

    def _of(self, weights: Weights, features: npt.NDArray[np.int64]) -> Floats:
        """Return what these features of a client add to each row, alone and by their products."""
        found = np.empty((len(features), len(self._rows)))
        found[:] = weights[features, None]
        if len(self._filled):
            shifts = self._crossing.items * (1 + features)
            products = weights[self._places + shifts[:, None]] * self._rows.values
            # Row by row, so that equal rows have equal sums.
            starts = self._rows.offsets[self._filled]
            found[:, self._filled] += np.add.reduceat(products, starts, axis=1)
        return found

    def margins(self, weights: Weights, clients: SparseRows) -> Floats:
        """Return w.x of every row crossed with each client's features, a row a client."""
        found = np.empty((len(clients), len(self._rows)))
        found[:] = self._plain
        told, ends = clients.lengths.nonzero()[0], clients.offsets
        # So many features at a time that what they add is no larger than what is kept.
        at_once = max(1, _MOST_CROSSED // max(1, len(self._rows.indices), len(self._rows)))
        start = 0
        while start < len(told):
            first = ends[told[start]]
            end = max(start + 1, int(ends[told + 1].searchsorted(first + at_once, side="right")))
            some = told[start:end]
            entries = slice(int(first), int(ends[some[-1] + 1]))
            indices, values = clients.indices[entries], clients.values[entries]
            known = self._by_feature
            parts = self._of(weights, indices) if known is None else known[indices]
            found[some] += np.add.reduceat(values[:, None] * parts, ends[some] - first, axis=0)
            start = end
        return found


@dataclass(frozen=True, slots=True, eq=False)
class MirrorModel:
    """What a node has released and answers from. Nothing in it is private.

    `own` is what this node released; `neighbours` is what mixing added to it or took away, None
    before the first round. `weights` rank, made from both; `deviation` is what was taken for the
    noise in theta. Margins beyond `reach` either way are all the same to the private choice.
    """

    own: NodeSums
    neighbours: NodeSums | None
    weights: Weights
    deviation: float = 0.0
    reach: float = 1.0
    nonzeros: int = field(init=False)
    """How many features count. Known once, for no request should look at a million weights."""
    _kept: list[tuple[SparseRows, CrossedRows]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nonzeros", int(np.count_nonzero(self.weights)))

    @property
    def mixed(self) -> NodeSums:
        """Return the sums that the weights were made from."""
        return with_neighbours(self.own, self.neighbours)

    def margins(self, rows: SparseRows) -> Floats:
        """Return w.x of every row: work for the entries of the rows, whatever the dimension."""
        return rows.sums(self.weights[rows.indices] * rows.values)

    def crossed(self, crossing: Crossing, rows: SparseRows, *, keep: bool) -> CrossedRows:
        """Return how this model sees rows that are crossed; worked out once for the catalogue."""
        for known, crossed in self._kept:
            if known is rows:
                return crossed
        made = CrossedRows(crossing, self.weights, rows, ahead=keep)
        if keep:
            self._kept[:] = [(rows, made)]
        return made


def with_neighbours(own: NodeSums, neighbours: NodeSums | None) -> NodeSums:
    """Return a node's own sums and what mixing added to them, together."""
    return own if neighbours is None else combined([(1.0, own), (1.0, neighbours)])


@dataclass(slots=True, eq=False)
class MirrorQuestion(Question):
    """What is to be ranked, a row each: `slots` of the catalogue, or `ids` of the caller's own.

    `personal` says whether the request says anything that may be about the client: features, or
    candidates with features. That it does is public; what it says is not.
    """

    features: SparseRow
    rows: SparseRows
    slots: npt.NDArray[np.intp]
    ids: tuple[str, ...] | None
    personal: bool
    whole: bool = False
    """Whether the rows are the whole catalogue's, which others ask about too."""

    def __len__(self) -> int:
        return len(self.rows.offsets) - 1


@dataclass(frozen=True, slots=True)
class MirrorRanking:
    """How candidates are compared: `crossing` and `clip` as in learning, and the two dials.

    With probability `exploration` an answer is in random order, which looks at nobody: mixing it
    with a private draw costs nothing (`discreet.families.choice`).
    """

    crossing: Crossing | None
    clip: float
    exploration: float
    choice: UtilityChoice

    def rank(
        self, model: MirrorModel, questions: Sequence[MirrorQuestion], noise: NoiseSource
    ) -> list[tuple[Choice, ...]]:
        """Return the places of the best for each, drawn privately where the client is looked at.

        Those that ask about the same rows are ranked together.
        """
        together: dict[tuple[int, bool], list[int]] = {}
        for row, question in enumerate(questions):
            together.setdefault((id(question.rows), question.personal), []).append(row)
        ranked: list[tuple[Choice, ...]] = [()] * len(questions)
        for (_, personal), rows in together.items():
            asked = [questions[row] for row in rows]
            if not len(asked[0]):
                continue
            margins = self._margins(model, asked)
            choice = self.choice if personal else UtilityChoice(None)
            limits = [one.limit for one in asked]
            for row, drawn in zip(
                rows, self._drawn(model, margins, limits, choice, noise), strict=True
            ):
                ranked[row] = drawn
        return ranked

    def _drawn(
        self,
        model: MirrorModel,
        margins: Floats,
        limits: Sequence[int],
        choice: UtilityChoice,
        noise: NoiseSource,
    ) -> list[tuple[Choice, ...]]:
        """Return what each row of margins is answered with."""
        coins = [False] * len(limits)
        if self.exploration:
            side = self.exploration * COIN_SIDES
            coins = [tossed < side for tossed in uniform_integers(noise, len(limits), COIN_BYTES)]
        if choice.by_order or not model.nonzeros:
            return [
                self._in_random_order(model, margins[row], limits[row], choice, explores, noise)
                for row, explores in enumerate(coins)
            ]
        # For all of them, whether they explore or not. The order of equals makes no difference to
        # a draw by weights.
        drawn = choice.draw_each(_utilities(model, margins, choice), limits, noise)
        if not self.exploration:
            return drawn
        alike, rest = self.exploration / margins.shape[1], 1.0 - self.exploration
        return [
            self._explored(model, margins[row], limits[row], choice, noise)
            if explores
            else (Choice(first.slot, alike + rest * first.propensity), *others)
            for row, (explores, (first, *others)) in enumerate(zip(coins, drawn, strict=True))
        ]

    def _explored(
        self,
        model: MirrorModel,
        margins: Floats,
        limit: int,
        choice: UtilityChoice,
        noise: NoiseSource,
    ) -> tuple[Choice, ...]:
        """Return different places, each as likely as any other."""
        left = list(range(len(margins)))
        alike = 1.0 / len(left)
        count = min(choice.most_drawn(limit), len(left))
        first, *others = [left.pop(draw_below(len(left), noise)) for _ in range(count)]
        share = float(self._law(model, margins, choice)[first])
        return (Choice(first, share), *[Choice(place, alike) for place in others])

    def _in_random_order(
        self,
        model: MirrorModel,
        margins: Floats,
        limit: int,
        choice: UtilityChoice,
        explores: bool,
        noise: NoiseSource,
    ) -> tuple[Choice, ...]:
        # Equal margins are in random order, and so is everything before anything was learned.
        order = np.random.default_rng(noise.bits(_SEED_BITS)).permutation(len(margins))
        law = self._law(model, margins, choice)
        if explores or not model.nonzeros:
            count = min(choice.most_drawn(limit), len(margins))
            drawn = [Choice(at, 1 / len(margins)) for at in range(count)]
        else:
            drawn = list(choice.draw(_utilities(model, margins, choice)[order], limit, noise))
        # The first item's probability is over both ways to draw it; the others' given this way.
        return tuple(
            Choice(place, float(law[place]) if position == 0 else one.propensity)
            for position, one in enumerate(drawn)
            for place in (int(order[one.slot]),)
        )

    def law(self, model: MirrorModel, question: MirrorQuestion) -> Floats:
        """Return with which probability each row is the first of an answer."""
        choice = self.choice if question.personal else UtilityChoice(None)
        return self._law(model, self.margins(model, question), choice)

    def _law(self, model: MirrorModel, margins: Floats, choice: UtilityChoice) -> Floats:
        alike = np.full(len(margins), 1.0 / max(1, len(margins)))
        if not model.nonzeros or not len(margins):
            return alike
        utilities = _utilities(model, margins, choice)
        shares = choice.probabilities(utilities)
        equals = utilities == utilities.max()
        shares[equals] = shares[equals].mean()  # they are in random order
        law: Floats = self.exploration * alike + (1.0 - self.exploration) * shares
        return law

    def margins(self, model: MirrorModel, question: MirrorQuestion) -> Floats:
        """Return w.x of everything that may be recommended, features clipped as in learning."""
        margins: Floats = self._margins(model, [question])[0]
        return margins

    def _margins(self, model: MirrorModel, questions: Sequence[MirrorQuestion]) -> Floats:
        """Return the margins of questions about the same rows, a row each."""
        rows = questions[0].rows
        if self.crossing is None:
            # Nothing but the rows counts.
            return np.broadcast_to(model.margins(rows), (len(questions), len(rows)))
        crossed = model.crossed(self.crossing, rows, keep=questions[0].whole)
        clients = joined([question.features for question in questions])
        margins = crossed.margins(model.weights, clients)
        own = clients.sums(clients.values**2)[:, None]
        # The norm of a crossed row is sqrt((1 + |c|^2) (1 + |i|^2) - 1).
        lengths = np.sqrt((1 + own) * (1 + crossed.squares) - 1)
        margins *= np.minimum(1.0, self.clip / np.maximum(lengths, self.clip))
        return margins


def _utilities(model: MirrorModel, margins: Floats, choice: UtilityChoice) -> Floats:
    """Return what a draw compares: margins, or for a private one their place in [0, 1]."""
    if choice.by_order:
        return margins
    scaled: Floats = 0.5 + 0.5 * np.clip(margins / model.reach, -1.0, 1.0)
    return scaled
