"""The best item overall: the contract, for this family."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.families.budgets import BudgetPolicy
from discreet.families.cards import GuaranteeCard
from discreet.families.contract import Recommender, Resources
from discreet.families.questions import (
    Ask,
    Choice,
    Decision,
    Lesson,
    PendingDecision,
    Question,
    plain_ids,
    refuse_unused,
)
from discreet.families.stored import StoredDocument
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import Vector
from tests.sixth_family import guarantee
from tests.sixth_family.document import OverallDocument
from tests.sixth_family.learning import COUNTS, increments, next_model, release_event
from tests.sixth_family.model import OverallModel, OverallQuestion


class OverallRecommender(Recommender[OverallModel]):
    """Everybody gets what most people like."""

    algorithm = "best-overall"
    document_class = OverallDocument

    def __init__(self, *, name: str, stored: StoredDocument, resources: Resources) -> None:
        document = stored.document
        assert isinstance(document, OverallDocument)
        self.document = document
        self.releases = document.releases
        feedback = document.privacy.feedback
        self.feedback_budget = BudgetPolicy.of(feedback.budget)
        self._event = release_event(feedback.epsilon, feedback.delta)
        super().__init__(name=name, stored=stored, resources=resources)

    def guarantee(self) -> GuaranteeCard:
        return guarantee.card(self.document, self.current.number)

    def question(self, ask: Ask) -> OverallQuestion:
        refuse_unused(ask)
        available = self.available(exclude=ask.exclude, candidates=plain_ids(ask))
        return OverallQuestion(self.principal(ask.client), ask.limit, available)

    def decide(
        self,
        model: OverallModel,
        questions: Sequence[Question],
        own: Sequence[Any],
        noise: NoiseSource,
    ) -> list[Decision]:
        asked = [one for one in questions if isinstance(one, OverallQuestion)]
        return [
            Decision(
                items=tuple(self.id_of[slot] for slot in slots),
                choices=tuple(Choice(slot, 1.0) for slot in slots),
                personalised=False,
                reason="the ranking ignores the client",
            )
            for slots in model.rank(asked)
        ]

    def learn(self, pending: PendingDecision, position: int, reward: float) -> Lesson:
        assert self.feedback_budget is not None
        slot = pending.choices[position].slot
        charge = self.feedback_budget.charge((self._event,))
        return Lesson({COUNTS: increments(slot, reward)}, charge)

    def blank(self) -> OverallModel:
        nothing = np.zeros(self.stored.next_slot)
        return OverallModel(nothing, nothing)

    def release(
        self, model: OverallModel, gathered: Mapping[bytes, Vector], noise: NoiseSource
    ) -> OverallModel:
        return next_model(model, gathered.get(COUNTS), self._event, noise)

    def encode(self, model: OverallModel) -> bytes:
        return np.stack([model.liked, model.disliked]).astype("<f8").tobytes()

    def decode(self, content: bytes) -> OverallModel:
        counts = np.frombuffer(content, dtype="<f8").reshape(2, -1)
        whole = np.zeros((2, self.stored.next_slot))
        whole[:, : counts.shape[1]] = counts[:, : self.stored.next_slot]
        return OverallModel(whole[0], whole[1])
