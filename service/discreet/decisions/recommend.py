"""Questions in, answers out: the same path for one and for many.

A question is checked by its recommender, answered together with the others of its turn (debit,
then decide: `Recommender.answer`), and its decision sealed into a `recommendation_id`.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from discreet.decisions.batcher import Batcher
from discreet.decisions.lane import LONG, PIECE, LongWorkLane
from discreet.decisions.registry import RecommenderRegistry
from discreet.decisions.retries import StoredAnswers
from discreet.decisions.tokens import Sealer, new_decision_ids, seal_decisions
from discreet.errors import (
    BudgetExhausted,
    DiscreetError,
    StoreFenced,
    StoreUnavailable,
    UnknownRecommender,
)
from discreet.families.budgets import FREE
from discreet.families.contract import Recommender
from discreet.families.observer import AnswerOutcome, Observer
from discreet.families.questions import (
    Answered,
    Ask,
    PendingDecision,
    Question,
    Recommendation,
    RetryMark,
)
from discreet.privacy.charges import Charge
from discreet.state.stores import Account

_MOST_TOGETHER = 250
"""Questions of a batch that are debited and decided as one."""


class MarkedQuestion(NamedTuple):
    """A question, and the mark of the caller's event under which it is debited once."""

    question: Question
    mark: RetryMark | None = None


class _Placed(NamedTuple):
    """An entry of a batch, with its place in it."""

    position: int
    ask: Ask
    question: Question


class RecommendRequests:
    """Answers questions."""

    def __init__(
        self,
        *,
        registry: RecommenderRegistry,
        sealer: Sealer,
        answers: StoredAnswers,
        observer: Observer,
        clock: Callable[[], float],
        lane: LongWorkLane,
    ) -> None:
        self._registry = registry
        self._sealer = sealer
        self._stored = answers
        self._observer = observer
        self._clock = clock
        self._lane = lane
        self._batcher: Batcher[MarkedQuestion, Recommendation] = Batcher(self.answer)

    async def recommend(self, ask: Ask) -> Recommendation:
        """Answer one question, together with those that arrive in the same turn.

        Raises `Overloaded` if it is long work by itself and cannot begin soon.
        """
        recommender = await self._registry.find(ask.recommender)
        question = recommender.question(ask)
        size = recommender.stored.next_slot * question.limit
        if size >= LONG:
            return await self._lane.single(size, partial(self._one, recommender, ask, question))
        if ask.event_id is None:
            return await self._batcher.join(recommender, MarkedQuestion(question))
        return await self._once(recommender, ask, question)

    async def recommend_many(self, asks: Sequence[Ask]) -> list[Recommendation | DiscreetError]:
        """Answer many questions in few round trips; each succeeds or fails by itself, in order."""
        snapshot = await self._registry.current()
        answers: list[Recommendation | DiscreetError] = [_UNKNOWN] * len(asks)
        together: dict[tuple[str, bool], list[_Placed]] = {}
        for position, ask in enumerate(asks):
            recommender = snapshot.recommenders.get(ask.recommender)
            if recommender is None:
                continue
            try:
                question = recommender.question(ask)
            except DiscreetError as error:
                answers[position] = error
                continue
            kind = (ask.recommender, ask.event_id is None)
            together.setdefault(kind, []).append(_Placed(position, ask, question))
        running = []
        for (name, without_event), group in together.items():
            recommender = snapshot.recommenders[name]
            answer = self._answer_placed if without_event else self._answer_once_placed
            for chunk in _chunks(group, recommender.stored.next_slot):
                work = self._lane.piece(partial(answer, recommender, chunk))
                running.append((chunk, asyncio.ensure_future(work)))
        for chunk, task in running:
            for placed, outcome in zip(chunk, await task, strict=True):
                answers[placed.position] = outcome
        return answers

    async def _answer_placed(
        self, recommender: Recommender[Any], chunk: "Sequence[_Placed]"
    ) -> Sequence[Recommendation | DiscreetError]:
        try:
            return await self.answer(recommender, [MarkedQuestion(one.question) for one in chunk])
        except DiscreetError as error:
            return [error] * len(chunk)

    async def _answer_once_placed(
        self, recommender: Recommender[Any], chunk: "Sequence[_Placed]"
    ) -> Sequence[Recommendation | DiscreetError]:
        async def one(placed: _Placed) -> Recommendation | DiscreetError:
            try:
                return await self._once(recommender, placed.ask, placed.question)
            except DiscreetError as error:
                return error

        return await asyncio.gather(*map(one, chunk))

    async def _one(
        self, recommender: Recommender[Any], ask: Ask, question: Question
    ) -> Recommendation:
        if ask.event_id is not None:
            return await self._once(recommender, ask, question)
        (answer,) = await self.answer(recommender, [MarkedQuestion(question)])
        if isinstance(answer, DiscreetError):
            raise answer
        return answer

    async def _once(
        self, recommender: Recommender[Any], ask: Ask, question: Question
    ) -> Recommendation:
        """Answer under the caller's event id: a retry gets the answer that was given."""

        async def fresh(mark: RetryMark) -> Recommendation:
            (answer,) = await self.answer(recommender, [MarkedQuestion(question, mark)])
            if isinstance(answer, DiscreetError):
                raise answer
            return answer

        try:
            stored = await self._stored.answer_once(recommender, ask, question.client, fresh)
        except StoreUnavailable as error:
            raise _in_doubt(error, ask.event_id) from error
        if stored.repeated:
            self._note(recommender, AnswerOutcome.REPEATED, FREE, [stored.answer])
        return stored.answer

    async def answer(
        self, recommender: Recommender[Any], many: Sequence[MarkedQuestion]
    ) -> list[Recommendation | DiscreetError]:
        """Answer questions to one recommender, and seal the decisions."""
        questions = [question for question, _ in many]
        answered = await self._answer_marked(recommender, many)
        expires_at = int(self._clock()) + recommender.ttl
        names = new_decision_ids(len(many))
        good: list[int] = []
        pending: list[PendingDecision] = []
        for row, (one, name, question) in enumerate(zip(answered, names, questions, strict=True)):
            if isinstance(one, Answered):
                decision = one.decision
                good.append(row)
                pending.append(
                    PendingDecision(
                        recommender.generation,
                        decision.decision_id or name,
                        min(expires_at, decision.expires_at or expires_at),
                        question.client,
                        decision.personalised,
                        decision.choices,
                        decision.note,
                    )
                )
        answers: list[Recommendation | DiscreetError] = [
            _UNKNOWN if isinstance(one, Answered) else one for one in answered
        ]
        budget = recommender.answers_budget
        kinds: dict[tuple[AnswerOutcome, Charge], list[Recommendation]] = {}
        tokens = seal_decisions(self._sealer, pending)
        for row, token, sealed in zip(good, tokens, pending, strict=True):
            one = answered[row]
            assert isinstance(one, Answered)
            decision = one.decision
            answer = Recommendation(
                token,
                decision.items,
                decision.personalised,
                recommender.report(one),
                sealed.expires_at,
                decision.vendors,
                decision.round,
                decision.reason,
            )
            answers[row] = answer
            kinds.setdefault((one.outcome, one.charge), []).append(answer)
            if budget is not None and one.ledger is not None and one.charge != FREE:
                spent = one.ledger.spent(Account.ANSWERS, budget.window)
                for tenths in budget.reached(spent=spent, charge=one.charge):
                    self._observer.reached(
                        recommender=recommender.name, algorithm=recommender.algorithm, tenths=tenths
                    )
        for kind, alike in kinds.items():
            self._note(recommender, *kind, alike)
        refused = sum(isinstance(one, BudgetExhausted) for one in answered)
        if refused:
            self._observer.recommendation(
                recommender=recommender.name,
                algorithm=recommender.algorithm,
                outcome=AnswerOutcome.REFUSED,
                charge=FREE,
                items=0,
                answers=refused,
            )
        return answers

    async def _answer_marked(
        self, recommender: Recommender[Any], many: Sequence[MarkedQuestion]
    ) -> Sequence[Answered | DiscreetError]:
        """Answer questions, each debited under the caller's mark or under one that is made up."""
        made_up = self._stored.make_up(recommender, len(many))
        marks = [one.mark or mark for one, (_, mark) in zip(many, made_up, strict=True)]
        answered: Sequence[Answered | DiscreetError]
        try:
            answered = await recommender.answer([one.question for one in many], marks)
        except StoreUnavailable as error:
            answered = [error] * len(many)
        return [
            _in_doubt(one, event_id)
            if isinstance(one, StoreUnavailable) and marked.mark is None
            else one
            for one, marked, (event_id, _) in zip(answered, many, made_up, strict=True)
        ]

    def _note(
        self,
        recommender: Recommender[Any],
        outcome: AnswerOutcome,
        charge: Charge,
        answers: Sequence[Recommendation],
    ) -> None:
        self._observer.recommendation(
            recommender=recommender.name,
            algorithm=recommender.algorithm,
            outcome=outcome,
            charge=charge,
            items=sum(len(answer.items) for answer in answers),
            answers=len(answers),
        )


def _chunks(many: Sequence[_Placed], items: int) -> list[Sequence[_Placed]]:
    """Cut a batch into pieces of long work, each of one question at least."""
    chunks, start, size = [], 0, 0
    for end, placed in enumerate(many):
        more = items * placed.question.limit
        if end > start and (size + more > PIECE or end - start == _MOST_TOGETHER):
            chunks.append(many[start:end])
            start, size = end, 0
        size += more
    chunks.append(many[start:])
    return chunks


def _in_doubt(error: StoreUnavailable, event_id: str | None) -> StoreUnavailable:
    """Return the error with the event id under which a retry is not debited again."""
    if isinstance(error, StoreFenced):
        return error  # there is nothing to retry
    return StoreUnavailable(str(error), error.retry_after, event_id)


_UNKNOWN = UnknownRecommender("no recommender of that name; GET /recommenders lists them")
