"""The contract of a family: one base class and the same verbs for every algorithm.

    decide      a released model and questions -> decisions. Pure, for many questions at once.
    learn       feedback on a decision -> what it adds to the sums, and its price.
    release     gathered sums and noise -> the next model.
    guarantee   who is protected, against whom, at what price: the card, as data.

A `Recommender` is one version of one document in one worker. Its memory lives on it and goes with
it: when the document changes or is removed, every worker drops the object.

What happens to a question (`answer`): its price, which depends on public facts only, is debited;
meanwhile the client's own sums are read, if the family uses them; then the granted questions are
decided from the released model that this worker holds, and the others from the model alone, without
looking at the client. What happens to feedback (`record_feedback`): `learn` says what it adds, and
the store claims, charges and adds it in one atomic step.

Nothing here reads shared sums: only the releaser does (`discreet.decisions.release`).
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from discreet.errors import (
    BudgetExhausted,
    DiscreetError,
    InvalidArgument,
    RewardConflict,
    Underpaid,
    UnknownRecommender,
)
from discreet.families.budgets import FREE, UNPROTECTED, BudgetPolicy, PrivacyReport
from discreet.families.cards import GuaranteeCard
from discreet.families.documents import RecommenderDocument, ReleasesDocument
from discreet.families.observer import AnswerOutcome, FeedbackOutcome, Observer
from discreet.families.peering import PeerGateway
from discreet.families.questions import (
    Answered,
    Ask,
    Choice,
    Decision,
    Lesson,
    PendingDecision,
    PendingFeedback,
    Question,
    Receipt,
)
from discreet.families.stored import Slots, StoredDocument
from discreet.privacy.charges import Charge
from discreet.privacy.noise import NoiseSource
from discreet.state.principals import Principals
from discreet.state.ready import Ready
from discreet.state.stores import (
    NO_LIMIT,
    Account,
    Claim,
    Debit,
    Debited,
    FeedbackRecord,
    Learned,
    Ledger,
    Store,
    Vector,
)

REWARD_STEPS = 2**20
"""Rewards are kept and compared in steps this fine: equal after rounding means equal."""

Blocks = Mapping[bytes, Vector]
"""Gathered sums, by block."""

M = TypeVar("M")
P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Resources:
    """What a recommender is built with. It keeps what it needs."""

    store: Store
    noise: NoiseSource
    observer: Observer
    principals: Principals
    peers: PeerGateway
    clock: Callable[[], float]


@dataclass(frozen=True, slots=True, eq=False)
class Current(Generic[M]):
    """The model that a worker answers from, the number of its release (0: none yet), its time."""

    number: int
    released_at: float
    model: M


class Recommender(ABC, Generic[M]):
    """One recommender, ready to answer. Derive one class for each family."""

    algorithm: ClassVar[str]
    """What a document calls this family."""
    document_class: ClassVar[type[RecommenderDocument]]

    def __init__(self, *, name: str, stored: StoredDocument, resources: Resources) -> None:
        """Prepare to answer. Raises `InvalidArgument` for a document that cannot be served.

        It does no I/O and may be thrown away: a document is tried before it is stored.
        """
        document = stored.document
        self.name = name
        self.stored = stored
        self.generation = stored.generation
        self.ttl = document.decision_ttl_seconds
        self.store = resources.store
        self.noise = resources.noise
        self.observer = resources.observer
        self.principals = resources.principals
        self.peers = resources.peers
        self.clock = resources.clock
        self.slot_of = {item.id: stored.slots[item.id] for item in document.items}
        self.id_of = {slot: item for item, slot in self.slot_of.items()}
        self.visible: Slots = np.array(
            sorted(stored.slots[item.id] for item in document.items if not item.hidden),
            dtype=np.intp,
        )
        self._visible_set = frozenset(self.visible.tolist())
        self.asked = False
        """Whether a question came since the last look: a public fact, unlike feedback."""
        self.asked_in = -1
        """The release after which somebody is known to have asked, in this worker or another."""
        self._parts: dict[type, object] = {}
        self.current: Current[M] = Current(0, stored.created, self.blank())

    # What it is.

    answers_budget: BudgetPolicy | None = None
    """What answers may cost a client; None if they are free or exact."""
    feedback_budget: BudgetPolicy | None = None
    """What learning from a client may cost; None if it is free or exact."""
    refuses: bool = False
    """Whether a client whose budget is spent is refused, not answered from the model alone."""

    releases: ReleasesDocument | None = None
    """When models are released, by the clock; None if the family says so itself (`due`)."""

    @abstractmethod
    def guarantee(self) -> GuaranteeCard:
        """Return who is protected against whom, and what that costs."""

    def part(self, kind: type[P]) -> P:
        """Return what this family offers beside answers (votes, profiles, …), by its class.

        Raises `UnknownRecommender` where it has no such thing.
        """
        found = self._parts.get(kind)
        if not isinstance(found, kind):
            purpose = getattr(kind, "PURPOSE", "that")
            raise UnknownRecommender(f"not supported by {self.algorithm}: {purpose}")
        return found

    def offer(self, part: object) -> None:
        """Let `part` find this."""
        self._parts[type(part)] = part

    def key(self, purpose: bytes, which: bytes = b"") -> bytes:
        """Return the name under which the store keeps something of this recommender."""
        return blake2b(self.generation + which, digest_size=16, person=purpose).digest()

    def address_of(self, peer: str) -> str | None:
        """Return the URL of another instance that this recommender speaks to, if it does."""
        return None

    def available(self, *, exclude: Sequence[str], candidates: Sequence[str] | None) -> Slots:
        """Return the slots of the items that may be recommended, in ascending order."""
        if candidates is None and not exclude:
            return self.visible
        slot_of = self.slot_of
        if candidates is None:
            allowed = set(self._visible_set)
        else:
            # A candidate that was hidden or removed a moment ago is left out, as it would be from
            # the catalogue; asking only for things that are not there is a mistake to be told.
            allowed = set(
                self._visible_set.intersection(
                    slot_of[item] for item in candidates if item in slot_of
                )
            )
            if not allowed:
                raise InvalidArgument("candidates", "no candidate is a visible item")
        allowed.difference_update(slot_of[item] for item in exclude if item in slot_of)
        return np.array(sorted(allowed), dtype=np.intp)

    # Deciding.

    def principal(self, client: str) -> bytes:
        """Return the digest under which a client's ledger and own sums stand."""
        return self.principals.client(self.name, client)

    @abstractmethod
    def question(self, ask: Ask) -> Question:
        """Return the checked question, or raise `InvalidArgument` naming the field."""

    def price(self, question: Question) -> Charge:
        """Return what answering costs the client. It may depend on public facts only."""
        return FREE

    def read_own(self, questions: Sequence[Question]) -> Awaitable[Sequence[Any]]:
        """Return what the family keeps of each client for that client's own answers.

        Issued when called, together with the debit.
        """
        return Ready([None] * len(questions))

    @abstractmethod
    def decide(
        self, model: M, questions: Sequence[Question], own: Sequence[Any], noise: NoiseSource
    ) -> list[Decision]:
        """Decide these questions, whose price was paid. A function of its arguments alone."""

    def decide_without_client(
        self, model: M, questions: Sequence[Question], noise: NoiseSource
    ) -> list[Decision]:
        """Decide from the model alone, for clients whose budget is spent. Free.

        A family whose answers are never charged has no use for it.
        """
        raise BudgetExhausted("this client's privacy budget is spent")

    async def follow_up(
        self, questions: Sequence[Question], decisions: Sequence[Decision]
    ) -> list[Decision]:
        """Do what a decision asks for before it is shown (ask a vendor); by default nothing."""
        return list(decisions)

    async def answer(
        self, questions: Sequence[Question], markers: Sequence[bytes | None]
    ) -> list[Answered | DiscreetError]:
        """Answer each question; each succeeds or fails by itself.

        The order is the guarantee: every ledger is debited, durably, before anything that depends
        on its client leaves this process. A debit that failed, or whose fate is unknown, releases
        nothing. A marker names the caller's event: what is debited under it is debited once.
        """
        self.asked = True
        current = self.current.model
        prices = [self.price(question) for question in questions]
        limit = NO_LIMIT if self.answers_budget is None else self.answers_budget.limit
        debiting = self.store.spend(
            [
                Debit(question.client, price, limit, Account.ANSWERS, marker, self.ttl)
                for question, price, marker in zip(questions, prices, markers, strict=True)
            ]
        )
        reading = self.read_own(questions)
        debits = await debiting
        own = await reading
        answers: list[Answered | DiscreetError] = []
        granted: list[int] = []
        refused: list[int] = []
        for row, debit in enumerate(debits):
            if isinstance(debit, DiscreetError):
                answers.append(debit)
            else:
                answers.append(_UNDECIDED)
                (granted if debit.granted else refused).append(row)
        if granted:
            asked = [questions[row] for row in granted]
            decided = self.decide(current, asked, [own[row] for row in granted], self.noise)
            shown = await self.follow_up(asked, decided)
            for row, decision in zip(granted, shown, strict=True):
                answers[row] = Answered(
                    decision, self._outcome(decision), prices[row], _ledger(debits[row])
                )
        if refused:
            for row, answer in zip(
                refused, self._answer_unpaid([questions[row] for row in refused]), strict=True
            ):
                answers[row] = (
                    answer
                    if isinstance(answer, DiscreetError)
                    else Answered(answer, AnswerOutcome.DEGRADED, FREE, _ledger(debits[row]))
                )
        return answers

    def _outcome(self, decision: Decision) -> AnswerOutcome:
        if not decision.items:
            return AnswerOutcome.EMPTY
        return AnswerOutcome.PERSONALISED if self.answers_budget else AnswerOutcome.UNPROTECTED

    def _answer_unpaid(self, questions: Sequence[Question]) -> Sequence[Decision | DiscreetError]:
        """Answer those whose budget is spent without looking at them, or refuse."""
        for _ in questions:
            self.observer.exhausted(recommender=self.name, algorithm=self.algorithm)
        if self.refuses:
            return [BudgetExhausted("this client's privacy budget is spent")] * len(questions)
        return self.decide_without_client(self.current.model, questions, self.noise)

    def report(self, answered: Answered) -> PrivacyReport:
        """Return what an answer says about its price and about the account that paid."""
        budget = self.answers_budget
        if budget is None or answered.ledger is None:
            return UNPROTECTED
        return budget.report(spent=answered.ledger.answers, charge=answered.charge)

    # Learning.

    @abstractmethod
    def learn(self, pending: PendingDecision, position: int, reward: float) -> Lesson:
        """Return what feedback on one of the decision's items adds to the sums, and its price."""

    def position_of(self, pending: PendingDecision, item: str | None) -> int:
        """Return which of the recommended items the feedback is about."""
        choices = pending.choices
        if not choices:
            raise InvalidArgument("recommendation_id", "that recommendation was empty")
        if item is None:
            if len(choices) > 1:
                raise InvalidArgument(
                    "item", "must name the item: this recommendation was a list of several"
                )
            return 0
        for position, choice in enumerate(choices):
            if self.shown_as(pending, position, choice) == item:
                return position
        raise InvalidArgument("item", "is not one of the items of this recommendation")

    def shown_as(self, pending: PendingDecision, position: int, choice: Choice) -> str | None:
        """Return the id under which an item was shown."""
        return self.id_of.get(choice.slot)

    async def after_feedback(self, feedback: PendingFeedback) -> None:
        """Do what follows feedback that was counted (pass it on to a vendor). Idempotent."""

    async def record_feedback(
        self, many: Sequence[PendingFeedback]
    ) -> list[Receipt | DiscreetError]:
        """Count each once, learning from it if it can be paid for."""
        records: list[FeedbackRecord] = []
        failed: dict[int, DiscreetError] = {}
        for place, one in enumerate(many):
            try:
                records.append(self._record(one))
            except DiscreetError as error:
                failed[place] = error
        learned = iter(await self.store.learn(records) if records else ())
        receipts: list[Receipt | DiscreetError] = []
        for place, one in enumerate(many):
            outcome = failed.get(place) or next(learned)
            receipts.append(
                await self._receipt(one, outcome) if isinstance(outcome, Learned) else outcome
            )
        return receipts

    def _record(self, one: PendingFeedback) -> FeedbackRecord:
        pending, feedback = one.pending, one.feedback
        position = self.position_of(pending, feedback.item)
        lesson = self.learn(pending, position, feedback.reward)
        budget = self.feedback_budget
        return FeedbackRecord(
            principal=pending.principal,
            generation=self.generation,
            claim=pending.decision_id + position.to_bytes(2, "little"),
            reward=round(feedback.reward * REWARD_STEPS),
            claim_ttl=one.ttl,
            increments=lesson.increments,
            charge=lesson.charge,
            limit=NO_LIMIT if budget is None else budget.limit,
        )

    async def _receipt(self, one: PendingFeedback, learned: Learned) -> Receipt | DiscreetError:
        outcome = FeedbackOutcome(learned.claim.value)
        if learned.claim is Claim.COUNTED and not learned.added:
            outcome = FeedbackOutcome.UNPAID
            self.observer.exhausted(recommender=self.name, algorithm=self.algorithm)
        self.observer.feedback(
            recommender=self.name,
            algorithm=self.algorithm,
            outcome=outcome,
            reward=one.feedback.reward if outcome is FeedbackOutcome.COUNTED else 0.0,
            charge=learned.price,
        )
        if learned.claim is Claim.CONFLICT:
            return RewardConflict("another reward has already been counted for this recommendation")
        await self.after_feedback(one)
        return Receipt(duplicate=learned.claim is Claim.DUPLICATE, learned=learned.added)

    # Releasing.

    @abstractmethod
    def blank(self) -> M:
        """Return the model before anything was released."""

    def due(self, now: float) -> bool:
        """Tell whether another release is due, by the clock. Never by how much feedback came."""
        if self.releases is None:
            return False
        age = self.current.released_at - self.stored.created
        return now - self.current.released_at >= self.releases.pause(age)

    async def gather(self, number: int) -> Any:
        """Return what release `number` is made from; reading it again reads the same."""
        await self.store.freeze(generation=self.generation, number=number)
        return await self.store.frozen(generation=self.generation, number=number)

    @abstractmethod
    def release(self, model: M, gathered: Any, noise: NoiseSource) -> M:
        """Return the next model, with noise that those who are in the sums have paid for."""

    async def clean_up(self, number: int) -> None:
        """Erase what release `number` was made from, once its model is stored."""
        await self.store.discard(generation=self.generation, number=number)

    @abstractmethod
    def encode(self, model: M) -> bytes:
        """Return a model as the store keeps it."""

    @abstractmethod
    def decode(self, content: bytes) -> M:
        """Return the model that `encode` wrote, also under an earlier catalogue.

        Raises `ValueError` for what cannot be read.
        """

    def adopt(self, *, number: int, released_at: float, model: M) -> None:
        """Answer from this model from now on."""
        self.current = Current(number, released_at, model)

    # Life.

    async def tend(self) -> None:
        """Do what is due in the background beside releasing: speak to peers, for example.

        Called about four times a second in every worker, never twice at once for one recommender.
        """

    async def close(self) -> None:
        """Stop whatever this object has running: it is replaced or removed."""

    async def erase(self) -> None:
        """Erase what was learned and released, in the store. Ledgers stay."""
        await self.store.erase_sums(generation=self.generation)

    async def forget(self, client: str) -> int:
        """Erase what is stored about a client; return how many things. Ledgers stay."""
        return 0

    async def budgets(self, client: str) -> tuple[PrivacyReport, PrivacyReport]:
        """Return how the accounts stand that pay for this client's answers and feedback."""
        (ledger,) = await self.store.ledgers([self.principal(client)])
        return (
            _standing(self.answers_budget, ledger.answers),
            _standing(self.feedback_budget, ledger.feedback),
        )


_UNDECIDED = Underpaid("nothing was decided for this question")
"""Stands where no answer has been written yet, so that a row forgotten here releases nothing."""


def _ledger(debit: Debited | DiscreetError) -> Ledger:
    assert isinstance(debit, Debited)
    return debit.ledger


def _standing(budget: BudgetPolicy | None, spent: Charge) -> PrivacyReport:
    return UNPROTECTED if budget is None else budget.report(spent=spent)
