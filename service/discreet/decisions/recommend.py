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

from discreet.decisions.batcher import Batcher, Waiter
from discreet.decisions.decision_log import DecisionLog
from discreet.decisions.experiments import Experiments, answer_anybody
from discreet.decisions.lane import LONG, PIECE, LongWorkLane
from discreet.decisions.registry import RecommenderRegistry, Snapshot
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
from discreet.families.budgets import FREE, PrivacyReport
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


class _Alike(NamedTuple):
    """Entries of a batch that are answered the same way, with their places in it."""

    recommender: Recommender[Any]
    with_event: bool
    positions: list[int]
    questions: list[MarkedQuestion]


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

    def enter(self, snapshot: Snapshot, ask: Ask, waiter: Waiter) -> bool:
        """Let one question be answered with those of its turn, if that is all it needs.

        Returns False, and has done nothing, for one that `recommend` has to answer. Raises what is
        wrong with the question.
        """
        recommender = snapshot.recommenders.get(ask.recommender)
        if recommender is None or ask.event_id is not None or ask.full:
            return False
        question = _checked(recommender, ask)
        if recommender.stored.next_slot * question.limit >= LONG:
            return False
        batcher = self._anybody_batcher if ask.anybody else self._batcher
        batcher.enter(recommender, MarkedQuestion(question, ask), waiter)
        return True

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
        together: dict[tuple[str, bool, bool], _Alike] = {}
        for position, ask in enumerate(asks):
            recommender = snapshot.recommenders.get(ask.recommender)
            if recommender is None:
                ask = self._experiments.route(snapshot, ask)
                recommender = snapshot.recommenders.get(ask.recommender)
            if recommender is None:
                answers[position] = self._registry.absent(ask.recommender)
                continue
            try:
                question = _checked(recommender, ask)
            except DiscreetError as error:
                answers[position] = error
                continue
            kind = (ask.recommender, ask.event_id is not None, ask.anybody)
            alike = together.get(kind)
            if alike is None:
                alike = together[kind] = _Alike(recommender, kind[1], [], [])
            alike.positions.append(position)
            alike.questions.append(MarkedQuestion(question, ask))
        running = []
        for recommender, with_event, positions, questions in together.values():
            answer = self._answer_each_once if with_event else self._answer_all
            for piece in _pieces(questions, recommender.stored.next_slot):
                work = self._lane.piece(partial(answer, recommender, questions[piece]))
                running.append((recommender, positions[piece], asyncio.ensure_future(work)))
        for recommender, positions, task in running:
            for position, outcome in zip(positions, await task, strict=True):
                if asks[position].full and isinstance(outcome, Recommendation):
                    outcome = recommender.with_descriptions(outcome)
                answers[position] = outcome
        return answers

    async def _answer_all(
        self, recommender: Recommender[Any], many: Sequence[MarkedQuestion]
    ) -> Sequence[Recommendation | DiscreetError]:
        try:
            return await self.answer(recommender, many)
        except DiscreetError as error:
            return [error] * len(many)

    async def _answer_each_once(
        self, recommender: Recommender[Any], many: Sequence[MarkedQuestion]
    ) -> Sequence[Recommendation | DiscreetError]:
        async def one(marked: MarkedQuestion) -> Recommendation | DiscreetError:
            try:
                return await self._once(recommender, marked.ask, marked.question)
            except DiscreetError as error:
                return error

        return await asyncio.gather(*map(one, many))

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
        made_up, marks = self._stored.make_up(recommender, len(many))
        marks = [one.mark or mark for one, mark in zip(many, marks, strict=True)]
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
        refused, good = 0, dict[int, Answered]()
        answers: list[Recommendation | DiscreetError] = []
        for row, one in enumerate(answered):
            if isinstance(one, Answered):
                good[row] = one
                answers.append(_UNKNOWN)
            elif isinstance(one, StoreUnavailable) and many[row].mark is None:
                answers.append(_in_doubt(one, made_up[row]))
            else:
                answers.append(one)
                refused += isinstance(one, BudgetExhausted)
        budget, awaits = recommender.answers_budget, recommender.awaits
        logged = recommender.stored.document.log is not None
        alike: list[Recommendation] = []
        kinds: list[tuple[AnswerOutcome, Charge, list[Recommendation]]] = []
        outcome: AnswerOutcome | None = None
        charge, pays = FREE, False
        reports: dict[int, tuple[Charge, PrivacyReport, range]] = {}
        sealed = seals.seal(list(good), [one.decision for one in good.values()])
        for (row, one), (token, pending) in zip(good.items(), sealed, strict=True):
            decision, ledger = one.decision, one.ledger
            if outcome is not one.outcome or charge is not one.charge:
                outcome, charge, alike = one.outcome, one.charge, []
                kinds.append((outcome, charge, alike))
                pays = budget is not None and charge != FREE
            # Ledgers that are equal are mostly one object, and stand alike after one charge.
            known = reports.get(id(ledger))
            if known is None or known[0] is not charge:
                reached = range(0)
                if pays and budget is not None and ledger is not None:
                    spent = ledger.spent(Account.ANSWERS, budget.window)
                    reached = budget.reached(spent=spent, charge=charge)
                known = reports[id(ledger)] = charge, recommender.report(one), reached
            answers[row] = answer = Recommendation(
                token,
                decision.items,
                decision.personalised,
                known[1],
                pending.expires_at,
                decision.vendors,
                decision.round,
                decision.reason,
                one.awaiting if awaits else None,
            )
            alike.append(answer)
            if logged:
                ask = many[row].ask
                self._decision_log.decided(recommender, ask, decision, pending, self._beside(ask))
            for tenths in known[2]:
                self._observer.reached(
                    recommender=recommender.name, algorithm=recommender.algorithm, tenths=tenths
                )
        for kind in kinds:
            self._note(recommender, *kind)
        self._say_what_is_not_awaited(recommender, many, good)
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
            items=sum([len(answer.items) for answer in answers]),
            answers=len(answers),
        )


def _pieces(many: Sequence[MarkedQuestion], items: int) -> list[slice]:
    """Cut a batch into pieces of long work, each of one question at least."""
    pieces, start, size = [], 0, 0
    for end, marked in enumerate(many):
        more = items * marked.question.limit
        if end > start and (size + more > PIECE or end - start == _MOST_TOGETHER):
            pieces.append(slice(start, end))
            start, size = end, 0
        size += more
    pieces.append(slice(start, len(many)))
    return pieces


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
