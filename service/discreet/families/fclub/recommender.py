"""A recommender by federated clusters: the contract, for this family, in either role."""

import os
from collections.abc import Awaitable, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.errors import DiscreetError, InvalidArgument
from discreet.families.budgets import FREE, BudgetPolicy
from discreet.families.cards import GuaranteeCard
from discreet.families.choice import UtilityChoice
from discreet.families.contract import Recommender, Resources, tried
from discreet.families.documents import AnswersPrivacyDocument, FeedbackPrivacyDocument
from discreet.families.fclub import guarantee
from discreet.families.fclub.by_observation import ObservationReading
from discreet.families.fclub.by_person import FIRST_UPDATE, GROWTH, PersonReading
from discreet.families.fclub.codec import pack
from discreet.families.fclub.document import FederatedClustersDocument
from discreet.families.fclub.features import Coordinates, coordinates, decoded
from discreet.families.fclub.learning import FederatedClusters, Reading
from discreet.families.fclub.linear import Floats, products_of
from discreet.families.fclub.model import (
    ClusterModel,
    ClusterQuestion,
    Ranking,
    features_shown,
    note_bytes,
    note_of,
    position_of,
)
from discreet.families.fclub.own_rows import FoldingRead, OwnEncoding
from discreet.families.fclub.person_noise import PersonNoise
from discreet.families.fclub.sync.global_server import GlobalReading, UpdatesFromServers
from discreet.families.fclub.sync.local_server import Deliveries, LocalExchange
from discreet.families.fclub.sync.merged_model import MergedModelStore
from discreet.families.observer import FamilyGauge
from discreet.families.questions import (
    Ask,
    Candidate,
    Decision,
    Lesson,
    PendingDecision,
    Question,
    Utilities,
    refuse_unused,
)
from discreet.families.stored import StoredDocument
from discreet.privacy.charges import Charge
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import EXACT, OWN, Vector

_MOST_PRICES = 256
MOST_NOTE_BYTES = 10_000
"""Of what a token carries about the items that it recommends: a token has 16,384 letters."""


_Offered = tuple[tuple[str, ...], Coordinates, Floats, Sequence[bytes] | None, Floats | None]
"""What a question may be answered with, as `ClusterQuestion` has it."""


class ClusterRecommender(Recommender[ClusterModel]):
    """A local server answers users; a global one has no items and answers other servers only."""

    algorithm = "fclub"
    document_class = FederatedClustersDocument

    def __init__(self, *, name: str, stored: StoredDocument, resources: Resources) -> None:
        document = stored.document
        assert isinstance(document, FederatedClustersDocument)
        self.document = document
        self.dimensions = document.dimensions
        self.is_local = document.role == "local"
        self.releases = document.releases
        # Named by the base class too, but the reading is needed before it makes a blank model.
        self.name, self.generation = name, stored.generation
        answers = document.privacy.answers
        choice = UtilityChoice(None)
        if isinstance(answers, AnswersPrivacyDocument):
            choice = UtilityChoice(answers.epsilon, answers.personal_slots)
            self.answers_budget = BudgetPolicy.of(answers.budget)
            self.refuses = answers.on_exhausted == "refuse"
        self._price_of = lru_cache(maxsize=_MOST_PRICES)(self._priced)
        self._lesson_charge = FREE
        self._exchange: LocalExchange | None = None
        self.reading: Reading[Any] = (
            self._local_reading(resources) if self.is_local else self._global_reading(resources)
        )
        rule = self._rule()
        self._ranking = Ranking(
            own=OwnEncoding(rule.encoding),
            reward_variance=rule.reward_variance,
            exploration=rule.exploration,
            choice=choice,
        )
        super().__init__(name=name, stored=stored, resources=resources)
        rows = [
            self._coordinates(item.features, f"items[{place}].features")
            for place, item in enumerate(document.items)
        ]
        self._steps = np.array(rows, dtype=np.int16).reshape(-1, self.dimensions)
        self._row_of = {item.id: place for place, item in enumerate(document.items)}
        self._shown = tuple(item.id for item in document.items if not item.hidden)
        self._hidden = frozenset(item.id for item in document.items if item.hidden)
        ids, steps, features, *_ = self._features_of(self._shown)
        notes = tuple(map(note_of, ids, steps))
        self._catalogue: _Offered = (ids, steps, features, notes, products_of(features))
        merging = self.reading if isinstance(self.reading, GlobalReading) else None
        self.offer(UpdatesFromServers(self, reading=merging, members=document.members))
        if self.is_local and document.global_server is not None:
            self._exchange = LocalExchange(
                self,
                server=document.global_server,
                encoding=rule.encoding,
                merged=self._merged(resources),
                deliveries=Deliveries(resources.store, self.key(b"delivered")),
                holder=os.urandom(16),
            )

    def _rule(self, epsilon: float | None = None, delta: float = 1e-6) -> FederatedClusters:
        """Return the learner; without noise unless `epsilon` says how much."""
        learning, sharing = self.document.learning, self.document.sharing
        by_person = self.document.privacy.protects == "person"
        return FederatedClusters(
            dimensions=self.dimensions,
            epsilon=epsilon,
            delta=delta,
            baseline=learning.baseline,
            exploration=learning.exploration,
            reward_variance=learning.reward_variance,
            margin=learning.margin,
            first_update=sharing.first_update,
            growth=sharing.growth or (GROWTH if by_person else 1.0),
        )

    def _merged(self, resources: Resources) -> MergedModelStore:
        return MergedModelStore(resources.store, self.key(b"merged"), self.dimensions)

    def _local_reading(self, resources: Resources) -> Reading[Any]:
        document, feedback = self.document, self.document.privacy.feedback
        if not isinstance(feedback, FeedbackPrivacyDocument):
            self._lesson_charge = EXACT
            return self._observation_reading(resources, self._rule())
        rule = self._rule(feedback.epsilon, feedback.delta)
        if document.privacy.protects == "observation":
            # Other users of this server are served from exact sums, and that is what is booked.
            self._lesson_charge = EXACT
            return self._observation_reading(resources, rule)
        budget = self.feedback_budget = BudgetPolicy.of(feedback.budget)
        noise = PersonNoise(
            dimensions=self.dimensions,
            contribution=document.sharing.first_update or FIRST_UPDATE,
            epsilon=feedback.epsilon,
            delta=feedback.delta,
        )
        return PersonReading(
            rule=rule,
            slots=document.learning.kinds,
            noise=noise,
            charge=budget.charge((noise.event,)),
            budget=budget,
            purpose=self.name.encode(),
            generation=self.generation,
            store=resources.store,
            merged=self._merged(resources),
        )

    def _observation_reading(self, resources: Resources, rule: FederatedClusters) -> Reading[Any]:
        shares = self.document.global_server is not None
        return ObservationReading(
            rule=rule,
            generation=self.generation,
            store=resources.store,
            merged=self._merged(resources),
            deliveries=Deliveries(resources.store, self.key(b"delivered")) if shares else None,
            closed_roster=self.key(b"closed"),
        )

    def _global_reading(self, resources: Resources) -> Reading[Any]:
        return GlobalReading(rule=self._rule(), store=resources.store, key=self.key)

    def guarantee(self) -> GuaranteeCard:
        """Return the card of this document's role and reading."""
        return guarantee.card(self.document, release=self.current.number)

    def address_of(self, peer: str) -> str | None:
        """Return the global server's URL."""
        server = self.document.global_server
        return server.url if server is not None and server.name == peer else None

    # Deciding.

    def question(self, ask: Ask) -> ClusterQuestion:
        """Return the checked question: items of the catalogue, or candidates with features."""
        if not self.is_local:
            raise InvalidArgument("recommender", "merges noisy updates only; ask a local server")
        refuse_unused(ask)
        most = MOST_NOTE_BYTES // (note_bytes(self.dimensions) + 8)
        if ask.limit > most:
            raise InvalidArgument("limit", f"must be at most {most} with features this long")
        return ClusterQuestion(self.principal(ask.client), ask.limit, *self._offered(ask))

    def _offered(self, ask: Ask) -> _Offered:
        if ask.candidates is None and not ask.exclude:
            return self._catalogue
        excluded = frozenset(ask.exclude)
        if ask.candidates is None:
            return self._features_of(tuple(one for one in self._shown if one not in excluded))
        rows: dict[str, Coordinates] = {}
        for place, one in enumerate(ask.candidates):
            if isinstance(one, Candidate):
                field = f"candidates[{place}].features"
                rows[one.id] = self._coordinates(one.features, field)
            elif one in self._row_of and one not in self._hidden:
                rows[one] = self._steps[self._row_of[one]]
        if not rows:
            raise InvalidArgument("candidates", "no candidate is a visible item or has features")
        ids = tuple(one for one in rows if one not in excluded)
        steps = np.array([rows[one] for one in ids], dtype=np.int16).reshape(-1, self.dimensions)
        return ids, steps, decoded(steps), None, None

    def _features_of(self, ids: tuple[str, ...]) -> _Offered:
        steps = self._steps[np.array([self._row_of[one] for one in ids], dtype=np.intp)]
        return ids, steps, decoded(steps), None, None

    def _coordinates(self, features: Any, field: str) -> Coordinates:
        if features is None:
            raise InvalidArgument(field, "is required: items are judged by their features")
        scale = self.document.norms == "scale"
        return coordinates(features, dimensions=self.dimensions, scale=scale, field=field)

    def price(self, question: Question) -> Charge:
        """Return the price of the draws: it depends on how many items there are."""
        assert isinstance(question, ClusterQuestion)
        return self._price_of(len(question.ids), question.limit)

    def _priced(self, available: int, limit: int) -> Charge:
        events = self._ranking.choice.events(available=available, limit=limit)
        if not events:
            return FREE
        return EXACT if self.answers_budget is None else self.answers_budget.charge(events)

    def read_own(self, questions: Sequence[Question]) -> Awaitable[Sequence[Vector]]:
        """Return each client's own sums."""
        clients = [question.client for question in questions]
        return FoldingRead(self._ranking.own, self.store, self.generation, clients)

    def decide(
        self,
        model: ClusterModel,
        questions: Sequence[Question],
        own: Sequence[Any],
        noise: NoiseSource,
    ) -> list[Decision]:
        """Decide by the clients' own sums and by what the model tells about users alike."""
        asked = [one for one in questions if isinstance(one, ClusterQuestion)]
        return self._ranking.decide(model, asked, own, noise)

    def decide_without_client(
        self, model: ClusterModel, questions: Sequence[Question], noise: NoiseSource
    ) -> list[Decision]:
        """Answer by what the model tells about anybody."""
        asked = [one for one in questions if isinstance(one, ClusterQuestion)]
        return self._ranking.decide_for_anybody(model, asked, noise)

    def answer_law(
        self, model: ClusterModel, questions: Sequence[Question], own: Sequence[Any], *, paid: bool
    ) -> npt.NDArray[np.float64]:
        """Return the odds of every item of the catalogue."""
        asked = [one for one in questions if isinstance(one, ClusterQuestion)]
        law = np.zeros((len(asked), self.stored.next_slot))
        found = self._ranking.law(model, asked, own if paid else None)
        for row, (question, shares) in enumerate(zip(asked, found, strict=True)):
            for item, share in zip(question.ids, shares.tolist(), strict=True):
                if item in self.slot_of:
                    law[row, self.slot_of[item]] = share
        return law

    explains: ClassVar[bool] = True
    reads_clients: ClassVar[bool] = True

    def explain(self, model: ClusterModel, question: Question, own: Any) -> Utilities:
        """Return what the client would think of every item of the catalogue."""
        assert isinstance(question, ClusterQuestion)
        worth = self._ranking.utilities(model, question, own).tolist() if question.ids else []
        named = zip(question.ids, worth, strict=True)
        return {self.slot_of[id_]: (value, None) for id_, value in named if id_ in self.slot_of}

    # Learning.

    def position_of(self, pending: PendingDecision, item: str | None) -> int:
        """Return which of the recommended items the feedback is about."""
        return position_of(pending, item, dimensions=self.dimensions)

    def lessons(
        self, many: Sequence[tuple[PendingDecision, int, float]]
    ) -> list[Lesson | DiscreetError]:
        """Return what rewards put behind the clients' own sums: nothing if an answer is from before
        these were erased."""
        shown = [
            tried(features_shown, pending, position, self.dimensions)
            for pending, position, _ in many
        ]
        known = [row for row, one in enumerate(shown) if isinstance(one, bytes)]
        steps = np.frombuffer(b"".join([one for one in shown if isinstance(one, bytes)]), "<i2")
        rewards = np.array([many[row][2] for row in known])
        moments = [self.made_at(many[row][0])[1] for row in known]
        added = self._ranking.own.rows(steps.reshape(-1, self.dimensions), rewards, moments)
        lessons = iter([Lesson({OWN: one}, self._lesson_charge) for one in added])
        return [next(lessons) if isinstance(one, bytes) else one for one in shown]

    # Releasing.

    def blank(self) -> ClusterModel:
        """Return the model before anything was released."""
        model: ClusterModel = self.reading.blank()
        return model

    def due(self, now: float) -> bool:
        """Tell whether another release is due; merging is free, so it is done often."""
        if self.is_local:
            return super().due(now)
        return now - self.current.released_at >= self.document.releases.seconds

    async def gather(self, number: int) -> Any:
        """Return what the next release is made from."""
        return await self.reading.gather(number, self.current.model)

    def release(self, model: ClusterModel, gathered: Any, noise: NoiseSource) -> ClusterModel:
        """Return the next model."""
        released: ClusterModel = self.reading.release(model, gathered, noise)
        return released

    def encode(self, model: ClusterModel) -> bytes:
        """Return a model as the store keeps it."""
        return pack(self.reading.as_arrays(model))

    def decode(self, content: bytes) -> ClusterModel:
        """Return the model that `encode` wrote."""
        model: ClusterModel = self.reading.decode(content)
        return model

    def adopt(self, *, number: int, released_at: float, model: ClusterModel) -> None:
        """Answer from this model, and report its clusters."""
        super().adopt(number=number, released_at=released_at, model=model)
        self.observer.gauge(recommender=self.name, what=FamilyGauge.CLUSTERS, value=model.clusters)

    # Life.

    async def tend(self) -> None:
        """Speak to the global server."""
        if self._exchange is not None:
            await self._exchange.run()

    async def erase(self) -> None:
        """Erase sums, and what servers told each other."""
        await super().erase()
        await self.reading.erase()
        await self.store.erase(keys=[self.key(b"merged"), self.key(b"delivered")])

    async def forget(self, client: str) -> int:
        """Erase a client's own sums. Noisy sums stay; exact clusters lose them at the next release.

        Returns 1 if there were any.
        """
        if not self.is_local:
            return 0
        principal = self.principal(client)
        await self.reading.before_forgetting(principal)
        self.asked = True  # so that there is a next release
        return int(await self.store.forget_own(generation=self.generation, principal=principal))
