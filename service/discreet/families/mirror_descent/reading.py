"""From a caller's question to rows that can be ranked: sparse features, checked."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from discreet.errors import InvalidArgument
from discreet.families.documents import SparseFeatures
from discreet.families.mirror_descent.document import MirrorDescentDocument
from discreet.families.mirror_descent.model import MirrorQuestion
from discreet.families.mirror_descent.notes import (
    MOST_NOTE,
    note_size,
    position_width,
    read_note,
)
from discreet.families.mirror_descent.sparse import (
    MOST_NONZEROS,
    Crossing,
    GridRows,
    SparseRow,
    SparseRows,
    joined,
    on_grid,
    read_row,
    read_rows,
)
from discreet.families.questions import (
    Ask,
    Candidate,
    PendingDecision,
    Sparse,
    Vector,
    refuse_unused,
)
from discreet.families.stored import Slots, StoredDocument

NO_FEATURES = SparseRow((), ())
_NO_SLOTS: Slots = np.zeros(0, dtype=np.intp)
_EMPTY_NOTE = note_size(client=0)

RecordParts = tuple[SparseRow, SparseRow | int]
"""What a record is made of: a client's features, and an item's or where they are."""


class QuestionReader:
    """Reads questions to one document; knows the features of its catalogue.

    `available` is the recommender's rule for which items may be shown. Raises `InvalidArgument` if
    the catalogue's features cannot be read.
    """

    def __init__(
        self,
        document: MirrorDescentDocument,
        stored: StoredDocument,
        available: Callable[..., Slots],
    ) -> None:
        shape = document.features
        self.crossing = None if shape.clients is None else Crossing(shape.clients, shape.items or 0)
        self._clip = document.learning.clip
        self._most = shape.most_nonzeros
        self._hides_lengths = document.privacy.answers != "exact"
        self._dimension = shape.size if self.crossing is None else self.crossing.items
        self._available = available
        features = {
            stored.slots[item.id]: (item.id, item.features)
            for item in document.items
            if isinstance(item.features, SparseFeatures)
        }
        slots = sorted(features)
        self._catalogue = self._laid_out(
            read_rows(
                [(features[slot][1].indices, features[slot][1].values) for slot in slots],
                dimension=self._dimension,
                most=self._most,
                name=lambda row: f"items[{features[slots[row]][0]}].features",
            )
        )
        self._row_of = np.full(stored.next_slot, -1, dtype=np.intp)
        self._row_of[slots] = np.arange(len(slots))
        shown = self._with_features(available(exclude=(), candidates=None))
        self._everything = self._catalogue.take(self._row_of[shown]), shown
        self.shown: list[int] = shown.tolist()
        """The slots of the whole catalogue that may be shown, in plain numbers."""
        self._longest = int(self._everything[0].lengths.max(initial=0))
        # For each question, and each record: what numpy would take longer to look up.
        self._rows: list[int] = self._row_of.tolist()
        self._row_lengths: list[int] = self._catalogue.lengths.tolist()
        clients = 0 if self.crossing is None else self.crossing.clients
        self.note_width = position_width(max(clients, self._dimension))
        """Bytes of a feature's position in the notes of answers."""
        self._most_told = min(self._most, clients)
        self._full_note = note_size(client=self._most_told, width=self.note_width)

    def _with_features(self, slots: Slots) -> Slots:
        return slots[self._row_of[slots] >= 0]

    def _laid_out(self, rows: SparseRows) -> SparseRows:
        """Clip what will not be multiplied any more; crossed rows are clipped when they are."""
        return rows if self.crossing is not None else on_grid(rows, bound=self._clip)

    def question(self, ask: Ask, client: bytes) -> MirrorQuestion:
        """Return what is asked, or raise `InvalidArgument` naming the field."""
        refuse_unused(ask, uses=("features",))
        features = self._client(ask.features)
        given = ask.candidates
        ids: tuple[str, ...] | None = None
        if given is None and not ask.exclude:
            rows, slots = self._everything
            personal = ask.features is not None
            whole = MirrorQuestion(client, ask.limit, features, rows, slots, None, personal, True)
            self._require_room(whole)
            return whole
        inline = [one for one in given or () if isinstance(one, Candidate)]
        if given is not None and inline:
            if len(inline) != len(given):
                raise InvalidArgument("candidates", "must be ids, or all have features")
            rows, ids = self._inline(inline, ask.exclude)
            slots = _NO_SLOTS
        else:
            named = [one for one in given if isinstance(one, str)] if given is not None else None
            slots = self._with_features(self._available(exclude=ask.exclude, candidates=named))
            rows = self._catalogue.take(self._row_of[slots])
        question = MirrorQuestion(
            client=client,
            limit=ask.limit,
            features=features,
            rows=rows,
            slots=slots,
            ids=ids,
            personal=ask.features is not None or ids is not None,
        )
        self._require_room(question)
        return question

    def _client(self, features: Vector | None) -> SparseRow:
        if features is None:
            return NO_FEATURES
        if self.crossing is None:
            raise InvalidArgument(
                "features", "are not used by this recommender: it has no features of clients"
            )
        return read_row(
            *_pair(features, "features"),
            dimension=self.crossing.clients,
            most=self._most,
            name="features",
        )

    def _inline(
        self, inline: Sequence[Candidate], exclude: Sequence[str]
    ) -> tuple[SparseRows, tuple[str, ...]]:
        read = read_rows(
            [
                _pair(one.features, f"candidates.{place}.features")
                for place, one in enumerate(inline)
            ],
            dimension=self._dimension,
            most=self._most,
            name=lambda row: f"candidates.{row}.features",
        )
        rows = self._laid_out(read)
        ids = tuple(one.id for one in inline)
        if len(set(ids)) != len(ids):
            raise InvalidArgument("candidates", "must have distinct ids")
        if exclude:
            out = set(exclude)
            kept = [place for place, item in enumerate(ids) if item not in out]
            ids, rows = tuple(ids[place] for place in kept), rows.take(kept)
        return rows, ids

    def _require_room(self, question: MirrorQuestion) -> None:
        """Everything that feedback will need must fit into the recommendation id."""
        longest = self._longest if question.whole else int(question.rows.lengths.max(initial=0))
        if self.crossing is not None and _crossed(question.features, longest) > MOST_NONZEROS:
            raise InvalidArgument(
                "features",
                f"are too many: with an item's there would be more than {MOST_NONZEROS} products",
            )
        if self.note_size(question) > MOST_NOTE:
            raise InvalidArgument(
                "limit",
                "must be smaller: the features of so many candidates do not fit a "
                "recommendation_id; lower features.most_nonzeros, or put items into the catalogue",
            )

    def note_size(self, question: MirrorQuestion) -> int:
        """Return the bytes of the note of an answer: by public facts, if answers are private."""
        if self._hides_lengths and question.ids is None:
            return self._full_note if question.personal else _EMPTY_NOTE
        client, shown = len(question.features.indices), min(question.limit, len(question))
        items: list[int] = []
        if self._hides_lengths:
            client = self._most_told if question.personal else 0
            items = [min(self._most, self._dimension)] * shown
        elif question.ids is not None:
            items = np.sort(question.rows.lengths)[::-1][:shown].tolist()
        return note_size(client=client, items=items, width=self.note_width)

    # What is learned from.

    def records(self, parts: Sequence[RecordParts]) -> GridRows:
        """Return what would be learned from: a row for each client and item, crossed, clipped."""
        places = [item for _, item in parts if isinstance(item, int)]
        if len(places) == len(parts):
            rows = self._catalogue.take(places)
        else:
            rows = joined(
                [self._catalogue.row(item) if isinstance(item, int) else item for _, item in parts]
            )
        if self.crossing is not None:
            rows = self.crossing.crossed(joined([client for client, _ in parts]), rows)
        return on_grid(rows, bound=self._clip)

    def parts(self, pending: PendingDecision, position: int) -> RecordParts:
        """Return the features of a decision's client, and those of one of its items, or the
        catalogue's row that has them."""
        note = read_note(pending.note)
        if note.items is not None:
            return note.client, note.items[position][1]
        slot = pending.choices[position].slot
        row = self._rows[slot] if slot < len(self._rows) else -1
        if row < 0:
            raise InvalidArgument("recommendation_id", "its item has no features any more")
        # The item may have been given more since. Alone in its fault: others are learned with it.
        length = self._row_lengths[row]
        if self.crossing is not None and _crossed(note.client, length) > MOST_NONZEROS:
            raise InvalidArgument("recommendation_id", "its item has too many features by now")
        return note.client, row


def without_client(question: MirrorQuestion) -> MirrorQuestion:
    """Return the question without what it tells about the client.

    Candidates that the caller described may be described for the client: nothing is left of their
    features, so that they are in random order.
    """
    rows = question.rows
    if question.ids is not None:
        rows = joined([NO_FEATURES] * len(rows))
    return replace(question, features=NO_FEATURES, rows=rows, personal=False)


def _crossed(client: SparseRow, item: int) -> int:
    """Return how many features a record has of a client and an item with so many."""
    return (len(client.indices) + 1) * (item + 1) - 1


def _pair(features: Vector, field: str) -> tuple[Sequence[int], Sequence[float]]:
    if not isinstance(features, Sparse):
        raise InvalidArgument(field, "must have indices and values for this recommender")
    return features.indices, features.values
