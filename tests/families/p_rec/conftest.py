"""A voters' recommender over the memory store, with seeded noise, and a way to play with it."""

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import pytest

from discreet.errors import DiscreetError
from discreet.families.contract import Resources
from discreet.families.observer import NullObserver
from discreet.families.p_rec.document import VotersDocument
from discreet.families.p_rec.history import ClientHistory
from discreet.families.p_rec.recommender import VotersRecommender
from discreet.families.p_rec.votes import Vote
from discreet.families.peering import NoPeers
from discreet.families.questions import (
    Answered,
    Ask,
    Feedback,
    PendingDecision,
    PendingFeedback,
    Receipt,
)
from discreet.families.stored import StoredDocument
from discreet.research.noise import SeededNoise
from discreet.state.memory import MemoryStore
from discreet.state.principals import Principals
from discreet.state.stores import PageWrite, Store, Written

T = TypeVar("T")

NAME = "news"
VOTERS = 400


def document(**changes: Any) -> VotersDocument:
    """Two objects a round, and few enough peers for a small test; so a run is dear."""
    fields: dict[str, Any] = {
        "algorithm": "p-rec",
        "objects": 2,
        "horizon": 60,
        "peers": 150,
        "voters": 1000,
        "privacy": {"budget": {"epsilon": 20.0, "delta": 1e-6}},
        **changes,
    }
    return VotersDocument.model_validate(fields)


def stored_document(**changes: Any) -> StoredDocument:
    written = document(**changes)
    blank = StoredDocument(written, os.urandom(8), created=0.0, slots={}, next_slot=0)
    return blank.with_document(written)


class Counters(NullObserver):
    """Remembers what was counted and measured, by name and label."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str], int] = {}
        self.gauges: dict[tuple[str, str], float] = {}

    def count(self, *, recommender: str, what: Any, label: str = "", amount: int = 1) -> None:
        key = (str(what), label)
        self.counts[key] = self.counts.get(key, 0) + amount

    def gauge(self, *, recommender: str, what: Any, value: float, label: str = "") -> None:
        self.gauges[str(what), label] = value


class Clock:
    """Seconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def recommender_of(
    store: Store,
    stored: StoredDocument,
    *,
    observer: NullObserver | None = None,
    clock: Clock | None = None,
    seed: int = 7,
) -> VotersRecommender:
    resources = Resources(
        store=store,
        noise=SeededNoise(seed),
        observer=observer or NullObserver(),
        principals=Principals(b"p" * 32),
        peers=NoPeers(),
        clock=clock or Clock(),
    )
    return VotersRecommender(name=NAME, stored=stored, resources=resources)


class InterruptedStore(MemoryStore):
    """Lets something else happen just before the next write of so many bytes into a page."""

    def __init__(self) -> None:
        super().__init__()
        self.before_write: tuple[int, Awaitable[Any]] | None = None

    def write_page(
        self,
        *,
        page: bytes,
        writes: Sequence[tuple[int, bytes]],
        guard: tuple[int, bytes] | None = None,
    ) -> Awaitable[Written]:
        """Write, after whatever was to happen before."""
        write = partial(super().write_page, page=page, writes=writes, guard=guard)
        return self._after([content for _, content in writes], write)

    def write_pages(
        self, writes: Sequence[PageWrite]
    ) -> Awaitable[Sequence[Written | DiscreetError]]:
        """Write, after whatever was to happen before."""
        write = partial(super().write_pages, writes)
        return self._after([each.content for each in writes], write)

    def _after(self, contents: Sequence[bytes], write: Callable[[], Awaitable[T]]) -> Awaitable[T]:
        waiting = self.before_write
        if waiting is None or waiting[0] not in map(len, contents):
            return write()
        self.before_write = None

        async def late() -> T:
            await waiting[1]
            return await write()

        return late()


@dataclass
class Bench:
    """One worker's recommender, and a way to make rounds, vote, ask and give feedback."""

    store: Store = field(default_factory=MemoryStore)
    stored: StoredDocument = field(default_factory=stored_document)
    observer: Counters = field(default_factory=Counters)
    clock: Clock = field(default_factory=Clock)
    seed: int = 7

    def __post_init__(self) -> None:
        self.recommender = recommender_of(
            self.store, self.stored, observer=self.observer, clock=self.clock, seed=self.seed
        )
        self.votes_of = self.recommender.votes
        self.rounds = self.recommender.votes.rounds

    def another(self) -> "Bench":
        """Another worker on the same store, with a memory of its own."""
        return Bench(self.store, self.stored, seed=self.seed + 1)

    async def round(self, name: str, objects: Sequence[str] = ("a", "b")) -> None:
        await self.rounds.make(round_id=name, objects=objects)

    async def votes(self, name: str, choices: dict[str, str]) -> int:
        return await self.votes_of.cast([Vote(name, *vote) for vote in choices.items()])

    async def full_round(self, name: str, wanted: str = "a", *, voters: int = VOTERS) -> None:
        """A round in which everybody votes alike."""
        await self.round(name)
        await self.votes(name, {f"v{number}": wanted for number in range(voters)})

    async def ask(self, client: str = "ann", **changes: Any) -> Answered:
        question = self.recommender.question(Ask(recommender=NAME, client=client, **changes))
        (answer,) = await self.recommender.answer([question], [None])
        if isinstance(answer, DiscreetError):
            raise answer
        return answer

    async def give_feedback(
        self, answer: Answered, reward: float, client: str = "ann", item: str | None = None
    ) -> Receipt:
        feedback = self.feedback(answer, reward, client, item)
        (receipt,) = await self.recommender.record_feedback([feedback])
        if isinstance(receipt, DiscreetError):
            raise receipt
        return receipt

    def feedback(
        self, answer: Answered, reward: float, client: str = "ann", item: str | None = None
    ) -> PendingFeedback:
        decision = answer.decision
        pending = PendingDecision(
            generation=self.recommender.generation,
            decision_id=b"d" * 12,
            expires_at=2_000_000_000,
            principal=self.recommender.principal(client),
            personalised=decision.personalised,
            choices=decision.choices,
            note=decision.note,
        )
        return PendingFeedback(pending, Feedback(reward=reward, item=item), 60)

    def epsilon(self, answer: Answered) -> float:
        """What an answer says that it cost."""
        epsilon = self.recommender.report(answer).epsilon
        assert epsilon is not None
        return epsilon

    def spent(self, answer: Answered) -> float:
        """What an answer says that the voters have spent."""
        spent = self.recommender.report(answer).spent
        assert spent is not None
        return spent.epsilon

    @property
    def run_epsilon(self) -> float:
        return self.recommender.run_charge.nano_epsilon / 1e9

    async def history(self, client: str = "ann") -> ClientHistory:
        page = self.recommender.clients.page(self.recommender.principal(client))
        content = await self.store.read_page(page=page)
        history = ClientHistory(content[:8])
        history.read(content[8:], position=0)
        return history


@pytest.fixture
def bench() -> Bench:
    return Bench()
