"""A recommender by adaptive partition: the contract, for this family."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from discreet.errors import TokenForged
from discreet.families import maps
from discreet.families.budgets import FREE, BudgetPolicy, rho_of
from discreet.families.cards import GuaranteeCard
from discreet.families.choice import Floats, repeated
from discreet.families.contract import Recommender, Resources
from discreet.families.observer import FamilyGauge, ReleasedFigures
from discreet.families.p_dap import guarantee, learning
from discreet.families.p_dap.document import AdaptivePartitionDocument
from discreet.families.p_dap.learning import GUESTS, OWN_USERS, FeedbackNoise, Growth
from discreet.families.p_dap.model import (
    ChoiceRule,
    PartitionModel,
    PartitionQuestion,
    Population,
)
from discreet.families.p_dap.statistics import CellStatistics
from discreet.families.p_dap.sync import Guests, Vendors
from discreet.families.questions import (
    Ask,
    Choice,
    Decision,
    Lesson,
    PendingDecision,
    PendingFeedback,
    Question,
    Utilities,
    plain_ids,
    refuse_unused,
)
from discreet.families.stored import StoredDocument
from discreet.privacy.charges import Charge
from discreet.privacy.events import RandomisedResponse
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import EXACT, Vector

BUDGET_SPENT = "the client's budget for answers is spent"
NOTHING_TO_CHOOSE = "there was nothing to choose from"
EXACT_ANSWERS = "answers are exact: the document turns their protection off"
_NOTE_BYTES = 5


class PartitionRecommender(Recommender[PartitionModel]):
    """Cells of our own users, and of guests: users whom other vendors ask for."""

    algorithm = "p-dap"
    document_class = AdaptivePartitionDocument

    def __init__(self, *, name: str, stored: StoredDocument, resources: Resources) -> None:
        document = stored.document
        assert isinstance(document, AdaptivePartitionDocument)
        self.document = document
        self.dimensions = document.context.size
        self._read_context = document.context.reader()
        self.releases = document.releases
        self.decides_ahead = not document.vendors
        answers, feedback = document.privacy.answers, document.privacy.feedback
        self.rule = self.vendor_rule = ChoiceRule(None)
        self.vendor_epsilon = 1.0
        if not isinstance(answers, str):
            self.answers_budget = BudgetPolicy.of(answers.budget)
            self.refuses = answers.on_exhausted == "refuse"
            alpha = document.partition.similarity if answers.mode == "geometric" else None
            self.rule = ChoiceRule(answers.epsilon, alpha, answers.personal_slots)
            # What an observer sees of a vendor's item depends on two draws, ours and the
            # vendor's: epsilon is divided between them, and both parts are charged.
            self.vendor_epsilon = answers.vendor_share * answers.epsilon
            left = answers.epsilon - self.vendor_epsilon
            self.vendor_rule = ChoiceRule(left, alpha, answers.personal_slots)
        noise = FeedbackNoise.exact()
        self._feedback_charge = EXACT
        self._price_of: Population | None = None
        self._price = FREE
        if not isinstance(feedback, str):
            self.feedback_budget = BudgetPolicy.of(feedback.budget)
            noise = FeedbackNoise.calibrated(epsilon=feedback.epsilon, delta=feedback.delta)
            assert noise.event is not None
            self._feedback_charge = self.feedback_budget.charge((noise.event,))
        guest = document.privacy.guests
        shape = (self.dimensions, document.partition.base, document.partition.growth)
        self._growth = {
            OWN_USERS: Growth(*shape, noise),
            GUESTS: Growth(
                *shape, FeedbackNoise.calibrated(epsilon=guest.epsilon, delta=guest.delta)
            ),
        }
        super().__init__(name=name, stored=stored, resources=resources)
        self._live = np.array(sorted(stored.slots.values()), dtype=np.intp)
        self.vendors = Vendors(self, document, stored, epsilon=self.vendor_epsilon)
        self.follows_up_feedback = bool(self.vendors.url_of)
        self.offer(Guests(self, dimensions=self.dimensions, document=guest))
        if maps.drawable(document.context):
            self.offer(
                maps.ModelMap(self, lambda model, at: model.own.first_choices(at, self.rule))
            )

    def guarantee(self) -> GuaranteeCard:
        """Return the card, with what one item costs under the current model."""
        own = self.current.model.own
        epsilon = self.rule.epsilon_at(own.deepest, own.statistics.tree.segments)
        return guarantee.card(self.document, epsilon=epsilon, release=self.current.number)

    # Deciding.

    def question(self, ask: Ask) -> PartitionQuestion:
        """Return the checked question: the context as features, ids for candidates."""
        if not (ask.features is None and ask.category is None and ask.round is None):
            refuse_unused(ask, uses=("context",))
        context = self._read_context(ask.context)
        available = self.visible
        if ask.candidates is not None or ask.exclude:
            candidates = None if ask.candidates is None else plain_ids(ask)
            available = self.available(exclude=ask.exclude, candidates=candidates)
        vendors: tuple[int, ...] = ()
        if self.vendors.url_of and len(available):
            # Beside at least one item of ours, which stands in for a vendor that does not answer.
            vendors = self.vendors.reachable(ask.exclude)
        client, whole = self.principal(ask.client), available is self.visible
        return PartitionQuestion(client, ask.limit, context, available, vendors, whole)

    def price(self, question: Question) -> Charge:
        """Return the price of the draws: what is available, and how deep the model is."""
        assert isinstance(question, PartitionQuestion)
        own = self.current.model.own
        if question.whole and question.limit == 1 and not question.vendors:
            # What most ask for: worked out once for every model.
            if self._price_of is not own:
                self._price_of, self._price = own, self._work_out(question)
            return self._price
        return self._work_out(question)

    def _work_out(self, question: PartitionQuestion) -> Charge:
        arms = len(question.available) + len(question.vendors)
        draws = min(self.rule.most_drawn(question.limit), arms - 1)
        if draws <= 0:
            return FREE
        if self.answers_budget is None:
            return EXACT
        own = self.current.model.own
        events = own.outlook(self._rule_for(question), question.vendors).events(draws)
        if question.vendors:
            asked = min(len(question.vendors), self.rule.most_drawn(question.limit))
            events += repeated(RandomisedResponse(self.vendor_epsilon), asked)
        return self.answers_budget.charge(events)

    def _rule_for(self, question: PartitionQuestion) -> ChoiceRule:
        return self.vendor_rule if question.vendors else self.rule

    def decide(
        self,
        model: PartitionModel,
        questions: Sequence[Question],
        own: Sequence[Any],
        noise: NoiseSource,
    ) -> list[Decision]:
        """Draw for each: the best of the shortlist for the context, or another."""
        asked = [one for one in questions if isinstance(one, PartitionQuestion)]
        if not self.vendors.url_of:
            found = model.own.decide(asked, self.rule, noise)
            return [self._decision(one, *each) for one, each in zip(asked, found, strict=True)]
        decided: list[Decision | None] = [None] * len(asked)
        for rule in {self._rule_for(one) for one in asked}:
            rows = [row for row, one in enumerate(asked) if self._rule_for(one) == rule]
            found = model.own.decide([asked[row] for row in rows], rule, noise)
            for row, (choices, cell) in zip(rows, found, strict=True):
                decided[row] = self._decision(asked[row], choices, cell)
        return [one for one in decided if one is not None]

    def _decision(
        self, question: PartitionQuestion, choices: tuple[Choice, ...], cell: int
    ) -> Decision:
        choosable = len(question.available) + len(question.vendors) > 1
        reason = None if choosable else NOTHING_TO_CHOOSE
        if choosable and self.answers_budget is None:
            reason = EXACT_ANSWERS
        id_of = self.id_of
        if len(choices) == 1:
            items: tuple[str, ...] = (id_of.get(choices[0].slot, ""),)
        else:
            items = tuple([id_of.get(slot, "") for slot, _ in choices])
        return Decision(
            items,
            choices,
            choosable and len(choices) > 0,
            own_note(cell),
            reason,
        )

    def decide_without_client(
        self, model: PartitionModel, questions: Sequence[Question], noise: NoiseSource
    ) -> list[Decision]:
        """Answer what most people like, or explore."""
        asked = [one for one in questions if isinstance(one, PartitionQuestion)]
        contexts = np.array([one.context for one in asked], dtype=np.float64)
        # Where feedback will be learned; the answer does not depend on it.
        cells = model.own.statistics.tree.locate(contexts).tolist()
        decisions = []
        for question, cell in zip(asked, cells, strict=True):
            choices = model.own.decide_for_anybody(question, self.rule, noise)
            decisions.append(
                Decision(
                    items=tuple(self.id_of[choice.slot] for choice in choices),
                    choices=choices,
                    personalised=False,
                    note=own_note(cell),
                    reason=BUDGET_SPENT,
                )
            )
        return decisions

    def answer_law(
        self,
        model: PartitionModel,
        questions: Sequence[Question],
        own: Sequence[Any],
        *,
        paid: bool,
    ) -> Floats:
        """Return the odds of every item, and of every vendor's slot."""
        asked = [one for one in questions if isinstance(one, PartitionQuestion)]
        law = np.zeros((len(asked), self.stored.next_slot))
        for rule in {self._rule_for(one) for one in asked}:
            rows = [row for row, one in enumerate(asked) if self._rule_for(one) == rule]
            law[rows] = model.own.answer_law([asked[row] for row in rows], rule, paid=paid)
        return law

    explains: ClassVar[bool] = True

    def explain(self, model: PartitionModel, question: Question, own: Any) -> Utilities:
        """Return what the model thinks of every item of ours, for this context."""
        assert isinstance(question, PartitionQuestion)
        return model.own.explain(question, self._rule_for(question))

    async def follow_up(
        self, questions: Sequence[Question], decisions: Sequence[Decision]
    ) -> list[Decision]:
        """Ask the vendors that were drawn for an item each."""
        if not self.vendors.url_of:
            return list(decisions)
        return await self.vendors.fetch_items(questions, decisions)

    # Learning.

    def learn(self, pending: PendingDecision, position: int, reward: float) -> Lesson:
        """Return what the reward adds to the cell that the answer came from."""
        population, cell = read_note(pending.note)
        slot = pending.choices[position].slot
        charge = self._feedback_charge if population == OWN_USERS else FREE
        if self.stored.next_slot <= slot:
            raise TokenForged("recommendation_id was issued for another catalogue")
        return Lesson({learning.block(population, cell): learning.increments(slot, reward)}, charge)

    def shown_as(self, pending: PendingDecision, position: int, choice: Choice) -> str | None:
        """Return an item's id, or the handle of a vendor's item."""
        return self.vendors.handle_of(pending, position) or self.id_of.get(choice.slot)

    async def after_feedback(self, feedback: PendingFeedback) -> None:
        """Pass feedback on a vendor's item on to the vendor."""
        await self.vendors.pass_on(feedback, self.place_of(feedback))

    # Releasing.

    def blank(self) -> PartitionModel:
        """Return one cell for everybody."""
        slots, segments = self.stored.next_slot, self.document.partition.segments
        nothing = CellStatistics.blank(segments=segments, slots=slots)
        return self._model(nothing, nothing)

    def _model(self, own: CellStatistics, guests: CellStatistics) -> PartitionModel:
        rate = self.document.exploration.rate

        def population(statistics: CellStatistics) -> Population:
            return Population(
                statistics.fitted(self.stored.next_slot),
                dimensions=self.dimensions,
                visible=self.visible,
                exploration_rate=rate,
            )

        return PartitionModel(population(own), population(guests))

    def release(
        self, model: PartitionModel, gathered: Mapping[bytes, Vector], noise: NoiseSource
    ) -> PartitionModel:
        """Add what has gathered to the released sums, with noise, and split cells."""
        own, guests = (
            self._growth[population].next_statistics(
                people.statistics, gathered, population=population, live=self._live, noise=noise
            )
            for population, people in ((OWN_USERS, model.own), (GUESTS, model.guests))
        )
        return self._model(own, guests)

    def encode(self, model: PartitionModel) -> bytes:
        """Return the statistics; everything else follows from them."""
        return learning.encode(model.own.statistics, model.guests.statistics)

    def decode(self, content: bytes) -> PartitionModel:
        """Return the model with these statistics, for today's catalogue."""
        return self._model(*learning.decode(content, segments=self.document.partition.segments))

    def figures(self, model: PartitionModel) -> ReleasedFigures:
        """Return what our own users' released sums say about all of their feedback."""
        statistics = model.own.statistics
        feedback, rewards = statistics.totals()
        return ReleasedFigures(
            feedback=feedback,
            rewards=rewards,
            reward_mean=statistics.overall_mean(),
            regret=model.own.expected_regret(self.rule),
            rho=rho_of(self._feedback_charge),
            # Likes and dislikes have noise of their own each, and feedback is both.
            variance=2.0 * float(statistics.variance.sum()),
        )

    def adopt(self, *, number: int, released_at: float, model: PartitionModel) -> None:
        """Answer from this model, and report its shape."""
        super().adopt(number=number, released_at=released_at, model=model)
        statistics = model.own.statistics
        tried = (statistics.liked + statistics.disliked).sum(axis=0) > 0.5
        for what, value in (
            (FamilyGauge.CELLS, len(statistics.tree)),
            (FamilyGauge.DEPTH, int(statistics.tree.depth.max())),
            (FamilyGauge.SPLITS, statistics.splits()),
            (FamilyGauge.EXPLORED, int(np.count_nonzero(tried))),
        ):
            self.observer.gauge(recommender=self.name, what=what, value=value)

    # Life.

    def left_elsewhere(self) -> str | None:
        """Return what vendors were told."""
        if not self.vendors.url_of:
            return None
        return (
            "in which cells of contexts vendors were asked for items, and how these were received, "
            "as the vendors were told, or are still to be told once they can be reached; without "
            "a name"
        )

    async def tend(self) -> None:
        """Send feedback that waits for vendors."""
        await self.vendors.send_waiting()

    async def close(self) -> None:
        """Stop sending."""
        await self.vendors.close()


def own_note(cell: int) -> bytes:
    """Return what a recommendation id says about where its feedback is learned."""
    return OWN_USERS + cell.to_bytes(4, "little")


def read_note(note: bytes) -> tuple[bytes, int]:
    """Return the population and the cell that a note names."""
    if len(note) < _NOTE_BYTES or note[:1] not in (OWN_USERS, GUESTS):
        raise TokenForged("recommendation_id was issued by another version of this service")
    return note[:1], int.from_bytes(note[1:_NOTE_BYTES], "little")
