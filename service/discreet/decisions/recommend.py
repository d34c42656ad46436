"""Questions in, answers out: the same path for one and for many.

A question is checked by its recommender, answered together with the others of its turn (debit,
then decide: `Recommender.answer`), and its decision sealed into a `recommendation_id`.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from discreet.decisions.batcher import Batcher
from discreet.decisions.decision_log import DecisionLog
from discreet.decisions.experiments import Experiments, answer_anybody
from discreet.decisions.lane import LONG, PIECE, LongWorkLane
from discreet.decisions.registry import RecommenderRegistry
from discreet.decisions.retries import StoredAnswers
from discreet.decisions.tokens import (
    DecisionSeals,
    SealedDecision,
    Sealer,
    open_decision,
    opened,
)
from discreet.errors import (
    BudgetExhausted,
    DiscreetError,
    InvalidArgument,
    StoreFenced,
    StoreUnavailable,
    UnknownRecommender,
)
from discreet.families.budgets import FREE
from discreet.families.contract import Recommender
from discreet.families.observer import AnswerOutcome, FamilyCounter, Observer
from discreet.families.questions import (
    Answered,
    Ask,
    Question,
    Recommendation,
    RetryMark,
)
from discreet.privacy.charges import Charge
from discreet.state.stores import Account, Debit

log = logging.getLogger(__name__)

_MOST_TOGETHER = 250
"""Questions of a batch that are debited and decided as one."""

_SAID_EVERY = 60.0
"""Seconds between two warnings of one worker that no further decision can be awaited."""


class MarkedQuestion(NamedTuple):
    """A question, and the mark of the caller's event under which it is debited once."""

    question: Question
    ask: Ask
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
        decision_log: DecisionLog,
        experiments: Experiments,
    ) -> None:
        self._registry = registry
        self._sealer = sealer
        self._stored = answers
        self._observer = observer
        self._clock = clock
        self._lane = lane
        self._decision_log = decision_log
        self._experiments = experiments
        self._batcher: Batcher[MarkedQuestion, Recommendation] = Batcher(self.answer)
        self._anybody_batcher: Batcher[MarkedQuestion, Recommendation] = Batcher(self.answer)

    async def recommend(self, ask: Ask) -> Recommendation:
        """Answer one question, together with those that arrive in the same turn.

        Raises `Overloaded` if it is long work by itself and cannot begin soon.
        """
        snapshot = self._registry.trusted() or await self._registry.current()
        recommender = snapshot.recommenders.get(ask.recommender)
        if recommender is None:
            ask = self._experiments.route(snapshot, ask)
            recommender = await self._registry.find(ask.recommender)
        answer = await self._recommend(recommender, ask)
        return recommender.with_descriptions(answer) if ask.full else answer

    async def _recommend(self, recommender: Recommender[Any], ask: Ask) -> Recommendation:
        question = _checked(recommender, ask)
        size = recommender.stored.next_slot * question.limit
        if size >= LONG:
            return await self._lane.single(size, partial(self._one, recommender, ask, question))
        if ask.event_id is None:
            batcher = self._anybody_batcher if ask.anybody else self._batcher
            return await batcher.join(recommender, MarkedQuestion(question, ask))
        return await self._once(recommender, ask, question)

    async def recommend_many(self, asks: Sequence[Ask]) -> list[Recommendation | DiscreetError]:
        """Answer many questions in few round trips; each succeeds or fails by itself, in order."""
        snapshot = await self._registry.current()
        answers: list[Recommendation | DiscreetError] = [_UNKNOWN] * len(asks)
        together: dict[tuple[str, bool, bool], list[_Placed]] = {}
        recommenders = snapshot.recommenders
        for position, ask in enumerate(asks):
            recommender = recommenders.get(ask.recommender)
            if recommender is None:
                ask = self._experiments.route(snapshot, ask)
                recommender = recommenders.get(ask.recommender)
                if recommender is None:
                    continue
            try:
                question = _checked(recommender, ask)
            except DiscreetError as error:
                answers[position] = error
                continue
            kind = (ask.recommender, ask.event_id is None, ask.anybody)
            together.setdefault(kind, []).append(_Placed(position, ask, question))
        running = []
        for (name, without_event, _), group in together.items():
            recommender = snapshot.recommenders[name]
            answer = self._answer_placed if without_event else self._answer_once_placed
            for chunk in _chunks(group, recommender.stored.next_slot):
                work = self._lane.piece(partial(answer, recommender, chunk))
                running.append((chunk, asyncio.ensure_future(work)))
        for chunk, task in running:
            for placed, outcome in zip(chunk, await task, strict=True):
                if placed.ask.full and isinstance(outcome, Recommendation):
                    recommender = snapshot.recommenders[placed.ask.recommender]
                    outcome = recommender.with_descriptions(outcome)
                answers[placed.position] = outcome
        return answers

    async def _answer_placed(
        self, recommender: Recommender[Any], chunk: "Sequence[_Placed]"
    ) -> Sequence[Recommendation | DiscreetError]:
        try:
            many = [MarkedQuestion(one.question, one.ask) for one in chunk]
            return await self.answer(recommender, many)
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
        (answer,) = await self.answer(recommender, [MarkedQuestion(question, ask)])
        if isinstance(answer, DiscreetError):
            raise answer
        return answer

    async def _once(
        self, recommender: Recommender[Any], ask: Ask, question: Question
    ) -> Recommendation:
        """Answer under the caller's event id: a retry gets the answer that was given."""

        drawn = False

        async def fresh(mark: RetryMark) -> Recommendation:
            nonlocal drawn
            drawn = True
            (answer,) = await self.answer(recommender, [MarkedQuestion(question, ask, mark)])
            if isinstance(answer, DiscreetError):
                raise answer
            return answer

        try:
            stored = await self._stored.answer_once(recommender, ask, question.client, fresh)
        except StoreUnavailable as error:
            raise _in_doubt(error, ask.event_id) from error
        if stored.repeated:
            self._note(recommender, AnswerOutcome.REPEATED, FREE, [stored.answer])
            if drawn and stored.answer.awaiting:
                # Another draw of the same question came first, and is shown: that one is awaited.
                token = stored.answer.recommendation_id
                shown = SealedDecision(token, open_decision(self._sealer, token))
                again = Debit(shown.pending.principal, opened=opened(recommender, shown))
                await recommender.store.spend([again])
        return stored.answer

    async def answer(
        self, recommender: Recommender[Any], many: Sequence[MarkedQuestion]
    ) -> list[Recommendation | DiscreetError]:
        """Answer questions to one recommender, all or none of them as for anybody, and seal the
        decisions."""
        made_up = self._stored.make_up(recommender, len(many))
        marks = [one.mark or mark for one, (_, mark) in zip(many, made_up, strict=True)]
        seals = DecisionSeals(
            self._sealer,
            recommender,
            now=int(self._clock()),
            clients=[one.question.client for one in many],
            marks=[mark.digest for mark in marks],
            deferred=[not one.ask.activate for one in many],
        )
        opens = seals.open if recommender.awaits else None
        answered: Sequence[Answered | DiscreetError]
        try:
            questions = [one.question for one in many]
            if many[0].ask.anybody:
                answered = await answer_anybody(recommender, questions, opens)
            else:
                answered = await recommender.answer(questions, marks, opens)
        except StoreUnavailable as error:
            answered = [error] * len(many)
        good: dict[int, Answered] = {}
        answers: list[Recommendation | DiscreetError] = []
        for row, one in enumerate(answered):
            if isinstance(one, Answered):
                good[row] = one
                answers.append(_UNKNOWN)
            elif isinstance(one, StoreUnavailable) and many[row].mark is None:
                answers.append(_in_doubt(one, made_up[row][0]))
            else:
                answers.append(one)
        budget, awaits = recommender.answers_budget, recommender.awaits
        logged = recommender.stored.document.log is not None
        alike: list[Recommendation] = []
        kinds: list[tuple[AnswerOutcome, Charge, list[Recommendation]]] = []
        outcome: AnswerOutcome | None = None
        charge, pays = FREE, False
        sealed = seals.seal(list(good), [one.decision for one in good.values()])
        for (row, one), (token, pending) in zip(good.items(), sealed, strict=True):
            decision = one.decision
            answers[row] = answer = Recommendation(
                token,
                decision.items,
                decision.personalised,
                recommender.report(one),
                pending.expires_at,
                decision.vendors,
                decision.round,
                decision.reason,
                one.awaiting if awaits else None,
            )
            if outcome is not one.outcome or charge is not one.charge:
                outcome, charge, alike = one.outcome, one.charge, []
                kinds.append((outcome, charge, alike))
                pays = budget is not None and charge != FREE
            alike.append(answer)
            if logged:
                ask = many[row].ask
                self._decision_log.decided(recommender, ask, decision, pending, self._beside(ask))
            if pays and budget is not None and one.ledger is not None:
                spent = one.ledger.spent(Account.ANSWERS, budget.window)
                for tenths in budget.reached(spent=spent, charge=charge):
                    self._observer.reached(
                        recommender=recommender.name, algorithm=recommender.algorithm, tenths=tenths
                    )
        for kind in kinds:
            self._note(recommender, *kind)
        self._say_what_is_not_awaited(recommender, many, good)
        refused = sum(isinstance(one, BudgetExhausted) for one in answers)
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

    def _beside(self, ask: Ask) -> list[Recommender[Any]]:
        """Return the recommenders that answer in shadow, as far as they are known right now."""
        snapshot = self._registry.trusted() if ask.shadow else None
        known = {} if snapshot is None else snapshot.recommenders
        return [known[name] for name in ask.shadow if name in known]

    def _say_what_is_not_awaited(
        self,
        recommender: Recommender[Any],
        many: Sequence[MarkedQuestion],
        good: Mapping[int, Answered],
    ) -> None:
        """Report decisions that should await a reward and found no room: a public fact."""
        if not recommender.awaits:
            return
        left_out = sum(
            many[row].ask.activate and bool(one.decision.choices) and not one.awaiting
            for row, one in good.items()
        )
        if left_out:
            self._observer.count(
                recommender=recommender.name, what=FamilyCounter.NOT_AWAITED, amount=left_out
            )
            if time.monotonic() >= recommender.no_room_said + _SAID_EVERY:
                recommender.no_room_said = time.monotonic()
                log.warning(
                    "%s: %d decisions await a reward, and reward.most_open allows no more: others "
                    "are answered, and count as nothing without feedback",
                    *(recommender.name, recommender.reward.most_open),
                )

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


def _checked(recommender: Recommender[Any], ask: Ask) -> Question:
    """Return the question, or raise `InvalidArgument` for what this recommender cannot use."""
    if not ask.activate and not recommender.awaits:
        raise InvalidArgument("activate", "only where the document has reward.wait; leave it out")
    return recommender.question(ask)


_UNKNOWN = UnknownRecommender("no recommender of that name; GET /recommenders lists them")
