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

from discreet.families.choice import UtilityChoice
from discreet.families.mirror_descent.sparse import Crossing, Floats, SparseRows
from discreet.families.questions import Choice, Question
from discreet.privacy.noise import NoiseSource

Weights = npt.NDArray[np.float32]
Gradients = npt.NDArray[np.floating]

_HEAD = struct.Struct("<dd")
_COIN_BITS = 32
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "nonzeros", int(np.count_nonzero(self.weights)))

    @property
    def mixed(self) -> NodeSums:
        """Return the sums that the weights were made from."""
        return with_neighbours(self.own, self.neighbours)

    def margins(self, rows: SparseRows) -> Floats:
        """Return w.x of every row: work for the entries of the rows, whatever the dimension."""
        return rows.sums(self.weights[rows.indices] * rows.values)


def with_neighbours(own: NodeSums, neighbours: NodeSums | None) -> NodeSums:
    """Return a node's own sums and what mixing added to them, together."""
    return own if neighbours is None else combined([(1.0, own), (1.0, neighbours)])


@dataclass(frozen=True, slots=True, eq=False)
class MirrorQuestion(Question):
    """What is to be ranked, a row each: `slots` of the catalogue, or `ids` of the caller's own.

    `personal` says whether the request says anything that may be about the client: features, or
    candidates with features. That it does is public; what it says is not.
    """

    features: SparseRows
    rows: SparseRows
    slots: npt.NDArray[np.intp]
    ids: tuple[str, ...] | None
    personal: bool

    def __len__(self) -> int:
        return len(self.rows)


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
        """Return the places of the best for each, drawn privately where the client is looked at."""
        exact = UtilityChoice(None)
        known: dict[int, Floats] = {}
        ranked = []
        for question in questions:
            if not question.personal:
                # Many ask for the same catalogue, and without a client all margins are the same.
                margins = known.get(id(question.rows))
                if margins is None:
                    margins = known[id(question.rows)] = self.margins(model, question)
                ranked.append(self._drawn(model, margins, question.limit, exact, noise))
            else:
                margins = self.margins(model, question)
                ranked.append(self._drawn(model, margins, question.limit, self.choice, noise))
        return ranked

    def _drawn(
        self,
        model: MirrorModel,
        margins: Floats,
        limit: int,
        choice: UtilityChoice,
        noise: NoiseSource,
    ) -> tuple[Choice, ...]:
        explores = noise.bits(_COIN_BITS) < self.exploration * 2**_COIN_BITS
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
        if self.crossing is None:
            return model.margins(question.rows)
        return _crossed_margins(
            self.crossing, model.weights, question.features, question.rows, self.clip
        )


def _utilities(model: MirrorModel, margins: Floats, choice: UtilityChoice) -> Floats:
    """Return what a draw compares: margins, or for a private one their place in [0, 1]."""
    if choice.by_order:
        return margins
    scaled: Floats = 0.5 + 0.5 * np.clip(margins / model.reach, -1.0, 1.0)
    return scaled


def _crossed_margins(
    crossing: Crossing, weights: Weights, client: SparseRows, items: SparseRows, bound: float
) -> Floats:
    """Return w.x of crossed rows without making them: for one client, w.x is linear in the item.

    The norm of a crossed row is sqrt((1 + |c|^2) (1 + |i|^2) - 1).
    """
    places = crossing.clients + items.indices
    effective = weights[places].astype(np.float64)
    constant = 0.0
    for feature, value in zip(client.indices.tolist(), client.values.tolist(), strict=True):
        constant += value * float(weights[feature])
        effective += value * weights[places + crossing.items * (1 + feature)]
    margins = constant + items.sums(effective * items.values)
    own = float(client.values @ client.values)
    lengths = np.sqrt((1 + own) * (1 + items.sums(items.values**2)) - 1)
    shortened: Floats = margins * np.minimum(1.0, bound / np.maximum(lengths, bound))
    return shortened
