"""What a family of algorithms does with requests: the one protocol between them and the service.

A worker has one object per algorithm, made with the runtime. What it holds in memory is a cache:
losing it may cost time, and must change neither what is answered (as a distribution) nor what is
charged. Everything that must last is in the store.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, Protocol, TypeVar

from discreet.families.questions import Ask, Feedback, Receipt, Recommendation
from discreet.decisions.recommender import Recommender, Stored
from discreet.families.budgets import UNPROTECTED, PrivacyReport
from discreet.decisions.tokens import Pending
from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime


class Word(NamedTuple):
    """Feedback on a decision; a claim on it must be remembered for `ttl` seconds."""

    pending: Pending
    feedback: Feedback
    ttl: int


class Family(Protocol):
    """One algorithm at work in one worker. Derive from `Plain` for what most of them share."""

    def compile(self, *, name: str, stored: Stored) -> Recommender:
        """Return the recommender that a stored document describes. Pure: it may be thrown away.

        Raises `InvalidArgument` for a document that cannot be served; nothing is stored then.
        """
        ...

    def check(self, recommender: Recommender, ask: Ask) -> None:
        """Raise `InvalidArgument` for a question that cannot be asked here."""
        ...

    def answer(
        self, runtime: "Runtime", recommender: Recommender, ask: Ask, marker: bytes | None = None
    ) -> Awaitable[Recommendation]:
        """Answer a question.

        Whatever can be issued at once is issued when this is called, so that a batch of questions
        shares a round trip; a family that cannot do that returns a task. A `marker` names the
        caller's event: whatever is debited must be debited under it, once.
        """
        ...

    def joins(self, recommender: Recommender, ask: Ask) -> bool:
        """Tell whether `answer_many` is the quicker way for a question such as this.

        None of those that join may keep the others waiting.
        """
        ...

    def answer_many(
        self, runtime: "Runtime", recommender: Recommender, asks: Sequence[Ask]
    ) -> Awaitable[Sequence[Recommendation | DiscreetError]]:
        """Answer many questions, each as `answer` would, which succeeds or fails by itself.

        As with `answer`, what can be issued at once is.
        """
        ...

    def hear(
        self,
        runtime: "Runtime",
        recommender: Recommender,
        pending: Pending,
        feedback: Feedback,
        ttl: int,
    ) -> Awaitable[Receipt]:
        """Count feedback once. `ttl` is how long, in seconds, a claim on it must be remembered.

        As with `answer`, what can be issued at once is.
        """
        ...

    def listens(self, recommender: Recommender, word: Word) -> bool:
        """Tell whether `hear_many` is the quicker way for feedback such as this; see `joins`."""
        ...

    def hear_many(
        self, runtime: "Runtime", recommender: Recommender, words: Sequence[Word]
    ) -> Awaitable[Sequence[Receipt | DiscreetError]]:
        """Count many pieces of feedback, each as `hear` would, each by itself."""
        ...

    async def refresh(self, runtime: "Runtime", recommender: Recommender) -> None:
        """Bring the worker's memory of a recommender up to date.

        Called once it is compiled, before it answers anything, and then about every second while
        `recommender.touched` says that something happened.
        """
        ...

    async def remove(self, runtime: "Runtime", recommender: Recommender) -> None:
        """Erase what a recommender learned. Ledgers stay."""
        ...

    async def forget(self, runtime: "Runtime", recommender: Recommender, client: str) -> int:
        """Erase what is stored about a client; return how many things that was. Ledgers stay."""
        ...

    async def standing(
        self, runtime: "Runtime", recommender: Recommender, client: str
    ) -> PrivacyReport:
        """Return how the ledger stands that pays for this client's answers."""
        ...

    def start(self, runtime: "Runtime") -> None:
        """Begin whatever runs in the background. Not called in simulations."""
        ...

    async def stop(self) -> None:
        """End it."""
        ...


T = TypeVar("T")
P = ParamSpec("P")


def begun(
    begin: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> Awaitable[T] | DiscreetError:
    """Return what was begun, or the error that kept it from beginning."""
    try:
        return begin(*args, **kwargs)
    except DiscreetError as error:
        return error


async def settled(many: Sequence[Awaitable[T] | DiscreetError]) -> list[T | DiscreetError]:
    """Return what became of each, in order."""
    outcomes: list[T | DiscreetError] = []
    for one in many:
        try:
            outcomes.append(one if isinstance(one, DiscreetError) else await one)
        except DiscreetError as error:
            outcomes.append(error)
    return outcomes


class Plain:
    """What most families share: sums by cell, a ledger per client, nothing in the background."""

    def joins(self, recommender: Recommender, ask: Ask) -> bool:
        """Each by itself."""
        return False

    def answer_many(
        self: Family, runtime: "Runtime", recommender: Recommender, asks: Sequence[Ask]
    ) -> Awaitable[Sequence[Recommendation | DiscreetError]]:
        """Answer one by one, all begun before the first is awaited."""
        return settled([begun(self.answer, runtime, recommender, ask) for ask in asks])

    def listens(self, recommender: Recommender, word: Word) -> bool:
        """Each by itself."""
        return False

    def hear_many(
        self: Family, runtime: "Runtime", recommender: Recommender, words: Sequence[Word]
    ) -> Awaitable[Sequence[Receipt | DiscreetError]]:
        """Hear one by one, all begun before the first is awaited."""
        return settled([begun(self.hear, runtime, recommender, *word) for word in words])

    async def refresh(self, runtime: "Runtime", recommender: Recommender) -> None:
        """Nothing is kept in memory."""

    async def remove(self, runtime: "Runtime", recommender: Recommender) -> None:
        """Erase every cell that was indexed."""
        for index in recommender.indexes:
            await runtime.store.remove_cells(index=index)

    async def forget(self, runtime: "Runtime", recommender: Recommender, client: str) -> int:
        """Sums have no names in them."""
        return 0

    async def standing(
        self, runtime: "Runtime", recommender: Recommender, client: str
    ) -> PrivacyReport:
        """Return how the client's own ledger stands."""
        if recommender.terms is None:
            return UNPROTECTED
        spent = await runtime.store.balance(
            principal=runtime.principals.client(recommender.name, client)
        )
        return recommender.terms.report(spent=spent)

    def start(self, runtime: "Runtime") -> None:
        """Nothing runs in the background."""

    async def stop(self) -> None:
        """Nothing ran."""
