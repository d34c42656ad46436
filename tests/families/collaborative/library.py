"""A small library: two tastes, and readers of each."""

import os
from collections.abc import Sequence
from typing import Any

from discreet.families.collaborative.document import CollaborativeDocument
from discreet.families.collaborative.model import CollaborativeModel
from discreet.families.collaborative.profiles import Profiles
from discreet.families.collaborative.recommender import CollaborativeRecommender
from discreet.families.contract import Resources
from discreet.families.observer import NullObserver, Observer
from discreet.families.peering import NoPeers
from discreet.families.questions import (
    Answered,
    Ask,
    Decision,
    Feedback,
    PendingDecision,
    PendingFeedback,
    Receipt,
)
from discreet.families.stored import StoredDocument
from discreet.privacy.noise import NoiseSource, SystemNoise
from discreet.state.memory import MemoryStore
from discreet.state.principals import Principals
from discreet.state.stores import Store

CRIME = ("knife", "alibi", "motive", "clue")
SPACE = ("comet", "rocket", "orbit", "crater")


def document(**changes: Any) -> CollaborativeDocument:
    """Eight books in two categories, one of them in both; feedback without noise."""
    fields: dict[str, Any] = {
        "algorithm": "collaborative",
        "items": [
            *({"id": id_, "title": id_.title(), "categories": ["crime"]} for id_ in CRIME[:-1]),
            {"id": "clue", "categories": ["crime", "space"]},
            *({"id": id_, "categories": ["space"]} for id_ in SPACE),
        ],
        "privacy": {"feedback": "exact"},
        **changes,
    }
    return CollaborativeDocument.model_validate(fields)


class Clock:
    """Time that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Library:
    """One worker's recommender over a store, and the steps of a releaser."""

    def __init__(
        self,
        *,
        store: Store | None = None,
        stored: StoredDocument | None = None,
        noise: NoiseSource | None = None,
        observer: Observer | None = None,
        **changes: Any,
    ) -> None:
        first = document(**changes)
        before = stored or StoredDocument(first, os.urandom(8), 1_000.0, {}, 0)
        self.store = store or MemoryStore()
        self.clock = Clock()
        self.noise = noise or SystemNoise()
        self.resources = Resources(
            store=self.store,
            noise=self.noise,
            observer=observer or NullObserver(),
            principals=Principals(b"p" * 32),
            peers=NoPeers(),
            clock=self.clock,
        )
        self.books = CollaborativeRecommender(
            name="books", stored=before.with_document(first), resources=self.resources
        )

    def change(self, **changes: Any) -> None:
        """Change the document: another object takes over, with the model that was released."""
        before = self.books
        stored = before.stored.with_document(document(**changes))
        self.books = CollaborativeRecommender(name="books", stored=stored, resources=self.resources)
        if before.current.number:
            model = self.books.decode(before.encode(before.current.model))
            self.books.adopt(number=before.current.number, released_at=0.0, model=model)

    async def send(self, client: str, *items: str, replace: bool = True) -> int:
        """Send a profile."""
        profiles = self.books.part(Profiles)
        return await profiles.keep(client=client, items=items, replace=replace)

    async def read_by_others(self) -> None:
        """Have some read crime, and fewer read of space."""
        for reader in range(4):
            await self.send(f"crime {reader}", *CRIME[: 3 + reader % 2])
        for reader in range(3):
            await self.send(f"space {reader}", *SPACE)

    async def release(self) -> CollaborativeModel:
        """Make the next model, as it comes back from the store."""
        number = self.books.current.number + 1
        gathered = await self.books.gather(number)
        model = self.books.release(self.books.current.model, gathered, self.noise)
        kept = self.books.decode(self.books.encode(model))
        self.books.adopt(number=number, released_at=self.clock(), model=kept)
        await self.books.clean_up(number)
        return kept

    async def answer(self, client: str, **more: Any) -> Answered:
        """Ask for as many books as there are, unless told otherwise."""
        ask = Ask(**{"recommender": "books", "client": client, "limit": 8, **more})
        (answer,) = await self.books.answer([self.books.question(ask)], [None])
        assert isinstance(answer, Answered)
        return answer

    async def ask(self, client: str, **more: Any) -> Decision:
        """Return what was decided."""
        return (await self.answer(client, **more)).decision

    def pending(self, client: str, decision: Decision) -> PendingDecision:
        """Return what the recommendation's id carries."""
        return PendingDecision(
            self.books.generation,
            os.urandom(8),
            2**31,
            self.books.principal(client),
            decision.personalised,
            decision.choices,
        )

    async def reward(self, client: str, item: str, reward: float = 1.0) -> Receipt:
        """Ask, and give feedback on one of the items."""
        pending = self.pending(client, await self.ask(client))
        (receipt,) = await self.tell([(pending, item, reward)])
        assert isinstance(receipt, Receipt)
        return receipt

    async def tell(
        self, told: Sequence[tuple[PendingDecision, str | None, float]]
    ) -> Sequence[Receipt | Exception]:
        """Give feedback on decisions."""
        return await self.books.record_feedback(
            [PendingFeedback(one, Feedback(reward, item=item), 60) for one, item, reward in told]
        )
