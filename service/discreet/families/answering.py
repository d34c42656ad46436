"""The deciding half of the contract: from questions to answers, in one order for every family.

The order is the guarantee: every ledger is debited, durably, before anything that depends on its
client leaves this process. A debit that failed, or whose fate is unknown, releases nothing.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from discreet.errors import (
    BudgetExhausted,
    DiscreetError,
    InvalidArgument,
    Underpaid,
    UnknownRecommender,
)
from discreet.families.budgets import FREE, UNPROTECTED, BudgetPolicy, PrivacyReport
from discreet.families.documents import ItemDocument, RecommenderDocument, ReleasesDocument
from discreet.families.observer import AnswerOutcome
from discreet.families.questions import (
    Answered,
    Ask,
    Decision,
    Opens,
    Question,
    Recommendation,
    RetryMark,
    Utilities,
)
from discreet.families.resources import Current, Resources
from discreet.families.rewards import ANY_REWARD, RewardDocument
from discreet.families.stored import Slots, StoredDocument
from discreet.privacy.charges import Charge
from discreet.privacy.noise import NoiseSource
from discreet.state.ready import Ready
from discreet.state.stores import NO_LIMIT, Account, Debit, Debited

M = TypeVar("M")
P = TypeVar("P")


class DecidingRecommender(ABC, Generic[M]):
    """The half of a recommender that answers; `contract.Recommender` adds the other one."""

    algorithm: ClassVar[str]
    """What a document calls this family."""
    document_class: ClassVar[type[RecommenderDocument]]

    def __init__(self, *, name: str, stored: StoredDocument, resources: Resources) -> None:
        """Prepare to answer. Raises `InvalidArgument` for a document that cannot be served.

        It does no I/O and may be thrown away: a document is tried before it is stored.
        """
        document = stored.document
        self.name = name
        self.purpose = name.encode()
        """What a client's ledger says, by day, that it was debited for."""
        self.stored = stored
        self.generation = stored.generation
        self.ttl = document.decision_ttl_seconds
        self.reward: RewardDocument = getattr(document, "reward", ANY_REWARD)
        self.awaits = self.reward.seconds > 0
        """Whether a decision without feedback counts as the default."""
        self.life = self.reward.seconds or self.ttl
        """Seconds for which feedback is accepted."""
        self.store = resources.store
        self.noise = resources.noise
        self.observer = resources.observer
        self.principals = resources.principals
        self.peers = resources.peers
        self._principal = resources.principals.clients(name, group=document.ledger)
        self.clock = resources.clock
        self.slot_of = {item.id: stored.slots[item.id] for item in document.items}
        self.id_of = {slot: item for item, slot in self.slot_of.items()}
        self.visible: Slots = np.array(
            sorted(stored.slots[item.id] for item in document.items if not item.hidden),
            dtype=np.intp,
        )
        self._visible_set = frozenset(self.visible.tolist())
        self.no_room_said = -math.inf
        """When this worker last said that no further decision can await a reward."""
        self.asked = False
        """Whether a question came since the last look: a public fact, unlike feedback."""
        self.asked_in = -1
        """The release after which somebody is known to have asked, in this worker or another."""
        self.unread = 0
        """The newest release that this version could not read."""
        self._parts: dict[type, object] = {}
        self.current: Current[M] = Current(0, stored.created, self.blank())

    @abstractmethod
    def blank(self) -> M:
        """Return the model before anything was released."""

    # What it is.

    answers_budget: BudgetPolicy | None = None
    """What answers may cost a client; None if they are free or exact."""
    feedback_budget: BudgetPolicy | None = None
    """What learning from a client may cost; None if it is free or exact."""

    def accounts(self) -> dict[str, BudgetPolicy]:
        """Return the budgets that bound what is spent in its ledgers, by account."""
        budgets = {"answers": self.answers_budget, "feedback": self.feedback_budget}
        return {account: budget for account, budget in budgets.items() if budget is not None}

    refuses: bool = False
    """Whether a client whose budget is spent is refused, not answered from the model alone."""

    decides_ahead: bool = False
    """Whether `decide` needs nothing from the store, and no follow-up. Where decisions await a
    reward, it is then called before the debit, whose step also opens the decision."""

    debits_clients: ClassVar[bool] = True
    """Whether clients have a ledger here that they can be told about."""

    releases: ReleasesDocument | None = None
    """When models are released, by the clock; None if the family says so itself (`due`)."""

    def part(self, kind: type[P]) -> P:
        """Return what this family offers beside answers (votes, profiles, …), by its class.

        Raises `UnknownRecommender` where it has no such thing.
        """
        found = self._parts.get(kind)
        if not isinstance(found, kind):
            purpose = getattr(kind, "PURPOSE", "that")
            raise UnknownRecommender(f"not supported by {self.algorithm}: {purpose}")
        return found

    def offers(self, kind: type) -> bool:
        """Tell whether `part` would find this."""
        return kind in self._parts

    def offer(self, part: object) -> None:
        """Let `part` find this."""
        self._parts[type(part)] = part

    def require_alone(self, others: "Sequence[DecidingRecommender[Any]]") -> None:
        """Raise `InvalidArgument` if another offers a part that one alone can.

        Such a part names the field of the document that asks for it (`ALONE`).
        """
        for kind in self._parts:
            field = getattr(kind, "ALONE", None)
            for other in others if field is not None else ():
                if other.name != self.name and other.offers(kind):
                    raise InvalidArgument(f"{field}", f"only one can have it: {other.name} does")

    def key(self, purpose: bytes, which: bytes = b"") -> bytes:
        """Return the name under which the store keeps something of this recommender."""
        return blake2b(self.generation + which, digest_size=16, person=purpose).digest()

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

    @cached_property
    def _item_of(self) -> dict[str, ItemDocument]:
        return {item.id: item for item in self.stored.document.items}

    def with_descriptions(self, answer: Recommendation) -> Recommendation:
        """Return an answer with what the catalogue says about its items, if it holds them."""
        vendors = answer.vendors or (None,) * len(answer.items)
        found = (
            self._item_of.get(item) if vendor is None else None
            for item, vendor in zip(answer.items, vendors, strict=True)
        )
        described = tuple({} if one is None else one.description() for one in found)
        return answer._replace(described=described)

    # Deciding.

    def principal(self, client: str) -> bytes:
        """Return the digest under which a client's ledger and own sums stand."""
        return self._principal(client)

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

    def answer_law(
        self, model: M, questions: Sequence[Question], own: Sequence[Any], *, paid: bool
    ) -> npt.NDArray[np.float64]:
        """Return with which probability each slot is the first item of an answer, a row a question.

        `paid` says whether the client is looked at (`decide`) or not (`decide_without_client`). It
        tells exactly what an answer would only hint at: for evaluation, never for a caller.
        """
        raise UnknownRecommender(f"not supported by {self.algorithm}: the odds of an answer")

    explains: ClassVar[bool] = False
    """Whether `explain` and `answer_law` tell what an answer is drawn from;"""
    reads_clients: ClassVar[bool] = False
    """and whether that depends on a client's own sums (`read_own`)."""

    def explain(self, model: M, question: Question, own: Any) -> Utilities:
        """Return what the model thinks of every item that may be answered. For administrators."""
        raise UnknownRecommender(f"not supported by {self.algorithm}: utilities")

    async def follow_up(
        self, questions: Sequence[Question], decisions: Sequence[Decision]
    ) -> list[Decision]:
        """Do what a decision asks for before it is shown (ask a vendor); by default nothing."""
        return list(decisions)

    async def answer(
        self,
        questions: Sequence[Question],
        marks: Sequence[RetryMark | None],
        opens: Opens | None = None,
    ) -> list[Answered | DiscreetError]:
        """Answer each question; each succeeds or fails by itself.

        The order is the guarantee: every ledger is debited, durably, before anything that depends
        on its client leaves this process. A debit that failed, or whose fate is unknown, releases
        nothing: what was decided ahead of it is thrown away unseen. What is debited under a mark is
        debited once; what is free needs none. With `opens`, decisions await a reward.
        """
        self.asked = True
        current = self.current.model
        prices = [self.price(question) for question in questions]
        wanted = self._debits(questions, prices, marks)
        ahead: list[Decision] | None = None
        if opens is not None and self.decides_ahead:
            ahead = self.decide(current, questions, [None] * len(questions), self.noise)
            opened = opens(range(len(questions)), ahead)
            wanted = [debit._replace(opened=o) for debit, o in zip(wanted, opened, strict=True)]
        debiting = self.store.spend(wanted)
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
            if ahead is None:
                decided = self.decide(current, asked, [own[row] for row in granted], self.noise)
                shown = await self.follow_up(asked, decided)
            else:
                shown = [ahead[row] for row in granted]
            drawn = AnswerOutcome.PERSONALISED if self.answers_budget else AnswerOutcome.UNPROTECTED
            for row, decision in zip(granted, shown, strict=True):
                debit = debits[row]
                assert isinstance(debit, Debited)
                _, ledger, awaiting = debit
                outcome = drawn if decision.items else AnswerOutcome.EMPTY
                answers[row] = Answered(decision, outcome, prices[row], ledger, awaiting)
        if refused:
            for row, answer in zip(
                refused,
                self._answer_unpaid(current, [questions[row] for row in refused]),
                strict=True,
            ):
                debit = debits[row]
                assert isinstance(debit, Debited)
                answers[row] = (
                    answer
                    if isinstance(answer, DiscreetError)
                    else Answered(answer, AnswerOutcome.DEGRADED, FREE, debit.ledger)
                )
        if opens is not None:
            # A degraded answer is shown and clicked like any other, so it awaits a reward as well.
            rows = refused if ahead is not None else sorted(granted + refused)
            await self._open(questions, answers, rows, opens)
        return answers

    def _debits(
        self,
        questions: Sequence[Question],
        prices: Sequence[Charge],
        marks: Sequence[RetryMark | None],
    ) -> list[Debit]:
        budget = self.answers_budget
        limit, window = (NO_LIMIT, 0) if budget is None else (budget.limit, budget.window)
        wanted = []
        account, purpose = Account.ANSWERS, self.purpose
        last, free = FREE, True
        for question, price, mark in zip(questions, prices, marks, strict=True):
            if price is not last:
                last, free = price, price == FREE
            if mark is None or free:
                one = Debit(question.client, price, limit, window=window, purpose=purpose)
            else:
                digest, ttl = mark
                one = Debit(*(question.client, price, limit, account, digest, ttl, window, purpose))
            wanted.append(one)
        return wanted

    async def _open(
        self,
        questions: Sequence[Question],
        answers: list[Answered | DiscreetError],
        rows: Sequence[int],
        opens: Opens,
    ) -> None:
        """Open decisions that are paid for or free, before they are shown."""
        decided = [(row, one) for row in rows if isinstance(one := answers[row], Answered)]
        opened = opens([row for row, _ in decided], [one.decision for _, one in decided])
        wanted = [
            (row, one, Debit(questions[row].client, opened=each))
            for (row, one), each in zip(decided, opened, strict=True)
            if each is not None
        ]
        if not wanted:
            return
        debits = await self.store.spend([debit for _, _, debit in wanted])
        for (row, one, _), debit in zip(wanted, debits, strict=True):
            if isinstance(debit, DiscreetError):
                answers[row] = debit
            else:
                answers[row] = one._replace(awaiting=debit.awaiting)

    def _answer_unpaid(
        self, model: M, questions: Sequence[Question]
    ) -> Sequence[Decision | DiscreetError]:
        """Answer those whose budget is spent without looking at them, or refuse."""
        for _ in questions:
            self.observer.exhausted(recommender=self.name, algorithm=self.algorithm)
        if self.refuses:
            return [BudgetExhausted("this client's privacy budget is spent")] * len(questions)
        return self.decide_without_client(model, questions, self.noise)

    def report(self, answered: Answered) -> PrivacyReport:
        """Return what an answer says about its price and about the account that paid."""
        budget = self.answers_budget
        if budget is None or answered.ledger is None:
            return UNPROTECTED
        return budget.report(answered.ledger, Account.ANSWERS, answered.charge)


_UNDECIDED = Underpaid("nothing was decided for this question")
"""Stands where no answer has been written yet, so that a row forgotten here releases nothing."""
