"""A recommender that learns from a vector of numbers: the contract, for this family."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from discreet.errors import TokenForged
from discreet.families import maps
from discreet.families.budgets import FREE, BudgetPolicy, rho_of
from discreet.families.cards import GuaranteeCard
from discreet.families.choice import Floats
from discreet.families.contextual import guarantee, learning
from discreet.families.contextual.cells import CellSpace
from discreet.families.contextual.document import ContextualDocument
from discreet.families.contextual.exploring import SEEN
from discreet.families.contextual.learning import ReleaseNoise
from discreet.families.contextual.model import AnswerRule, ContextualModel, ContextualQuestion
from discreet.families.contextual.spaces import space_for
from discreet.families.contextual.sums import ContextualSums
from discreet.families.contract import Recommender, Resources
from discreet.families.documents import ReleasesDocument
from discreet.families.observer import FamilyGauge, ReleasedFigures
from discreet.families.questions import (
    Ask,
    Decision,
    Lesson,
    PendingDecision,
    Question,
    Utilities,
    plain_ids,
    refuse_unused,
    utilities_of,
)
from discreet.families.stored import StoredDocument
from discreet.privacy.charges import Charge
from discreet.privacy.events import LaplaceRelease
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import EXACT, Vector

BUDGET_SPENT = "the client's budget for answers is spent"
NOTHING_TO_CHOOSE = "there was nothing to choose from"
EXACT_ANSWERS = "answers are exact: the document turns their protection off"
_DAY = 86_400.0
_NEWS = ReleasesDocument(seconds=0.25, growth=0.1)
"""When models are released after new items have come, by the time since then: 90 of them in the
first hour,"""
_RELEASED_ITEM = 1e-3
"""and never less than so many seconds an item apart, because of what releasing takes."""


class ContextualRecommender(Recommender[ContextualModel]):
    """Items whose means are functions of the context."""

    algorithm = "contextual"
    decides_ahead = True
    document_class = ContextualDocument

    def __init__(self, *, name: str, stored: StoredDocument, resources: Resources) -> None:
        document = stored.document
        assert isinstance(document, ContextualDocument)
        self.document = document
        self._read_context = document.context.reader()
        self.releases = document.pace()
        answers, feedback = document.privacy.answers, document.privacy.feedback
        self.space = space_for(
            document.context.size, items=len(stored.slots), exact=feedback == "exact"
        )
        self.rule = AnswerRule(None)
        if not isinstance(answers, str):
            self.answers_budget = BudgetPolicy.of(answers.budget)
            self.refuses = answers.on_exhausted == "refuse"
            self.rule = AnswerRule(answers.epsilon, answers.personal_slots)
        self.release_noise = ReleaseNoise()
        self._feedback_charge = EXACT
        if not isinstance(feedback, str):
            self.release_noise = learning.noise_for(self.space, feedback.epsilon, feedback.delta)
            event = self.release_noise.event
            assert event is not None
            self.feedback_budget = BudgetPolicy.of(
                feedback.budget, pure=isinstance(event, LaplaceRelease)
            )
            self._feedback_charge = self.feedback_budget.charge((event,))
        self._live = np.array(sorted(stored.slots.values()), dtype=np.intp)
        self._began = stored.created
        """When the last release was begun."""
        self._news: float | None = None
        """Since when there have been items that no release has seen."""
        super().__init__(name=name, stored=stored, resources=resources)
        if maps.drawable(document.context):
            self.offer(maps.ModelMap(self, lambda model, at: model.first_choices(at)))

    def guarantee(self) -> GuaranteeCard:
        """Return the card."""
        return guarantee.card(self.document, release=self.current.number)

    # Deciding.

    def question(self, ask: Ask) -> ContextualQuestion:
        """Return the checked question: the context as features, ids for candidates."""
        if not (ask.features is None and ask.category is None and ask.round is None):
            refuse_unused(ask, uses=("context",))
        context = self._read_context(ask.context)
        candidates = None if ask.candidates is None else plain_ids(ask)
        available = self.available(exclude=ask.exclude, candidates=candidates)
        return ContextualQuestion(
            client=self.principal(ask.client),
            limit=ask.limit,
            context=context,
            available=available,
            whole=available is self.visible,
        )

    def price(self, question: Question) -> Charge:
        """Return the price of the draws, which depends on what is available."""
        assert isinstance(question, ContextualQuestion)
        draws = min(self.rule.most_drawn(question.limit), len(question.available) - 1)
        if draws <= 0:
            return FREE
        if self.answers_budget is None:
            return EXACT
        return self.answers_budget.charge(self.rule.events(draws))

    def decide(
        self,
        model: ContextualModel,
        questions: Sequence[Question],
        own: Sequence[Any],
        noise: NoiseSource,
    ) -> list[Decision]:
        """Draw for each: the best of the shortlist for the context, or another."""
        asked = [one for one in questions if isinstance(one, ContextualQuestion)]
        decisions = []
        for question, (choices, note) in zip(asked, model.decide(asked, noise), strict=True):
            choosable = len(question.available) > 1
            reason = None if choosable else NOTHING_TO_CHOOSE
            if choosable and self.answers_budget is None:
                reason = EXACT_ANSWERS
            decisions.append(
                Decision(
                    items=tuple(self.id_of[choice.slot] for choice in choices),
                    choices=choices,
                    personalised=choosable and len(choices) > 0,
                    note=note,
                    reason=reason,
                )
            )
        return decisions

    def decide_without_client(
        self, model: ContextualModel, questions: Sequence[Question], noise: NoiseSource
    ) -> list[Decision]:
        """Answer what most people like, or explore."""
        asked = [one for one in questions if isinstance(one, ContextualQuestion)]
        # Where feedback will be learned; the answer does not depend on it.
        rows = self.space.rows(np.array([one.context for one in asked], dtype=np.float64))
        decisions = []
        for question, row in zip(asked, rows, strict=True):
            choices = model.decide_for_anybody(question, noise)
            decisions.append(
                Decision(
                    items=tuple(self.id_of[choice.slot] for choice in choices),
                    choices=choices,
                    personalised=False,
                    note=self.space.note(row),
                    reason=BUDGET_SPENT,
                )
            )
        return decisions

    def answer_law(
        self,
        model: ContextualModel,
        questions: Sequence[Question],
        own: Sequence[Any],
        *,
        paid: bool,
    ) -> Floats:
        """Return the odds of every item."""
        asked = [one for one in questions if isinstance(one, ContextualQuestion)]
        return model.answer_law(asked, paid=paid)

    explains: ClassVar[bool] = True

    def explain(self, model: ContextualModel, question: Question, own: Any) -> Utilities:
        """Return what the model thinks of every item, for this context."""
        assert isinstance(question, ContextualQuestion)
        slots = question.available
        worth = model.utilities(self.space.rows(np.array([question.context])), slots)[0]
        return utilities_of(slots, worth, model.odds(model.outlook, slots).shortlist)

    # Learning.

    def learn(self, pending: PendingDecision, position: int, reward: float) -> Lesson:
        """Return what the reward adds to the item's sums, and to everybody's products."""
        slot = pending.choices[position].slot
        if self.stored.next_slot <= slot:
            raise TokenForged("recommendation_id was issued for another catalogue")
        return Lesson(self.space.increments(pending.note, slot, reward), self._feedback_charge)

    # Releasing.

    def due(self, now: float) -> bool:
        """Tell whether another release is due; sooner than usual after new items have come.

        An item that nothing is known about looks good. A model without noise shows it to nearly
        everybody until the next one, which may be an hour away, however bad the item is. That
        there is one is read off the released model, and where feedback is private never.
        """
        if super().due(now):
            return True
        if self._news is None:
            return False
        least = _NEWS.seconds + len(self._live) * _RELEASED_ITEM
        pause = max(least, _NEWS.pause(self.current.released_at - self._news))
        return now - self.current.released_at >= pause

    def blank(self) -> ContextualModel:
        """Return a model that knows nothing, and explores."""
        return self._model(
            ContextualSums.blank(
                slots=self.stored.next_slot,
                entries=self.space.entries,
                products=self.space.products,
                own=self.space.own,
                apart=isinstance(self.space, CellSpace),
            )
        )

    def _model(self, sums: ContextualSums) -> ContextualModel:
        sums = sums.fitted(self.stored.next_slot)
        return ContextualModel(
            self.space,
            sums,
            learning.fit(self.space, sums, self._live),
            rule=self.rule,
            visible=self.visible,
            exploration_rate=self.document.exploration.rate,
        )

    async def gather(self, number: int) -> Any:
        """Return what release `number` is made from.

        How long that takes depends on how much there is, which is private, so the clock by which
        older feedback fades is read before.
        """
        self._began = self.clock()
        return await super().gather(number)

    def release(
        self, model: ContextualModel, gathered: Mapping[bytes, Vector], noise: NoiseSource
    ) -> ContextualModel:
        """Add what has gathered to the released sums, with noise, and fit the next model."""
        fresh = learning.fresh_sums(
            self.space,
            gathered,
            slots=self._live,
            hidden_by=self.release_noise,
            noise=noise,
        )
        elapsed = max(0.0, self._began - self.current.released_at)
        decay = 0.5 ** (elapsed / (self.document.learning.half_life_days * _DAY))
        sums = model.sums.fitted(self.stored.next_slot)
        made = self._model(sums.with_release(fresh, law=model.law(), decay=decay))
        _ = made.outlook  # Here, in the releaser's thread, and not in the first request.
        return made

    def encode(self, model: ContextualModel) -> bytes:
        """Return the sums; everything else follows from them."""
        return learning.encode(model.sums)

    def decode(self, content: bytes) -> ContextualModel:
        """Return the model with these sums, for today's catalogue."""
        sums = learning.decode(content)
        if isinstance(self.space, CellSpace):
            sums = sums.converted(self.space.converted)
        if sums.liked.shape[1] != self.space.entries or sums.slots > self.stored.next_slot:
            raise ValueError("a model of contextual was made for another shape of context")
        made = self._model(sums)
        _ = made.outlook
        return made

    def figures(self, model: ContextualModel) -> ReleasedFigures:
        """Return what the released sums say about all feedback."""
        return ReleasedFigures(
            feedback=model.sums.feedback,
            rewards=model.sums.rewards,
            reward_mean=model.sums.reward_mean(),
            regret=model.expected_regret(),
            rho=rho_of(self._feedback_charge),
            variance=model.sums.feedback_variance,
        )

    def adopt(self, *, number: int, released_at: float, model: ContextualModel) -> None:
        """Answer from this model, and report how many items were tried."""
        if self.document.releases is None and self.space.exact and not self.current.number:
            shown = model.sums.count[self.visible].sum(axis=1)
            self._news = self.clock() if bool((shown < SEEN).any()) else None
        super().adopt(number=number, released_at=released_at, model=model)
        tried = int(np.count_nonzero(model.sums.count.sum(axis=1) > SEEN))
        self.observer.gauge(recommender=self.name, what=FamilyGauge.EXPLORED, value=tried)
