"""A recommender by sparse mirror descent as the workers hold it: features, learner, model."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from discreet.families.mirror_descent.descent import MirrorDescent, Model, Weights
from discreet.families.mirror_descent.sparse import (
    MOST_NONZEROS,
    Crossing,
    Floats,
    GridRows,
    SparseRows,
    on_grid,
    read_rows,
)
from discreet.families.questions import Ask, Candidate, Sparse, Vector, refuse_unused
from discreet.families.documents import SparseFeatures
from discreet.families.mirror_descent.document import MirrorDescentDocument
from discreet.families.mirror_descent.letters import Letter
from discreet.families.mirror_descent.notes import MOST_NOTE, size_of
from discreet.decisions.recommender import Recommender, Stored
from discreet.families.budgets import Terms
from discreet.decisions.tokens import ADDRESS_BYTES
from discreet.errors import InvalidArgument
from discreet.privacy.accountants import Budget

SLICE = 4_096
"""Features whose sums lie together in the store. A record touches as many slices as it has
features at most, and each is small: adding to it takes no longer when there are a million more."""

NOBODY = SparseRows(np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
_USES = ("features",)


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What is to be ranked, a row each: `slots` of the catalogue, or `ids` of the caller's own."""

    client: SparseRows
    rows: SparseRows
    slots: npt.NDArray[np.intp]
    ids: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.rows)


class MirrorRecommender(Recommender):
    """Its model and what it heard of neighbours are caches of what is in stores."""

    def __init__(self, *, name: str, stored: Stored) -> None:
        document = stored.document
        assert isinstance(document, MirrorDescentDocument)
        privacy = document.privacy
        private = privacy.mode == "record"
        super().__init__(
            name=name,
            stored=stored,
            terms=Terms(
                accounting="zcdp",
                budget=Budget(privacy.budget.epsilon, privacy.budget.delta),
            )
            if private
            else None,
        )
        self.document = document
        shape = document.features
        self.crossing = None if shape.clients is None else Crossing(shape.clients, shape.items or 0)
        self.learner = MirrorDescent(
            dimension=shape.size,
            epsilon=privacy.epsilon,
            delta=privacy.delta,
            mode=privacy.mode,
            clip=document.learning.clip,
            truncation=document.learning.truncation,
            ridge=document.learning.ridge,
            length=document.broadcasts.length,
        )
        self._item_features = shape.size if self.crossing is None else self.crossing.items
        self._most = shape.most_nonzeros
        self._read_catalogue()
        self.model: Model = self.learner.start()
        self.theta_version = 0
        self.counted = 0
        self.broadcast_at = 0.0
        self.mixed_at = 0.0
        self.arrivals = 0
        """Records that this worker has heard of, of all workers."""
        self.heard: dict[str, Letter] = {}

    def _read_catalogue(self) -> None:
        """Lay out the features of the items that have some, in the order of their slots."""
        features = {
            self.slot_of[item.id]: item.features
            for item in self.stored.document.items
            if isinstance(item.features, SparseFeatures)
        }
        slots = sorted(features)
        self._catalogue = self._laid_out(
            read_rows(
                [(features[slot].indices, features[slot].values) for slot in slots],
                dimension=self._item_features,
                most=self._most,
                name=lambda row: f"items[{self.id_of[slots[row]]}].features",
            )
        )
        self._row_of = np.full(self.stored.next_slot, -1, dtype=np.intp)
        self._row_of[slots] = np.arange(len(slots))
        listed = [slot for slot in slots if slot in self._visible_set]
        self._everything = self._catalogue_question(NOBODY, np.array(listed, dtype=np.intp))

    def _laid_out(self, rows: SparseRows) -> SparseRows:
        """Clip what will not be multiplied any more; crossed rows are clipped when they are."""
        return rows if self.crossing is not None else on_grid(rows, bound=self.learner.clip)

    def _catalogue_question(self, client: SparseRows, slots: npt.NDArray[np.intp]) -> Question:
        return Question(client, self._catalogue.take(self._row_of[slots]), slots)

    # Where things are.

    def address_of(self, peer: str) -> str | None:
        """Return a neighbour's URL."""
        return next((one.url for one in self.document.neighbours if one.name == peer), None)

    def key(self, what: bytes) -> bytes:
        """Return the name of something of ours in the store."""
        return b"mirror/" + self.generation + b"/" + what

    def address(self, place: int) -> bytes:
        """Return the address of a slice's sums; -1 is where records are counted."""
        digest = hashlib.blake2b(self.generation, digest_size=ADDRESS_BYTES, person=b"mirror sums")
        digest.update(place.to_bytes(4, "little", signed=True))
        return digest.digest()

    # Questions.

    def question(self, ask: Ask) -> Question:
        """Return what is asked, or say what is wrong with it."""
        refuse_unused(ask, uses=_USES)
        client = self._client(ask.features)
        given = ask.candidates
        inline = [one for one in given or () if isinstance(one, Candidate)]
        if given is not None and inline:
            if len(inline) != len(given):
                raise InvalidArgument("candidates", "must be ids, or all have features")
            question = self._inline(ask, client, inline)
        elif given is None and not ask.exclude:
            question = replace(self._everything, client=client)
        else:
            ids = [one for one in given if isinstance(one, str)] if given is not None else None
            allowed = self.available(exclude=ask.exclude, candidates=ids)
            question = self._catalogue_question(client, allowed[self._row_of[allowed] >= 0])
        self._require_room(ask.limit, question)
        return question

    def _client(self, features: Vector | None) -> SparseRows:
        if features is None:
            return NOBODY
        if self.crossing is None:
            raise InvalidArgument(
                "features", "are not used by this recommender: it has no features of clients"
            )
        return read_rows(
            [_pair(features, "features")],
            dimension=self.crossing.clients,
            most=self._most,
            name=lambda _: "features",
        )

    def _inline(self, ask: Ask, client: SparseRows, inline: Sequence[Candidate]) -> Question:
        read = read_rows(
            [
                _pair(one.features, f"candidates.{place}.features")
                for place, one in enumerate(inline)
            ],
            dimension=self._item_features,
            most=self._most,
            name=lambda row: f"candidates.{row}.features",
        )
        rows = self._laid_out(read)
        ids = tuple(one.id for one in inline)
        if len(set(ids)) != len(ids):
            raise InvalidArgument("candidates", "must have distinct ids")
        if ask.exclude:
            out = set(ask.exclude)
            kept = [place for place, item in enumerate(ids) if item not in out]
            ids, rows = tuple(ids[place] for place in kept), rows.take(kept)
        return Question(client, rows, np.zeros(0, dtype=np.intp), ids)

    def _require_room(self, limit: int, question: Question) -> None:
        """Everything that feedback will need must fit into the recommendation id."""
        rows = question.rows
        own = len(question.client.indices)
        longest = int(rows.lengths.max()) if len(rows) else 0
        if self.crossing is not None and (own + 1) * (longest + 1) - 1 > MOST_NONZEROS:
            raise InvalidArgument(
                "features",
                f"are too many: with an item's there would be more than {MOST_NONZEROS} products",
            )
        if question.ids is None:
            return
        largest = np.sort(rows.lengths)[::-1][:limit].tolist()
        if size_of(client=own, items=largest) > MOST_NOTE:
            raise InvalidArgument(
                "limit",
                "must be smaller: the features of so many candidates do not fit a "
                "recommendation_id; put items into the catalogue to recommend more at once",
            )

    # Scores.

    def scores(self, question: Question) -> Floats:
        """Return w.x of everything that may be recommended, features clipped as in learning."""
        if self.crossing is None:
            return self.model.margins(question.rows)
        return _crossed_scores(
            self.crossing, self.model.weights, question.client, question.rows, self.learner.clip
        )

    def record(self, client: SparseRows, features: SparseRows) -> GridRows:
        """Return what would be learned from: one row, crossed and clipped."""
        if self.crossing is not None:
            features = self.crossing.crossed(client, features)
        return on_grid(features, bound=self.learner.clip)

    def features_of(self, slot: int) -> SparseRows | None:
        """Return a catalogue item's features, if it has any still."""
        row = int(self._row_of[slot]) if slot < len(self._row_of) else -1
        return None if row < 0 else self._catalogue.take([row])


def _pair(features: Vector, field: str) -> tuple[Sequence[int], Sequence[float]]:
    if not isinstance(features, Sparse):
        raise InvalidArgument(field, "must have indices and values for this recommender")
    return features.indices, features.values


def _crossed_scores(
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
    scores = constant + items.sums(effective * items.values)
    own = float(client.values @ client.values)
    lengths = np.sqrt((1 + own) * (1 + items.sums(items.values**2)) - 1)
    shortened: Floats = scores * np.minimum(1.0, bound / np.maximum(lengths, bound))
    return shortened
