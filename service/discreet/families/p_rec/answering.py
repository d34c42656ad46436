"""Answers of a turn, drawn together: who pays for what, and in which order.

The order is the guarantee. A run is debited to the voters' ledger, durably, before its first draw;
what is drawn is on the client's page, durably, before it leaves this process. A draw that another
worker was faster than is thrown away unseen. So nobody is shown two draws of one round, and no
history lacks an answer that was shown. Answering the same round again shows the same object.

Each step is taken for all questions of a turn before the next one is, so that the store is asked
once a step and the noise of all tests is drawn at once: once to read the histories, once to write
the answers, and where runs begin, once for each of the two accounts. A client who asks twice in one
turn is answered twice, one after the other.

An answer is written only behind the history from which it was drawn (`ClientStates.writing`), so an
erasure that comes first leaves it nowhere to go; one that comes later finds it. Only where a
request begins a history, the client's erasures are counted before and after (`state.tombstones`).
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from discreet.errors import BudgetExhausted, ClientErased, DiscreetError, NothingToRecommend
from discreet.families.budgets import FREE, BudgetPolicy
from discreet.families.contract import Recommender
from discreet.families.observer import AnswerOutcome, FamilyCounter
from discreet.families.p_rec.clients import (
    NO_RUN_LEFT,
    ClientState,
    ClientStates,
    OwnRound,
    tried_awaiting,
)
from discreet.families.p_rec.document import VotersDocument
from discreet.families.p_rec.history import ClientAnswer, ClientHistory, RunRecord
from discreet.families.p_rec.model import RoundQuestion, begin_runs, draw
from discreet.families.p_rec.run_parameters import RunParameters
from discreet.families.questions import Answered, Decision, Opens, Question, RetryMark
from discreet.privacy.charges import Charge, Limit
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import Debit, Debited, Ledger

_ONE_RUN = Charge(nano_epsilon=1, nano_rho=1)
"""A run in a client's account: it counts runs, so that no erasure or other worker begins anew."""
_ERASED = "the client was erased while this was being answered"
_UNANSWERED = NothingToRecommend("nothing was decided for this question")
"""Stands where no answer has been written yet."""


@dataclass(slots=True, eq=False)
class VotersQuestion(Question):
    """A question about a round; None: the client's next one. `name` is the client's id."""

    round: str | None
    name: str


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

    @abstractmethod
    def runs_account(self, client: str) -> bytes:
        """Return the account of a client's runs in the window that is now."""

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
        return answers

    async def _answer(
        self, questions: Sequence[VotersQuestion]
    ) -> Sequence[Answered | DiscreetError]:
        """Answer questions of different clients."""
        answers: list[Answered | DiscreetError] = [_UNANSWERED] * len(questions)
        begun: dict[int, ClientState] = {}
        left: Sequence[int] = range(len(questions))
        async with self.clients.turns.hold([question.client for question in questions]):
            while left:
                asked = [questions[row] for row in left]
                own = await self.clients.prepare_each([(one.client, one.round) for one in asked])
                again = []
                for row, one, answer in zip(
                    left, own, await self._draw_once(asked, own), strict=True
                ):
                    if isinstance(one, OwnRound) and one.state.erasures is not None:
                        begun[row] = one.state
                    if answer is None:
                        # Another worker was faster: what it wrote is read next.
                        self.clients.drop(questions[row].client)
                        again.append(row)
                    else:
                        answers[row] = answer
                left = again
        for row in await self._erased_since(questions, begun):
            await self.clients.forget(questions[row].client)
            answers[row] = ClientErased(_ERASED)
        return answers

    async def _erased_since(
        self, questions: Sequence[VotersQuestion], begun: dict[int, ClientState]
    ) -> list[int]:
        """Return whose histories were begun here, by row, and were to be erased meanwhile."""
        if not begun:
            return []
        counts = await self.clients.tombstones.counts([questions[row].client for row in begun])
        erased = []
        for (row, state), count in zip(begun.items(), counts, strict=True):
            if count != state.erasures:
                erased.append(row)
            state.erasures = None
        return erased

    async def read_own(self, questions: Sequence[Question]) -> Sequence[OwnRound | DiscreetError]:
        """Return the round that each question is about, as its client's run sees it."""

        async def one(question: Question) -> OwnRound:
            assert isinstance(question, VotersQuestion)
            async with self.clients.turns.hold([question.client]):
                return await self.clients.prepare(question.client, question.round)

        return [await tried_awaiting(one(question)) for question in questions]

    async def _draw_once(
        self, questions: Sequence[VotersQuestion], own: Sequence[OwnRound | DiscreetError]
    ) -> list[Answered | DiscreetError | None]:
        """Draw and store an answer for each; None where another wrote to the client's page."""
        answers: list[Answered | DiscreetError | None] = [
            one if isinstance(one, DiscreetError) else None for one in own
        ]
        ready = {row: one for row, one in enumerate(own) if not isinstance(one, DiscreetError)}
        begun = await self._begin_runs(questions, ready, answers)
        rows, clients = list(ready), self.clients
        decisions = self.decide(
            self.current.model, [questions[row] for row in rows], list(ready.values()), self.noise
        )
        drawn = []
        for row, decision in zip(rows, decisions, strict=True):
            one = ready[row]
            if one.kept is None:
                slots = [choice.slot for choice in decision.choices]
                answer = ClientAnswer.new(one.round.number, slots, decision.personalised)
                drawn.append((row, decision, (questions[row].client, one, begun.get(row), answer)))
        writing = self.store.write_pages([clients.writing(*what[1:]) for _, _, what in drawn])
        # Read after the debits of all these answers.
        reading = self.store.ledgers([self.population])
        written = await writing
        (ledger,) = await reading
        for row, decision in zip(rows, decisions, strict=True):
            if ready[row].kept is not None:
                answers[row] = Answered(decision, AnswerOutcome.REPEATED, FREE, ledger)
        for (row, decision, what), outcome in zip(drawn, written, strict=True):
            if isinstance(outcome, DiscreetError):
                answers[row] = outcome
            elif outcome.done:
                clients.wrote(*what)
                answers[row] = self._drawn(ready[row], decision, row in begun, ledger)
            elif not outcome.found.startswith(ready[row].history.mark):
                answers[row] = ClientErased(_ERASED)
            if not isinstance(answers[row], Answered):
                clients.drop(questions[row].client)
        return answers

    async def _begin_runs(
        self,
        questions: Sequence[VotersQuestion],
        ready: dict[int, OwnRound],
        answers: list[Answered | DiscreetError | None],
    ) -> dict[int, RunRecord]:
        """Begin runs where none is under way, and can be paid for; whoever is refused is told."""
        due = [row for row, one in ready.items() if one.kept is None and not one.paid]
        if not due:
            return {}
        paid = await self._pay([(questions[row], ready[row].history) for row in due])
        begins = []
        for row, outcome in zip(due, paid, strict=True):
            if isinstance(outcome, DiscreetError):
                answers[row] = outcome
                del ready[row]
            elif outcome:
                begins.append(row)
        begun = {}
        for row, offset in zip(begins, begin_runs(self.run, len(begins), self.noise), strict=True):
            one, begun[row] = ready[row], RunRecord(offset)
            assert one.view is not None, "only a run that was paid for can have ended"
            view = one.view._replace(offset=offset)
            ready[row] = one._replace(paid=True, position=one.position + 1, view=view)
        return begun

    def _drawn(self, own: OwnRound, decision: Decision, begun: bool, ledger: Ledger) -> Answered:
        """Return an answer that was stored, and count what became of the client's run."""
        if begun:
            self._count_run("begun")
        elif not own.paid:
            self._count_run("unpaid")
        if own.paid and own.view is not None and not decision.personalised:
            self._count_run("ended")
        used = AnswerOutcome.PERSONALISED if decision.personalised else AnswerOutcome.DEGRADED
        return Answered(decision, used, self.run_charge if begun else FREE, ledger)

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

    async def _pay(
        self, runs: Sequence[tuple[VotersQuestion, ClientHistory]]
    ) -> list[bool | DiscreetError]:
        """Count a run of each client's, and debit it to the voters' ledger; tell whether both went.

        The clients' accounts come first: whoever has no run left costs the voters nothing. The
        marker names this history and this run of it: if the debit is made and the answer is not
        stored, the next attempt is not debited again. One run is begun by it at most, because
        whoever stores its first answer makes the page longer.
        """
        most = self.document.client_runs.most
        own = Limit(nano_epsilon=most, nano_rho=most)
        outcomes: list[bool | DiscreetError] = [True] * len(runs)
        for accounts, charge, limit in (
            ([self.runs_account(question.name) for question, _ in runs], _ONE_RUN, own),
            ([self.population] * len(runs), self.run_charge, self.voters_budget.limit),
        ):
            due = [row for row, outcome in enumerate(outcomes) if outcome is True]
            debits = []
            for row in due:
                history = runs[row][1]
                marker = history.mark + history.runs.to_bytes(4, "little")
                debit = Debit(accounts[row], charge, limit, marker=marker, marker_ttl=self.ttl)
                debits.append(debit._replace(purpose=self.purpose))
            debited = await tried_awaiting(self.store.spend(debits))
            for place, row in enumerate(due):
                one = debited if isinstance(debited, DiscreetError) else debited[place]
                outcomes[row] = self._granted(one)
        return outcomes

    def _granted(self, debited: Debited | DiscreetError) -> bool | DiscreetError:
        """Tell whether a run may begin, or why nothing is answered."""
        if isinstance(debited, DiscreetError) or debited.granted:
            return debited if isinstance(debited, DiscreetError) else True
        self.observer.exhausted(recommender=self.name, algorithm=self.algorithm)
        return BudgetExhausted(NO_RUN_LEFT) if self.refuses else False

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
