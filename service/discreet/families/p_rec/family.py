"""Voters' weights at work: what the service asks of every family, for this one.

| who | protected against whom | how |
|---|---|---|
| a voter | every client, and all of them together | each run is charged to the voters' ledger |
| a client | nobody | likes and dislikes are kept, under a digest, to answer the next round |

The proof is in `discreet.families.p_rec.voting`. What this package adds to it: a round's votes are fixed
before the first answer from it; a run is paid before it begins; an answer is drawn once; the next
one waits for the client's word on it, or takes his going on for dislike.
"""

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from discreet.families.questions import Ask, Feedback, Receipt, Recommendation
from discreet.decisions.family import Plain
from discreet.families.observer import Figure
from discreet.decisions.recommender import Recommender, Stored
from discreet.families.budgets import PrivacyReport
from discreet.decisions.tokens import Pending
from discreet.families.p_rec.answering import answer
from discreet.families.p_rec.ballots import take_back
from discreet.families.p_rec.desk import Desk
from discreet.families.p_rec.hearing import hear, word_of
from discreet.families.p_rec.recommender import PARTS, VotersRecommender

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

_TOGETHER = 512
_LOOKED_AT = 200
"""Rounds, the newest ones, whose state is looked up for the gauge."""


class VotersFamily(Plain):
    """A desk for each recommender."""

    def __init__(self) -> None:
        self._desks: dict[bytes, Desk] = {}

    def desk(self, recommender: VotersRecommender) -> Desk:
        """Return what this worker holds for a recommender."""
        return self._desks.setdefault(recommender.generation, Desk())

    def compile(self, *, name: str, stored: Stored) -> VotersRecommender:
        """Price a run, and refuse what the theorems do not cover."""
        return VotersRecommender(name=name, stored=stored)

    def check(self, recommender: Recommender, ask: Ask) -> None:
        """One item, of a round, and nothing that other families use."""
        assert isinstance(recommender, VotersRecommender)
        recommender.require(ask)

    def answer(
        self, runtime: "Runtime", recommender: Recommender, ask: Ask, marker: bytes | None = None
    ) -> Awaitable[Recommendation]:
        """Answer in a task: what is read depends on what was read before.

        A caller's marker is not needed. The client's page makes the answer to a round unique, and
        the run's own marker its debit.
        """
        assert isinstance(recommender, VotersRecommender)
        recommender.require(ask)
        return asyncio.ensure_future(answer(runtime, recommender, self.desk(recommender), ask))

    def hear(
        self,
        runtime: "Runtime",
        recommender: Recommender,
        pending: Pending,
        feedback: Feedback,
        ttl: int,
    ) -> Awaitable[Receipt]:
        """Write the client's word into his history, once."""
        assert isinstance(recommender, VotersRecommender)
        word_of(feedback.reward)
        return asyncio.ensure_future(
            hear(runtime, recommender, self.desk(recommender), pending, feedback)
        )

    async def refresh(self, runtime: "Runtime", recommender: Recommender) -> None:
        """Say how many voters and rounds there are."""
        assert isinstance(recommender, VotersRecommender)
        voters = await runtime.store.roster_size(roster=recommender.voters_roster)
        rounds = await runtime.store.roster_size(roster=recommender.rounds_roster)
        newest = await self.desk(recommender).rounds.latest(runtime, recommender, most=_LOOKED_AT)
        still_open = sum(not closed for _, closed in newest)
        for what, value, label in (
            (Figure.VOTERS, voters, ""),
            (Figure.ROUNDS, still_open, "open"),
            (Figure.ROUNDS, rounds - still_open, "closed"),
        ):
            runtime.observer.figure(
                recommender=recommender.name, what=what, value=value, label=label
            )

    async def remove(self, runtime: "Runtime", recommender: Recommender) -> None:
        """Erase rounds, votes and histories. The population's ledger stays."""
        assert isinstance(recommender, VotersRecommender)
        store = runtime.store
        self._desks.pop(recommender.generation, None)
        for part in range(PARTS):
            queue = recommender.clients_part(part)
            while names := list(await store.letters(queue=queue, most=_TOGETHER)):
                await store.erase(keys=[recommender.history(who) for who in names])
                await asyncio.gather(
                    *(store.discard_letter(queue=queue, letter=who) for who in names)
                )
        rounds = await store.roster_size(roster=recommender.rounds_roster)
        for start in range(0, rounds, _TOGETHER):
            numbers = range(start, min(start + _TOGETHER, rounds))
            await store.erase(keys=[recommender.ballots(number) for number in numbers])
            await store.erase(keys=[recommender.definition(number) for number in numbers])
        await store.erase(keys=[recommender.erasures])
        for roster in (
            recommender.rounds_roster,
            recommender.voters_roster,
            recommender.retired_roster,
        ):
            await store.strike_roster(roster=roster)

    async def forget(self, runtime: "Runtime", recommender: Recommender, client: str) -> int:
        """Erase a client's history, and the votes cast under the same id."""
        assert isinstance(recommender, VotersRecommender)
        who = runtime.principals.client(recommender.name, client)
        page, desk = recommender.history(who), self.desk(recommender)
        async with desk.turn(who):
            there = await runtime.store.read_page(page=page, start=0, end=1)
            await runtime.store.erase(keys=[page])
            await runtime.store.discard_letter(queue=recommender.clients_part(who[0]), letter=who)
            desk.clients.drop(who)
        return len(there) + await take_back(runtime, recommender, voter=client)

    async def standing(
        self, runtime: "Runtime", recommender: Recommender, client: str
    ) -> PrivacyReport:
        """Return how the voters' ledger stands: it pays for every client's run."""
        assert isinstance(recommender, VotersRecommender)
        spent = await runtime.store.balance(
            principal=runtime.principals.client(recommender.name, recommender.population)
        )
        return recommender.population_terms.report(spent=spent)
