"""A recommender by voters' weights: who pays for what, and in which order.

The order is the guarantee. A run is debited to the voters' ledger, durably, before its first draw;
what is drawn is on the client's page, durably, before it leaves this process. A draw that another
worker was faster than is thrown away unseen. So nobody is shown two draws of one round, and no
history lacks an answer that was shown. Answering the same round again shows the same object.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from discreet.errors import BudgetExhausted, ClientErased, DiscreetError, InvalidArgument
from discreet.families.budgets import FREE, UNPROTECTED, BudgetPolicy, PrivacyReport
from discreet.families.cards import GuaranteeCard
from discreet.families.contract import Recommender
from discreet.families.observer import AnswerOutcome, FamilyCounter, FamilyGauge
from discreet.families.p_rec.clients import ClientStates, OwnRound
from discreet.families.p_rec.document import VotersDocument
from discreet.families.p_rec.guarantee import guarantee_card
from discreet.families.p_rec.history import AnswerRecord, ClientAnswer, ClientHistory, RunRecord
from discreet.families.p_rec.learning import AnswerPlace, opinion_of, write_opinion
from discreet.families.p_rec.model import RoundQuestion, begin_run, draw
from discreet.families.p_rec.run_parameters import RunParameters, VotingParameters, parameters_for
from discreet.families.p_rec.votes import Votes
from discreet.families.questions import (
    Answered,
    Ask,
    Choice,
    Decision,
    Lesson,
    Opens,
    PendingDecision,
    PendingFeedback,
    Question,
    Receipt,
    RetryMark,
    refuse_unused,
)
from discreet.families.resources import Resources
from discreet.families.stored import StoredDocument
from discreet.privacy.charges import Charge, Limit
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import NO_CHARGE, Account, Debit, Learned, Ledger
from discreet.state.tombstones import Tombstones

T = TypeVar("T")

TOO_FEW_PEERS = "too few like-minded voters"
NO_RUN_LEFT = "the client has no run left in this window, or the voters' privacy budget is spent"
_POPULATION = "\0population"
"""Who pays, where a client's id would stand: no id begins like this, for ids are printable."""
_RUNS = "\0runs "
"""Begins the name of the account that counts one client's runs in one window."""
_ONE_RUN = Charge(nano_epsilon=1, nano_rho=1)
"""A run in that account: it counts runs, so that no erasure and no other worker begins anew."""
_COUNT_SECONDS = 5.0
_COUNTED_ROUNDS = 200
"""How often voters and rounds are counted, and of how many of the newest the state is read."""


@dataclass(frozen=True, slots=True, eq=False)
class VotersQuestion(Question):
    """A question about a round; None: the client's next one. `runs` counts the client's runs."""

    round: str | None
    runs: bytes


class VotersRecommender(Recommender[RunParameters]):
    """One recommender by voters' weights. Its model is the public parameters of a run."""

    algorithm: ClassVar[str] = "p-rec"
    document_class = VotersDocument
    debits_clients: ClassVar[bool] = False  # the voters' ledger pays

    def __init__(self, *, name: str, stored: StoredDocument, resources: Resources) -> None:
        document = stored.document
        assert isinstance(document, VotersDocument)
        self.document = document
        super().__init__(name=name, stored=stored, resources=resources)
        self.run = self.current.model
        budget = document.privacy.budget
        self.voters_budget = BudgetPolicy(
            epsilon=budget.epsilon, delta=budget.delta, reserved_delta=budget.delta / 2
        )
        self.run_charge = self.voters_budget.charge((self.run.event,))
        if not self.voters_budget.limit.admits(self.run_charge):
            raise InvalidArgument(
                "privacy.budget",
                f"pays for no run at all: one costs epsilon {self.run.event.epsilon:.4g}. More "
                "peers make runs cheaper; `discreet voters` helps to choose",
            )
        self.refuses = document.privacy.on_exhausted == "refuse"
        self.population = self.principal(_POPULATION)
        self.votes = Votes(self, objects=document.objects, most_voters=document.voters)
        self.clients = ClientStates(
            self,
            votes=self.votes,
            voting=self.run.voting,
            closes=document.voting_ends == "first_answer",
        )
        self.offer(self.votes)
        self._tombstones = Tombstones(resources.store)
        self._counted_at = float("-inf")

    def accounts(self) -> dict[str, BudgetPolicy]:
        """Return the voters' budget: clients have none."""
        return {"voters": self.voters_budget}

    def guarantee(self) -> GuaranteeCard:
        """Return who is protected against whom, and what that costs."""
        return guarantee_card(run=self.run, budget=self.voters_budget)

    # Deciding.

    def question(self, ask: Ask) -> VotersQuestion:
        """Objects of a round, as many as voters pay for, and nothing that other families use."""
        refuse_unused(ask, uses=("round",))
        if ask.limit > self.document.most_shown:
            most = f"must be at most {self.document.most_shown}, the recommender's most_shown"
            raise InvalidArgument("limit", f"{most}: so many objects of an answer are paid for")
        for field, given in (("exclude", ask.exclude), ("candidates", ask.candidates is not None)):
            if given:
                raise InvalidArgument(field, "is not used by this recommender; leave it out")
        return VotersQuestion(
            self.principal(ask.client), ask.limit, ask.round, self._runs_account(ask.client)
        )

    def _runs_account(self, client: str) -> bytes:
        """Return the account of a client's runs in the window that is now."""
        window = int(self.clock() // self.document.client_runs.window_seconds)
        return self.principal(f"{_RUNS}{window} {client}")

    async def answer(
        self,
        questions: Sequence[Question],
        marks: Sequence[RetryMark | None],
        opens: Opens | None = None,
    ) -> list[Answered | DiscreetError]:
        """Answer each question; each succeeds or fails by itself. Marks are not needed: the page
        of a client makes the answer to a round unique, and the run's own marker its debit."""
        answers = await _each(self._answer(question) for question in questions)
        # Read last, so that it has the debits of all these answers.
        (ledger,) = await self.store.ledgers([self.population])
        return [
            one._replace(ledger=ledger) if isinstance(one, Answered) else one for one in answers
        ]

    async def _answer(self, question: Question) -> Answered:
        assert isinstance(question, VotersQuestion)
        erasures = await self._tombstones.count(question.client)
        answered = await self._answer_in_turn(question)
        try:
            await self._tombstones.refuse_if_erased(question.client, since=erasures)
        except ClientErased:
            await self.clients.forget(question.client)
            raise
        return answered

    async def _answer_in_turn(self, question: VotersQuestion) -> Answered:
        async with self.clients.turn(question.client):
            while True:
                own = await self.clients.prepare(question.client, question.round)
                answered = await self._draw_once(question, own)
                if answered is not None:
                    return answered
                # Another worker was faster: what it wrote is read next.
                self.clients.drop(question.client)

    async def read_own(self, questions: Sequence[Question]) -> Sequence[OwnRound | DiscreetError]:
        """Return the round that each question is about, as its client's run sees it."""

        async def one(question: Question) -> OwnRound:
            assert isinstance(question, VotersQuestion)
            async with self.clients.turn(question.client):
                return await self.clients.prepare(question.client, question.round)

        return await _each(map(one, questions))

    async def _draw_once(self, question: VotersQuestion, own: OwnRound) -> Answered | None:
        """Draw and store an answer; None if somebody else wrote to the client's page."""
        charge, begun = FREE, None
        if own.kept is None and not own.paid and await self._pay(question, own.history):
            charge, begun = self.run_charge, RunRecord(begin_run(self.run, self.noise))
            assert own.view is not None, "only a run that was paid for can have ended"
            view = replace(own.view, offset=begun.offset)
            own = replace(own, paid=True, position=own.position + 1, view=view)
        (decision,) = self.decide(self.current.model, [question], [own], self.noise)
        if own.kept is not None:
            return Answered(decision, AnswerOutcome.REPEATED)
        slots = [choice.slot for choice in decision.choices]
        answer = ClientAnswer.new(own.round.number, slots, decision.personalised)
        if not await self.clients.keep(question.client, own, begun, answer):
            return None
        if begun is not None:
            self._count_run("begun")
        elif not own.paid:
            self._count_run("unpaid")
        if own.paid and own.view is not None and not decision.personalised:
            self._count_run("ended")
        used = AnswerOutcome.PERSONALISED if decision.personalised else AnswerOutcome.DEGRADED
        return Answered(decision, used, charge)

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
            _decision(
                one, one.kept or ClientAnswer.new(one.round.number, *next(drawn)), question.limit
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

    def report(self, answered: Answered) -> PrivacyReport:
        """Return what an answer cost the voters, and how their ledger stands after it."""
        ledger = answered.ledger or Ledger()
        return self.voters_budget.report(ledger, Account.ANSWERS, answered.charge)

    async def budgets(self, client: str) -> tuple[PrivacyReport, PrivacyReport]:
        """Return how the voters' ledger stands, which pays for every client's run."""
        (ledger,) = await self.store.ledgers([self.population])
        return self.voters_budget.report(ledger, Account.ANSWERS), UNPROTECTED

    # Learning.

    def learn(self, pending: PendingDecision, position: int, reward: float) -> Lesson:
        """Check the reward. It adds to no sums: `record_feedback` writes it into the history."""
        opinion_of(reward)
        return Lesson({})

    async def record_feedback(
        self, many: Sequence[PendingFeedback]
    ) -> list[Receipt | DiscreetError]:
        """Write each opinion into its client's history, once."""
        outcomes = await _each(self._write_opinion(one) for one in many)
        return [
            await self._receipt(one, outcome) if isinstance(outcome, Learned) else outcome
            for one, outcome in zip(many, outcomes, strict=True)
        ]

    async def _write_opinion(self, one: PendingFeedback) -> Learned:
        pending, opinion = one.pending, opinion_of(one.feedback.reward)
        place = AnswerPlace.decode(pending.note)
        if one.feedback.item is not None:
            # So that `position_of` finds the objects' ids.
            await self.votes.rounds.by_number(place.round)
        index = self.position_of(pending, one.feedback.item)
        claim = await write_opinion(
            store=self.store,
            page=self.clients.page(pending.principal),
            place=place,
            index=index,
            shown=AnswerRecord(
                place.round,
                pending.choices[index].slot,
                pending.personalised,
                more=place.size - 1 - index,
            ),
            opinion=opinion,
        )
        return Learned(claim, True, NO_CHARGE, Ledger())

    def shown_as(self, pending: PendingDecision, position: int, choice: Choice) -> str | None:
        """Return the id under which an object was shown, if this worker knows its round."""
        known = self.votes.rounds.remembered(AnswerPlace.decode(pending.note).round)
        return None if known is None else known.objects[choice.slot]

    # Releasing: nothing beside the answers.

    def blank(self) -> RunParameters:
        """Return the parameters of a run, priced; refuse what the theorems do not cover."""
        document = self.document
        return parameters_for(
            voting=VotingParameters(
                objects=document.objects,
                rounds=document.horizon,
                radius=document.radius,
                diversity=document.diversity,
                shown=document.most_shown,
            ),
            peers=document.peers,
            voters=document.voters,
            delta=document.privacy.run_delta,
        )

    def release(self, model: RunParameters, gathered: Any, noise: NoiseSource) -> RunParameters:
        """Return the parameters, which feedback does not change."""
        return model

    def encode(self, model: RunParameters) -> bytes:
        """Return nothing: the parameters follow from the document."""
        return b""

    def decode(self, content: bytes) -> RunParameters:
        """Return the parameters that follow from the document."""
        return self.blank()

    # Life.

    async def tend(self) -> None:
        """Report how many rounds there are, a few seconds after that changed.

        How many voters there are is not reported: whether one of them is there is private.
        """
        now, rounds = self.clock(), self.votes.rounds
        if not rounds.changed or now - self._counted_at < _COUNT_SECONDS:
            return
        rounds.changed, self._counted_at = False, now
        newest = await rounds.latest(most=_COUNTED_ROUNDS)
        still_open = sum(not closed for _, closed in newest)
        for what, value, label in (
            (FamilyGauge.ROUNDS, still_open, "open"),
            (FamilyGauge.ROUNDS, await rounds.count() - still_open, "closed"),
        ):
            self.observer.gauge(recommender=self.name, what=what, value=value, label=label)

    async def erase(self) -> None:
        """Erase rounds, votes and histories. The voters' ledger stays."""
        await self.clients.erase()
        await self.votes.erase()

    async def forget(self, client: str) -> int:
        """Erase a client's history, and the votes cast under the same id."""
        histories = await self.clients.forget(self.principal(client))
        return histories + await self.votes.erase_voter(client)


def _decision(own: OwnRound, answer: ClientAnswer, limit: int) -> Decision:
    place = AnswerPlace(own.history.mark, own.position, answer.round, len(answer.records))
    reason = None
    if not answer.used_votes:
        reason = TOO_FEW_PEERS if own.paid else NO_RUN_LEFT
    shown = answer.chosen[:limit]
    return Decision(
        items=tuple(own.round.objects[chosen] for chosen in shown),
        choices=tuple(Choice(slot=chosen, propensity=1.0) for chosen in shown),
        personalised=answer.used_votes,
        note=place.encode(),
        reason=reason,
        round=own.round.id,
    )


async def _each(attempts: Iterable[Awaitable[T]]) -> list[T | DiscreetError]:
    """Return what became of each, errors of ours among them; raise any other error."""
    outcomes: list[T | DiscreetError] = []
    for outcome in await asyncio.gather(*attempts, return_exceptions=True):
        if isinstance(outcome, BaseException) and not isinstance(outcome, DiscreetError):
            raise outcome
        outcomes.append(outcome)
    return outcomes
