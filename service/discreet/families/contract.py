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

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from discreet.errors import DiscreetError, InvalidArgument, RewardConflict
from discreet.families.answering import DecidingRecommender
from discreet.families.budgets import UNPROTECTED, PrivacyReport
from discreet.families.cards import GuaranteeCard
from discreet.families.observer import ReleasedFigures
from discreet.families.questions import (
    Choice,
    Lesson,
    PendingDecision,
    PendingFeedback,
    Receipt,
)
from discreet.families.resources import Current as Current
from discreet.families.resources import Resources as Resources
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import (
    NO_LIMIT,
    Account,
    ClaimOutcome,
    Debit,
    FeedbackRecord,
    Learned,
    Vector,
)

REWARD_STEPS = 2**20
"""Rewards are kept and compared in steps this fine: equal after rounding means equal."""

Blocks = Mapping[bytes, Vector]
"""Gathered sums, by block."""

M = TypeVar("M")
T = TypeVar("T")


class Recommender(DecidingRecommender[M]):
    """One recommender, ready to answer. Derive one class for each family."""

    @abstractmethod
    def guarantee(self) -> GuaranteeCard:
        """Return who is protected against whom, and what that costs."""

    def card(self) -> GuaranteeCard:
        """Return the guarantee as it is shown, with what the document gives away beside it."""
        card, log = self.guarantee(), self.stored.document.log
        if log is None:
            return card
        return replace(card, not_covered=(log.reveals(), *card.not_covered))

    # Learning.

    def learn(self, pending: PendingDecision, position: int, reward: float) -> Lesson:
        """Return what feedback on one of the decision's items adds to the sums, and its price.

        A family defines this, or `lessons` for many at once.
        """
        (lesson,) = self.lessons([(pending, position, reward)])
        if isinstance(lesson, DiscreetError):
            raise lesson
        return lesson

    def lessons(
        self, many: Sequence[tuple[PendingDecision, int, float]]
    ) -> list[Lesson | DiscreetError]:
        """Return what `learn` returns, or raises, for each of many."""
        return [tried(self.learn, *each) for each in many]

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

    def scaled(self, reward: float) -> float:
        """Return a reward of the document's range as one in [0, 1]."""
        low, high = self.reward.range
        if not low <= reward <= high:
            raise InvalidArgument("reward", f"must lie in [{low:g}, {high:g}]")
        return min((reward - low) / (high - low), 1.0)

    def made_at(self, pending: PendingDecision) -> tuple[bytes, int]:
        """Return whose decision it was, and when it was made, in seconds since the epoch."""
        life = self.ttl if pending.deferred else self.life
        return pending.principal, pending.expires_at - life

    def place_of(self, one: PendingFeedback) -> int:
        """Return which of the recommended items it is about."""
        if one.position is not None:
            return one.position
        return self.position_of(one.pending, one.feedback.item)

    def shown_as(self, pending: PendingDecision, position: int, choice: Choice) -> str | None:
        """Return the id under which an item was shown."""
        return self.id_of.get(choice.slot)

    follows_up_feedback: bool = False
    """Whether `after_feedback` does anything."""

    async def after_feedback(self, feedback: PendingFeedback) -> None:
        """Do what follows feedback that was learned (pass it on to a vendor). Idempotent."""

    async def record_feedback(
        self, many: Sequence[PendingFeedback]
    ) -> list[Receipt | DiscreetError]:
        """Count each once, learning from it if it can be paid for."""
        records = self._records(many)
        wanted = [one for one in records if isinstance(one, FeedbackRecord)]
        learned = iter(await self.store.learn(wanted) if wanted else ())
        receipts: list[Receipt | DiscreetError] = []
        for one, record in zip(many, records, strict=True):
            outcome = record if isinstance(record, DiscreetError) else next(learned)
            if isinstance(outcome, Learned):
                if self.follows_up_feedback and _is_learned(outcome):
                    await self.after_feedback(one)
                receipts.append(self._receipt(outcome))
            else:
                receipts.append(outcome)
        return receipts

    def _records(self, many: Sequence[PendingFeedback]) -> list[FeedbackRecord | DiscreetError]:
        """Return what is asked of the store for each, or why nothing is."""
        places = [tried(self.place_of, one) for one in many]
        asked = [
            (one.pending, place, one.feedback.reward)
            for one, place in zip(many, places, strict=True)
            if not isinstance(place, DiscreetError)
        ]
        lessons = iter(self.lessons(asked))
        records: list[FeedbackRecord | DiscreetError] = []
        for one, place in zip(many, places, strict=True):
            if isinstance(place, DiscreetError):
                records.append(place)
                continue
            lesson = next(lessons)
            records.append(
                lesson if isinstance(lesson, DiscreetError) else self._record(one, place, lesson)
            )
        return records

    def _record(self, one: PendingFeedback, position: int, lesson: Lesson) -> FeedbackRecord:
        pending, feedback = one.pending, one.feedback
        budget = self.feedback_budget
        decision_id = pending.decision_id
        return FeedbackRecord(
            pending.principal,
            self.generation,
            decision_id + position.to_bytes(2, "little"),
            round(feedback.reward * REWARD_STEPS),
            one.ttl,
            lesson.increments,
            lesson.charge,
            NO_LIMIT if budget is None else budget.limit,
            0 if budget is None else budget.window,
            self.purpose,
            decision_id if self.awaits else b"",
            one.position is not None,
            one.held,
        )

    def _receipt(self, learned: Learned) -> Receipt | DiscreetError:
        # Nothing is counted here: whether feedback came, and was paid for, is private.
        if learned.claim is ClaimOutcome.CONFLICT:
            return RewardConflict(
                "another reward has already been counted for this recommendation"
                + (", or the default because none came in time" if self.awaits else "")
            )
        if learned.claim is ClaimOutcome.CHANGED:
            return Receipt(duplicate=False, learned=None, changed=True)
        return Receipt(learned.claim is ClaimOutcome.DUPLICATE, learned.added)

    # Releasing.

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

    def figures(self, model: M) -> ReleasedFigures:
        """Return what a released model says about all feedback together, for metrics.

        A function of the model and the document: what is not released has no part in it.
        """
        return ReleasedFigures()

    def adopt(self, *, number: int, released_at: float, model: M) -> None:
        """Answer from this model from now on."""
        self.current = Current(number, released_at, model)

    # Life.

    async def tend(self) -> None:
        """Do what is due in the background beside releasing: speak to peers, for example.

        Called about four times a second in every worker, less often where there are more than 64
        recommenders, and never twice at once for one of them.
        """

    async def close(self) -> None:
        """Stop whatever this object has running: it is replaced or removed."""

    async def erase(self) -> None:
        """Erase what was learned and released, in the store. Ledgers stay."""
        await self.store.erase_sums(generation=self.generation)
        await self.store.erase(keys=[self.decision_stream])

    @property
    def decision_stream(self) -> bytes:
        """The name of the stream that decisions are logged to, if they are."""
        return self.key(b"decisions")

    async def forget(self, client: str) -> int:
        """Erase what is stored about a client; return how many things. Ledgers stay."""
        return 0

    def left_elsewhere(self) -> str | None:
        """Return what others were told about clients, which no erasure here reaches, if anything:
        for the certificate."""
        return None

    async def budgets(self, client: str) -> tuple[PrivacyReport, PrivacyReport]:
        """Return how the accounts stand that pay for this client's answers and feedback."""
        principal = self.principal(client)
        policies = (self.answers_budget, self.feedback_budget)
        # Debits of nothing: they tell how the ledger stands now, by the clock that windows go by.
        debited = await self.store.spend(
            [Debit(principal, window=policy.window if policy else 0) for policy in policies]
        )
        reports = []
        for account, policy, found in zip(Account, policies, debited, strict=True):
            if isinstance(found, DiscreetError):
                raise found
            report = UNPROTECTED if policy is None else policy.report(found.ledger, account)
            reports.append(report)
        return reports[0], reports[1]


def _is_learned(learned: Learned) -> bool:
    """Tell whether feedback was paid for and added, now or before: no other is for anybody."""
    counted = learned.claim in (ClaimOutcome.COUNTED, ClaimOutcome.DUPLICATE)
    return counted and learned.added is True


def tried(call: Callable[..., T], *arguments: Any) -> T | DiscreetError:
    """Return what a call returns, or the error that it raises."""
    try:
        return call(*arguments)
    except DiscreetError as error:
        return error
