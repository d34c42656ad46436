"""A recommender by sparse mirror descent: the contract, for this family."""

import asyncio
import os
import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from discreet.errors import DiscreetError, InvalidArgument
from discreet.families.budgets import FREE, BudgetPolicy, rho_of
from discreet.families.cards import GuaranteeCard
from discreet.families.choice import BestChoice, UtilityChoice, filled
from discreet.families.contract import Recommender, tried
from discreet.families.mirror_descent.document import MirrorDescentDocument
from discreet.families.mirror_descent.guarantee import guarantee_card
from discreet.families.mirror_descent.learning import MirrorLearner
from discreet.families.mirror_descent.model import (
    MirrorModel,
    MirrorQuestion,
    MirrorRanking,
    NodeSums,
    blank_sums,
    combined,
    read_sums,
)
from discreet.families.mirror_descent.notes import FeatureNote, id_digest, read_note
from discreet.families.mirror_descent.reading import QuestionReader, without_client
from discreet.families.mirror_descent.sparse import Floats
from discreet.families.mirror_descent.sync import (
    ModelExchange,
    ModelMessage,
    NeighbourNodes,
    write_message,
)
from discreet.families.nested import NestedReader
from discreet.families.observer import FamilyCounter, FamilyGauge, ReleasedFigures
from discreet.families.questions import (
    Ask,
    Choice,
    Decision,
    Lesson,
    PendingDecision,
    Question,
    Utilities,
    utilities_of,
)
from discreet.families.resources import Resources
from discreet.families.stored import StoredDocument
from discreet.privacy.charges import Charge
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import EXACT, Vector

RANKED_EXACTLY = "the visitor's features are ranked without noise"
NO_FEATURES_GIVEN = "the request has no features of the client"
NOTHING_LEARNED = "no released model tells items apart yet"
NOTHING_TO_CHOOSE = "there was nothing to choose from"
BUDGET_SPENT = "the client's budget for answers is spent"

ROUND_SECONDS = 60.0
"""How long a mixing round may take before another worker may begin one."""

_BASE = struct.Struct("<Q")
_MOST_PRICES = 256


class MirrorDescentRecommender(Recommender[MirrorModel]):
    """A node: ranks by its released model, and mixes it with its neighbours'."""

    algorithm = "mirror-descent"
    decides_ahead = True
    document_class = MirrorDescentDocument

    def __init__(self, *, name: str, stored: StoredDocument, resources: Resources) -> None:
        document = stored.document
        assert isinstance(document, MirrorDescentDocument)
        self.document = document
        self.releases = document.releases
        answers, feedback = document.privacy.answers, document.privacy.feedback
        self._choice = UtilityChoice(None)
        if not isinstance(answers, str):
            chosen_by = BestChoice if answers.draw == "best" else UtilityChoice
            self._choice = chosen_by(answers.epsilon, answers.personal_slots)
            self.answers_budget = BudgetPolicy.of(answers.budget)
            self.refuses = answers.on_exhausted == "refuse"
        self._price_of = lru_cache(maxsize=_MOST_PRICES)(self._priced)
        private = None if isinstance(feedback, str) else feedback
        self.learner = MirrorLearner(
            dimension=document.features.size,
            epsilon=None if private is None else private.epsilon,
            delta=0.0 if private is None else private.delta,
            clip=document.learning.clip,
            truncation=document.learning.truncation,
            ridge=document.learning.ridge,
        )
        self._record_price = EXACT
        if private is not None:
            self.feedback_budget = BudgetPolicy.of(private.budget)
            self._record_price = self.feedback_budget.charge((self.learner.event,))
        super().__init__(name=name, stored=stored, resources=resources)
        self._reader = QuestionReader(document, stored, self.available)
        self.ranking = MirrorRanking(
            self._reader.crossing, document.learning.clip, document.exploration.rate, self._choice
        )
        self._neighbours = NeighbourNodes(
            name=name,
            documents=document.neighbours,
            dimension=self.learner.dimension,
            peers=resources.peers,
            observer=resources.observer,
        )
        self._holder = os.urandom(8)
        self._next_round = 0.0
        self._mixture: NodeSums | None = None
        self._mixture_version = -1
        self._message: ModelMessage | None = None
        if document.personalizer is not None:
            shape = document.features
            self.offer(
                NestedReader(document.personalizer, dimension=shape.size, most=shape.most_nonzeros)
            )
        self.offer(ModelExchange(name=name, message=self.message, observer=resources.observer))

    def guarantee(self) -> GuaranteeCard:
        """Return the card, with where both dials stand."""
        return guarantee_card(self.document, self.current.number)

    # Deciding.

    def question(self, ask: Ask) -> MirrorQuestion:
        """Return what is to be ranked: sparse features within their limits."""
        return self._reader.question(ask, self.principal(ask.client))

    def price(self, question: Question) -> Charge:
        """Return the price of the draws, if the request says anything about the client."""
        assert isinstance(question, MirrorQuestion)
        if not (question.personal and self.current.model.nonzeros):
            return FREE
        return self._price_of(len(question), question.limit)

    def _priced(self, available: int, limit: int) -> Charge:
        events = self._choice.events(available=available, limit=limit)
        if not events:
            return FREE
        return EXACT if self.answers_budget is None else self.answers_budget.charge(events)

    def decide(
        self,
        model: MirrorModel,
        questions: Sequence[Question],
        own: Sequence[Any],
        noise: NoiseSource,
    ) -> list[Decision]:
        """Rank by the model; where the client is looked at, by a private draw."""
        asked = [one for one in questions if isinstance(one, MirrorQuestion)]
        ranked = self.ranking.rank(model, asked, noise)
        short = [
            row
            for row, (one, drawn) in enumerate(zip(asked, ranked, strict=True))
            if len(drawn) < one.limit and len(drawn) < len(one)
        ]
        if short:
            anybody = self.ranking.rank(model, [without_client(asked[row]) for row in short], noise)
            for row, rest in zip(short, anybody, strict=True):
                ranked[row] = filled(ranked[row], rest, asked[row].limit)
        return [
            self._decision(question, choices, *self._judged(model, question))
            for question, choices in zip(asked, ranked, strict=True)
        ]

    def decide_without_client(
        self, model: MirrorModel, questions: Sequence[Question], noise: NoiseSource
    ) -> list[Decision]:
        """Rank the catalogue for anybody; candidates with features are in random order."""
        asked = [one for one in questions if isinstance(one, MirrorQuestion)]
        ranked = self.ranking.rank(model, [without_client(one) for one in asked], noise)
        return [
            self._decision(question, choices, False, BUDGET_SPENT)
            for question, choices in zip(asked, ranked, strict=True)
        ]

    def answer_law(
        self, model: MirrorModel, questions: Sequence[Question], own: Sequence[Any], *, paid: bool
    ) -> Floats:
        """Return the odds of every item of the catalogue."""
        law = np.zeros((len(questions), self.stored.next_slot))
        for row, question in enumerate(questions):
            assert isinstance(question, MirrorQuestion)
            if question.ids is None and len(question):
                asked = question if paid else without_client(question)
                law[row, question.slots] = self.ranking.law(model, asked)
        return law

    explains: ClassVar[bool] = True

    def explain(self, model: MirrorModel, question: Question, own: Any) -> Utilities:
        """Return the score of every item of the catalogue, for this client's features."""
        assert isinstance(question, MirrorQuestion)
        if question.ids is not None or not len(question):
            return {}
        return utilities_of(question.slots, self.ranking.margins(model, question))

    def _judged(self, model: MirrorModel, question: MirrorQuestion) -> tuple[bool, str | None]:
        """Tell whether an answer is personalised, and the reason. By public facts only.

        Whether this very answer explored is not said.
        """
        if len(question) < 2:
            return False, NOTHING_TO_CHOOSE
        if not question.personal:
            return False, NO_FEATURES_GIVEN
        if not model.nonzeros:
            return False, NOTHING_LEARNED
        return True, RANKED_EXACTLY if self.answers_budget is None else None

    def _decision(
        self,
        question: MirrorQuestion,
        choices: tuple[Choice, ...],
        personalised: bool,
        reason: str | None,
    ) -> Decision:
        size, width = self._reader.note_size(question), self._reader.note_width
        if question.whole and len(choices) == 1:
            ((place, share),) = choices
            slot = self._reader.shown[place]
            note = FeatureNote(question.features, None).encode(size, width=width)
            return Decision((self.id_of[slot],), (Choice(slot, share),), personalised, note, reason)
        places = [choice.slot for choice in choices]
        carried = None
        if question.ids is None:
            slots = [int(question.slots[place]) for place in places]
            items = tuple([self.id_of[slot] for slot in slots])
        else:
            slots = list(range(len(places)))
            items = tuple([question.ids[place] for place in places])
            carried = [
                (id_digest(item), question.rows.row(place))
                for item, place in zip(items, places, strict=True)
            ]
        return Decision(
            items=items,
            choices=tuple(
                [
                    Choice(slot, choice.propensity)
                    for slot, choice in zip(slots, choices, strict=True)
                ]
            ),
            personalised=personalised,
            note=FeatureNote(question.features, carried).encode(size, width=width),
            reason=reason,
        )

    # Learning.

    def position_of(self, pending: PendingDecision, item: str | None) -> int:
        """Return which item is meant; candidates of the caller's own are known by a digest."""
        carried = None if item is None else read_note(pending.note).items
        if carried is None or item is None:
            return super().position_of(pending, item)
        digest = id_digest(item)
        for position, (known, _) in enumerate(carried):
            if known == digest:
                return position
        raise InvalidArgument("item", "is not one of the items of this recommendation")

    def lessons(
        self, many: Sequence[tuple[PendingDecision, int, float]]
    ) -> list[Lesson | DiscreetError]:
        """Return the records' gradients, evaluated at the released model; their price is fixed."""
        parts = [tried(self._reader.parts, pending, position) for pending, position, _ in many]
        found, rewards = [], []
        for part, (_, _, reward) in zip(parts, many, strict=True):
            if not isinstance(part, DiscreetError):
                found.append(part)
                rewards.append(reward)
        rows = self._reader.records(found)
        learned = iter(self.learner.increments(self.current.model, rows, np.array(rewards)))
        return [
            part if isinstance(part, DiscreetError) else Lesson(next(learned), self._record_price)
            for part in parts
        ]

    # Releasing.

    def blank(self) -> MirrorModel:
        """Return a model that prefers nothing."""
        return self.learner.model(blank_sums(self.learner.dimension))

    def release(
        self, model: MirrorModel, gathered: Mapping[bytes, Vector], noise: NoiseSource
    ) -> MirrorModel:
        """Add what has gathered to the node's sums, with noise on every feature."""
        own = self.learner.release(model.own, self.learner.summed(gathered), noise)
        return self.learner.model(own, model.neighbours)

    def encode(self, model: MirrorModel) -> bytes:
        """Return the node's own sums; what mixing added to them is another blob."""
        return model.own.encode()

    def decode(self, content: bytes) -> MirrorModel:
        """Return the model with these sums, and with what mixing added as this worker knows it."""
        return self.learner.model(read_sums(content, self.learner.dimension), self._mixture)

    def figures(self, model: MirrorModel) -> ReleasedFigures:
        """Return how many records this node's noisy sums hold; gradients tell no rewards."""
        return ReleasedFigures(feedback=model.own.count, rho=rho_of(self._record_price))

    def adopt(self, *, number: int, released_at: float, model: MirrorModel) -> None:
        """Answer from this model, and report how many features count in it."""
        if model.neighbours is not self._mixture:  # a round ended while it was being made
            model = self.learner.model(model.own, self._mixture)
        super().adopt(number=number, released_at=released_at, model=model)
        self.observer.gauge(
            recommender=self.name, what=FamilyGauge.MODEL_NONZEROS, value=model.nonzeros
        )

    # Neighbours.

    def message(self) -> ModelMessage:
        """Return what this worker tells neighbours: the sums that it answers from."""
        current = self.current
        revision = struct.pack(
            "<8sII", self.generation, current.number, max(self._mixture_version, 0)
        )
        if self._message is None or self._message.revision != revision:
            self._message = write_message(
                current.model.mixed, revision=revision, degree=len(self.document.neighbours)
            )
        return self._message

    async def tend(self) -> None:
        """Take over what another worker mixed, and mix if it is time and nobody else does."""
        neighbours = self.document.neighbours
        if neighbours or self._mixture_version < 0:
            await self._load_mixture()
        if not neighbours or self.clock() < self._next_round:
            return
        lease = self.key(b"mixing")
        if not await self.store.hold(lease=lease, holder=self._holder, seconds=ROUND_SECONDS):
            return
        try:
            await self.mix()
        finally:
            # The lease is kept until the next round is due, so that no worker begins it earlier.
            pause = self.document.mixing_seconds
            self._next_round = self.clock() + pause
            await self.store.hold(lease=lease, holder=self._holder, seconds=pause)

    async def mix(self) -> bool:
        """Do one round; tell whether it changed anything."""
        messages = await self._neighbours.ask_all()
        await self._load_mixture()
        current, version = self.current, self._mixture_version
        mixed = await asyncio.to_thread(self._neighbours.mix, current.model.mixed, messages)
        if mixed is None:
            return False
        added = combined([(1.0, mixed), (-1.0, current.model.own)])
        saved = await self.store.save(
            key=self.key(b"mixture"),
            content=_BASE.pack(current.number) + added.encode(),
            expected=max(version, 0),
        )
        if saved is None:
            return False  # another worker mixed meanwhile: the next round sees it
        await self._use_mixture(added, saved)
        self.observer.count(recommender=self.name, what=FamilyCounter.MIXING_ROUNDS)
        return True

    async def _load_mixture(self) -> None:
        """Take over what mixing added, as the store has it."""
        (version,) = await self.store.versions(keys=[self.key(b"mixture")])
        if version == 0 or version == self._mixture_version:
            self._mixture_version = version
            return
        (blob,) = await self.store.load(keys=[self.key(b"mixture")])
        if blob is None:
            return
        (base,) = _BASE.unpack_from(blob.content)
        # It belongs to sums that this worker is about to load.
        if base <= self.current.number:
            added = read_sums(blob.content[_BASE.size :], self.learner.dimension)
            await self._use_mixture(added, blob.version)

    async def _use_mixture(self, added: NodeSums, version: int) -> None:
        current = self.current
        model = await asyncio.to_thread(self.learner.model, current.model.own, added)
        self._mixture, self._mixture_version = added, version
        if self.current is not current:  # a release was adopted meanwhile
            current, model = self.current, self.current.model
        self.adopt(number=current.number, released_at=current.released_at, model=model)

    async def erase(self) -> None:
        """Erase what was learned, released and mixed. Ledgers stay."""
        await super().erase()
        await self.store.erase(keys=[self.key(b"mixture")])
