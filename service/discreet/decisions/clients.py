"""What is kept about one client, shown and erased."""

import asyncio
from dataclasses import dataclass

from discreet.decisions.registry import RecommenderRegistry
from discreet.families.budgets import PrivacyReport
from discreet.state.stores import Store


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """How a client stands with a recommender: the account of answers, and that of feedback."""

    answers: PrivacyReport
    feedback: PrivacyReport


@dataclass(frozen=True, slots=True)
class Erased:
    """How many stored answers were erased, and how much else that families kept by client."""

    events: int
    records: int


class Clients:
    """Shows and erases what is kept by client."""

    def __init__(self, *, store: Store, registry: RecommenderRegistry) -> None:
        self._store = store
        self._registry = registry

    async def budget(self, *, recommender: str, client: str) -> BudgetReport:
        """Return how a client stands. Unknown clients have spent nothing."""
        found = await self._registry.find(recommender)
        return BudgetReport(*await found.budgets(client))

    async def erase(self, client: str) -> Erased:
        """Erase what is stored about a client: answers kept for retries, profiles, histories.

        The ledger stays, under its digest: forgetting what was spent would let it be spent again.
        Sums stay: a click is in them as a number without a name.
        """
        recommenders = (await self._registry.current()).recommenders.values()
        principals = {one.principal(client) for one in recommenders}
        marked = await asyncio.gather(
            *(self._store.forget_markers(principal) for principal in principals)
        )
        events = {event for markers in marked for event in markers}
        await asyncio.gather(*(self._store.forget_event(event=event) for event in events))
        forgotten = await asyncio.gather(*(one.forget(client) for one in recommenders))
        return Erased(events=len(events), records=sum(forgotten))
