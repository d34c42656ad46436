"""What is kept about one client, shown and erased."""

import asyncio
from dataclasses import dataclass

from discreet.decisions.runtime import Runtime
from discreet.families.budgets import PrivacyReport


@dataclass(frozen=True, slots=True)
class Erased:
    """How many stored answers were erased, and how much else that families kept by client."""

    events: int
    records: int


async def budget_of(runtime: Runtime, *, recommender: str, client: str) -> PrivacyReport:
    """Return how a client stands with a recommender. Unknown clients have spent nothing."""
    found = await runtime.registry.find(recommender)
    return await runtime.families[found.algorithm].standing(runtime, found, client)


async def erase_client(runtime: Runtime, *, client: str) -> Erased:
    """Erase what is stored about a client: the answers kept for retries, profiles, histories.

    The ledger stays, under its digest: forgetting what was spent would let it be spent again.
    Sums stay: a click is in them as a number without a name.
    """
    recommenders = (await runtime.registry.current()).recommenders
    principals = [runtime.principals.client(name, client) for name in recommenders]
    marked = await asyncio.gather(
        *(runtime.store.forget_markers(principal=principal) for principal in principals)
    )
    events = {event for markers in marked for event in markers}
    await asyncio.gather(*(runtime.store.forget_event(event=event) for event in events))
    forgotten = await asyncio.gather(
        *(
            runtime.families[one.algorithm].forget(runtime, one, client)
            for one in recommenders.values()
        )
    )
    return Erased(events=len(events), records=sum(forgotten))
