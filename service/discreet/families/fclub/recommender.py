"""A recommender by federated clusters as the workers hold it."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet.families.fclub.clusters import FederatedClusters, Outlook
from discreet.families.questions import Ask, Candidate, refuse_unused
from discreet.families.fclub.document import FederatedClustersDocument
from discreet.families.fclub.vectors import Coordinates, Floats, coordinates, decoded
from discreet.decisions.recommender import Recommender, Stored
from discreet.families.budgets import UNPROTECTED, PrivacyReport
from discreet.errors import InvalidArgument
from discreet.privacy.accountants import Budget
from discreet.privacy.charges import Limit

if TYPE_CHECKING:
    from discreet.families.fclub.consensus import Posted
    from discreet.families.fclub.sent import Sent

MOST_NOTE_BYTES = 10_000
"""Of what a token carries about the items that it recommends: a token has 16,384 letters."""
ID_BYTES = 8


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """What may be recommended: ids, and their features in steps and as numbers, a row each."""

    ids: tuple[str, ...]
    steps: Coordinates
    features: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """A worker's view of all users at one moment: where each is in `outlook`, and what for."""

    places: dict[bytes, int]
    outlook: Outlook


class ClusterRecommender(Recommender):
    """In either role; a global one has no items and answers other servers only."""

    def __init__(self, *, name: str, stored: Stored) -> None:
        document = stored.document
        assert isinstance(document, FederatedClustersDocument)
        super().__init__(name=name, stored=stored, terms=None)
        self.document = document
        self.dimensions = document.dimensions
        sharing, learning = document.sharing, document.learning
        self.exact_letters = sharing.mode == "none"
        self.learner = FederatedClusters(
            dimensions=document.dimensions,
            epsilon=None if self.exact_letters else sharing.epsilon,
            delta=sharing.delta,
            baseline=learning.baseline,
            exploration=learning.exploration,
            reward_variance=learning.reward_variance,
            margin=learning.margin,
            first_letter=sharing.first_letter,
            growth=sharing.growth,
        )
        self.privatizer = self.learner.privatizer
        self.belief: Belief | None = None
        self.sent: Sent | None = None
        self.numbers: dict[bytes, int] = {}
        self.servers: set[str] = set()
        self.posted: dict[str, tuple[list[Posted], int]] = {}
        self.global_server = document.global_server
        rows = [
            self._coordinates(item.features, f"items.{place}.features")
            for place, item in enumerate(document.items)
        ]
        self._row_of = {item.id: place for place, item in enumerate(document.items)}
        self._steps = np.array(rows, dtype=np.int16).reshape(-1, self.dimensions)
        self._visible = tuple(item.id for item in document.items if not item.hidden)
        self._hidden = frozenset(item.id for item in document.items if item.hidden)
        self._all = self._catalogue(self._visible)

    @property
    def is_local(self) -> bool:
        """Whether it serves users."""
        return self.document.role == "local"

    @property
    def report(self) -> PrivacyReport:
        """What one observation of a client costs, once, against everybody outside this server.

        Also while there is no global server: what is observed now is in the first letter to one.
        """
        if self.exact_letters:
            return UNPROTECTED
        sharing = self.document.sharing
        spent = Budget(epsilon=sharing.epsilon, delta=sharing.delta)
        return PrivacyReport(sharing.epsilon, spent, Budget(0.0, 0.0))

    @property
    def letter_limit(self) -> Limit:
        """What the account of a letter may hold: the price of one."""
        charge = self.privatizer.charge
        return Limit(nano_epsilon=charge.nano_epsilon, pico_delta=charge.pico_delta)

    def address_of(self, peer: str) -> str | None:
        """Return the global server's URL."""
        server = self.global_server
        return server.url if server is not None and server.name == peer else None

    def key(self, purpose: bytes, which: bytes = b"") -> bytes:
        """Return the name under which the store keeps something of this recommender."""
        return blake2b(self.generation + which, digest_size=16, person=purpose).digest()

    def user(self, client: bytes) -> bytes:
        """Return the address of a client's sums; `client` is the client's digest."""
        return self.key(b"user", client)

    def offer(self, ask: Ask) -> Offer:
        """Return what may be recommended, or say which field of the question cannot be used."""
        if not self.is_local:
            raise InvalidArgument("recommender", "merges letters only; ask a local server")
        refuse_unused(ask)
        if ask.limit * (2 * self.dimensions + 2 * ID_BYTES) > MOST_NOTE_BYTES:
            most = MOST_NOTE_BYTES // (2 * self.dimensions + 2 * ID_BYTES)
            raise InvalidArgument("limit", f"must be at most {most} with features this long")
        if ask.candidates is None:
            if not ask.exclude:
                return self._all
            excluded = frozenset(ask.exclude)
            return self._catalogue(tuple(one for one in self._visible if one not in excluded))
        return self._named(ask)

    def _named(self, ask: Ask) -> Offer:
        """Return the candidates: items of the catalogue by id, others with their features."""
        assert ask.candidates is not None
        excluded = frozenset(ask.exclude)
        rows: dict[str, Coordinates] = {}
        for place, one in enumerate(ask.candidates):
            if isinstance(one, Candidate):
                field = f"candidates.{place}.features"
                rows[one.id] = self._coordinates(one.features, field)
            elif one in self._row_of and one not in self._hidden:
                rows[one] = self._steps[self._row_of[one]]
        if not rows:
            raise InvalidArgument(
                "candidates", "none of them is an item of this recommender or has features"
            )
        ids = tuple(one for one in rows if one not in excluded)
        steps = np.array([rows[one] for one in ids], dtype=np.int16).reshape(-1, self.dimensions)
        return Offer(ids, steps, decoded(steps))

    def _catalogue(self, ids: tuple[str, ...]) -> Offer:
        places: npt.NDArray[np.intp] = np.array([self._row_of[one] for one in ids], dtype=np.intp)
        steps = self._steps[places]
        return Offer(ids, steps, decoded(steps))

    def _coordinates(self, features: object, field: str) -> Coordinates:
        if features is None:
            raise InvalidArgument(field, "is required: items are judged by their features")
        if isinstance(features, list):
            features = tuple(features)
        if not isinstance(features, tuple):
            raise InvalidArgument(field, "must be a list of numbers for this recommender")
        scale = self.document.norms == "scale"
        return coordinates(features, dimensions=self.dimensions, scale=scale, field=field)


def digest_of(item: str) -> bytes:
    """Return what a token keeps of an item's id, to recognise it in feedback."""
    return blake2b(item.encode(), digest_size=ID_BYTES, person=b"item").digest()
