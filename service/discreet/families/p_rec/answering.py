"""Answers of a turn, drawn together: who pays for what, and in which order.

The order is the guarantee. A run is debited to the voters' ledger, durably, before its first draw;
what is drawn is on the client's page, durably, before it leaves this process. A draw that another
worker was faster than is thrown away unseen. So nobody is shown two draws of one round, and no
history lacks an answer that was shown. Answering the same round again shows the same object.

Each step is taken for all questions of a turn before the next one is, so that the store is asked
once a step and the noise of all tests is drawn at once. A client who asks twice in one turn is
answered twice, one after the other.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from discreet.errors import BudgetExhausted, ClientErased, DiscreetError, NothingToRecommend
from discreet.families.budgets import FREE, BudgetPolicy
from discreet.families.contract import Recommender
from discreet.families.observer import AnswerOutcome, FamilyCounter
from discreet.families.p_rec.clients import (
    NO_RUN_LEFT,
    ClientStates,
    OwnRound,
    tried_awaiting,
    was_kept,
)
from discreet.families.p_rec.document import VotersDocument
from discreet.families.p_rec.history import ClientAnswer, ClientHistory, RunRecord
from discreet.families.p_rec.model import RoundQuestion, begin_run, draw
from discreet.families.p_rec.run_parameters import RunParameters
from discreet.families.questions import Answered, Decision, Opens, Question, RetryMark
from discreet.privacy.charges import Charge, Limit
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import Debit
from discreet.state.tombstones import Tombstones

T = TypeVar("T")

_ONE_RUN = Charge(nano_epsilon=1, nano_rho=1)
"""A run in a client's account: it counts runs, so that no erasure or other worker begins anew."""
_UNANSWERED = NothingToRecommend("nothing was decided for this question")
"""Stands where no answer has been written yet."""


@dataclass(frozen=True, slots=True, eq=False)
class VotersQuestion(Question):
    """A question about a round; None: the client's next one. `runs` counts the client's runs."""

    round: str | None
    runs: bytes


class DrawingRecommender(Recommender[RunParameters]):
    """What answers questions; `VotersRecommender` is all the rest."""

    debits_clients: ClassVar[bool] = False  # the voters' ledger pays

    document: VotersDocument
    run: RunParameters
    run_charge: Charge
    """What a run costs the voters,"""
    voters_budget: BudgetPolicy
    population: bytes
    """and whose ledger that is."""
    clients: ClientStates
    tombstones: Tombstones

    async def answer(
        self,
        questions: Sequence[Question],
        marks: Sequence[RetryMark | None],
        opens: Opens | None = None,
    ) -> list[Answered | DiscreetError]:
        """Answer each question; each succeeds or fails by itself. Marks are not needed: the page
        of a client makes the answer to a round unique, and the run's own marker its debit."""
        asked = [one for one in questions if isinstance(one, VotersQuestion)]
        answers: list[Answered | DiscreetError] = [_UNANSWERED] * len(asked)
        for rows in _apart(asked):
            some = await self._answer([asked[row] for row in rows])
            for row, answer in zip(rows, some, strict=True):
                answers[row] = answer
        # Read last, so that it has the debits of all these answers.
        (ledger,) = await self.store.ledgers([self.population])
        return [
            one._replace(ledger=ledger) if isinstance(one, Answered) else one for one in answers
        ]

    async def _answer(
        self, questions: Sequence[VotersQuestion]
    ) -> Sequence[Answered | DiscreetError]:
        """Answer questions of different clients."""
        clients = [question.client for question in questions]
        before = await self.tombstones.counts(clients)
        async with self.clients.turns(clients):
            answers = await self._answer_in_turn(questions)
        after = await self.tombstones.counts(clients)
        for row, client in enumerate(clients):
            if after[row] != before[row]:
                await self.clients.forget(client)
                answers[row] = ClientErased("the client was erased while this was being answered")
        return answers

    async def _answer_in_turn(
        self, questions: Sequence[VotersQuestion]
    ) -> list[Answered | DiscreetError]:
        answers: dict[int, Answered | DiscreetError] = {}
        while left := [row for row in range(len(questions)) if row not in answers]:
            asked = [questions[row] for row in left]
            own = await self.clients.prepare_each([(one.client, one.round) for one in asked])
            for row, answer in zip(left, await self._draw_once(asked, own), strict=True):
                if answer is None:
                    # Another worker was faster: what it wrote is read next.
                    self.clients.drop(questions[row].client)
                else:
                    answers[row] = answer
        return [answers[row] for row in range(len(questions))]

    async def read_own(self, questions: Sequence[Question]) -> Sequence[OwnRound | DiscreetError]:
        """Return the round that each question is about, as its client's run sees it."""

        async def one(question: Question) -> OwnRound:
            assert isinstance(question, VotersQuestion)
            async with self.clients.turn(question.client):
                return await self.clients.prepare(question.client, question.round)

        return await each_of(map(one, questions))

    async def _draw_once(
        self, questions: Sequence[VotersQuestion], own: Sequence[OwnRound | DiscreetError]
    ) -> list[Answered | DiscreetError | None]:
        """Draw and store an answer for each; None where another wrote to the client's page."""
        answers: list[Answered | DiscreetError | None] = [
            one if isinstance(one, DiscreetError) else None for one in own
        ]
        ready = {row: one for row, one in enumerate(own) if not isinstance(one, DiscreetError)}
        begun = await self._begin_runs(questions, ready, answers)
        rows = list(ready)
        decisions = self.decide(
            self.current.model, [questions[row] for row in rows], list(ready.values()), self.noise
        )
        keeping = []
        for row, decision in zip(rows, decisions, strict=True):
            one = ready[row]
            if one.kept is not None:
                answers[row] = Answered(decision, AnswerOutcome.REPEATED)
                continue
            slots = [choice.slot for choice in decision.choices]
            answer = ClientAnswer.new(one.round.number, slots, decision.personalised)
            kept = self.clients.keep(questions[row].client, one, begun.get(row), answer)
            keeping.append((row, decision, kept))
        for row, decision, kept in keeping:
            written = await tried_awaiting(kept)
            if isinstance(written, DiscreetError):
                answers[row] = written
            elif was_kept(written):
                answers[row] = self._drawn(ready[row], decision, row in begun)
        return answers

    async def _begin_runs(
        self,
        questions: Sequence[VotersQuestion],
        ready: dict[int, OwnRound],
        answers: list[Answered | DiscreetError | None],
    ) -> dict[int, RunRecord]:
        """Begin runs where none is under way, and can be paid for; whoever is refused is told."""
        due = [row for row, one in ready.items() if one.kept is None and not one.paid]
        paid = await each_of(self._pay(questions[row], ready[row].history) for row in due)
        begun = {}
        for row, outcome in zip(due, paid, strict=True):
            if isinstance(outcome, DiscreetError):
                answers[row] = outcome
                del ready[row]
            elif outcome:
                one, begun[row] = ready[row], RunRecord(begin_run(self.run, self.noise))
                assert one.view is not None, "only a run that was paid for can have ended"
                view = replace(one.view, offset=begun[row].offset)
                ready[row] = replace(one, paid=True, position=one.position + 1, view=view)
        return begun

    def _drawn(self, own: OwnRound, decision: Decision, begun: bool) -> Answered:
        """Return an answer that was stored, and count what became of the client's run."""
        if begun:
            self._count_run("begun")
        elif not own.paid:
            self._count_run("unpaid")
        if own.paid and own.view is not None and not decision.personalised:
            self._count_run("ended")
        used = AnswerOutcome.PERSONALISED if decision.personalised else AnswerOutcome.DEGRADED
        return Answered(decision, used, self.run_charge if begun else FREE)

    def decide(
        self,
        model: RunParameters,
        questions: Sequence[Question],
        own: Sequence[OwnRound],
        noise: NoiseSource,
    ) -> list[Decision]:
        """Draw objects for each; where an answer was kept, return that one.

        Votes are used only in a run that was paid for.
        """
        wanted = [
            RoundQuestion(len(one.round.objects), one.view if one.paid else None, question.limit)
            for question, one in zip(questions, own, strict=True)
            if one.kept is None
        ]
        drawn = iter(draw(model, wanted, noise))
        return [
            one.decision(
                one.kept or ClientAnswer.new(one.round.number, *next(drawn)), question.limit
            )
            for question, one in zip(questions, own, strict=True)
        ]

    async def _pay(self, question: VotersQuestion, history: ClientHistory) -> bool:
        """Count a run of the client's, and debit it to the voters' ledger; tell whether both went.

        The client's account comes first: whoever has no run left costs the voters nothing. The
        marker names this history and this run of it: if the debit is made and the answer is not
        stored, the next attempt is not debited again. One run is begun by it at most, because
        whoever stores its first answer makes the page longer.
        """
        marker = history.mark + history.runs.to_bytes(4, "little")
        most = self.document.client_runs.most
        for account, charge, limit in (
            (question.runs, _ONE_RUN, Limit(nano_epsilon=most, nano_rho=most)),
            (self.population, self.run_charge, self.voters_budget.limit),
        ):
            debit = Debit(
                *(account, charge, limit),
                marker=marker,
                marker_ttl=self.ttl,
                purpose=self.purpose,
            )
            (debited,) = await self.store.spend([debit])
            if isinstance(debited, DiscreetError):
                raise debited
            if not debited.granted:
                self.observer.exhausted(recommender=self.name, algorithm=self.algorithm)
                if self.refuses:
                    raise BudgetExhausted(NO_RUN_LEFT)
                return False
        return True

    def _count_run(self, label: str) -> None:
        self.observer.count(recommender=self.name, what=FamilyCounter.CLIENT_RUNS, label=label)


def _apart(questions: Sequence[VotersQuestion]) -> list[list[int]]:
    """Return the questions' places, cut so that nobody asks twice in one part."""
    parts: list[list[int]] = []
    asked: dict[bytes, int] = {}
    for row, question in enumerate(questions):
        part = asked[question.client] = asked.get(question.client, -1) + 1
        if part == len(parts):
            parts.append([])
        parts[part].append(row)
    return parts


async def each_of(attempts: Iterable[Awaitable[T]]) -> list[T | DiscreetError]:
    """Return what became of each, errors of ours among them; raise any other error."""
    outcomes: list[T | DiscreetError] = []
    for outcome in await asyncio.gather(*attempts, return_exceptions=True):
        if isinstance(outcome, BaseException) and not isinstance(outcome, DiscreetError):
            raise outcome
        outcomes.append(outcome)
    return outcomes
