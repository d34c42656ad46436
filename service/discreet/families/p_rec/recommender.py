"""A recommender by voters' weights: the contract, for this family. `answering` draws."""

from collections.abc import Sequence
from typing import Any, ClassVar

from discreet.errors import (
    DiscreetError,
    InvalidArgument,
)
from discreet.families.budgets import UNPROTECTED, BudgetPolicy, PrivacyReport
from discreet.families.cards import GuaranteeCard
from discreet.families.contract import tried
from discreet.families.observer import FamilyGauge
from discreet.families.p_rec.answering import DrawingRecommender, VotersQuestion
from discreet.families.p_rec.clients import ClientStates, tried_awaiting
from discreet.families.p_rec.document import VotersDocument
from discreet.families.p_rec.guarantee import guarantee_card
from discreet.families.p_rec.history import AnswerRecord
from discreet.families.p_rec.learning import AnswerPlace, WrittenOpinion, opinion_of
from discreet.families.p_rec.run_parameters import RunParameters, VotingParameters, parameters_for
from discreet.families.p_rec.votes import Votes
from discreet.families.questions import (
    Answered,
    Ask,
    Choice,
    Lesson,
    PendingDecision,
    PendingFeedback,
    Receipt,
    refuse_unused,
)
from discreet.families.resources import Resources
from discreet.families.stored import StoredDocument
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import NO_CHARGE, Account, Learned, Ledger, Written

_POPULATION = "\0population"
"""Who pays, where a client's id would stand: no id begins like this, for ids are printable."""
_RUNS = "\0runs "
"""Begins the name of the account that counts one client's runs in one window."""
_COUNT_SECONDS = 5.0
_COUNTED_ROUNDS = 200
"""How often voters and rounds are counted, and of how many of the newest the state is read."""


class VotersRecommender(DrawingRecommender):
    """One recommender by voters' weights. Its model is the public parameters of a run."""

    algorithm: ClassVar[str] = "p-rec"
    document_class = VotersDocument

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
        if ask.exclude or ask.candidates is not None:
            field = "exclude" if ask.exclude else "candidates"
            raise InvalidArgument(field, "is not used by this recommender; leave it out")
        return VotersQuestion(self.principal(ask.client), ask.limit, ask.round, ask.client)

    def runs_account(self, client: str) -> bytes:
        """Return the account of a client's runs in the window that is now."""
        window = int(self.clock() // self.document.client_runs.window_seconds)
        return self.principal(f"{_RUNS}{window} {client}")

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
        opinions = [await tried_awaiting(self._opinion(one)) for one in many]
        writes = [
            told.writing(self.clients.page(one.pending.principal))
            for one, told in zip(many, opinions, strict=True)
            if not isinstance(told, DiscreetError)
        ]
        written = iter(await self.store.write_pages(writes))
        return [
            told if isinstance(told, DiscreetError) else tried(self._told, told, next(written))
            for told in opinions
        ]

    def _told(
        self, told: WrittenOpinion, written: Written | DiscreetError
    ) -> Receipt | DiscreetError:
        if isinstance(written, DiscreetError):
            return written
        learned = Learned(told.outcome(written), True, NO_CHARGE, Ledger())
        return self._receipt(learned)

    async def _opinion(self, one: PendingFeedback) -> WrittenOpinion:
        pending, opinion = one.pending, opinion_of(one.feedback.reward)
        place = AnswerPlace.decode(pending.note)
        if one.feedback.item is not None:
            # So that `position_of` finds the objects' ids.
            await self.votes.rounds.by_number(place.round)
        index = self.position_of(pending, one.feedback.item)
        shown = AnswerRecord(
            place.round,
            pending.choices[index].slot,
            pending.personalised,
            more=place.size - 1 - index,
        )
        return WrittenOpinion(place, index, shown, opinion)

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
