"""What is kept about one client, shown and erased."""

import asyncio
from dataclasses import dataclass

from service.decisions.answering import PrivacyReport, report
from service.decisions.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Erased:
    """How many stored answers were erased."""

    events: int


async def budget_of(runtime: Runtime, *, recommender: str, client: str) -> PrivacyReport:
    """Return how a client stands with a recommender. Unknown clients have spent nothing."""
    found = await runtime.registry.find(recommender)
    spent = await runtime.store.balance(principal=runtime.principals.client(found.name, client))
    return report(found, spent=spent)


async def erase_client(runtime: Runtime, *, client: str) -> Erased:
    """Erase what is stored about a client: the answers kept for retries.

    The ledger stays, under its digest: forgetting what was spent would let it be spent again.
    Sums stay: a click is in them as a number without a name.
    """
    principals = [
        runtime.principals.client(name, client) for name in await runtime.registry.names()
    ]
    marked = await asyncio.gather(
        *(runtime.store.forget_markers(principal=principal) for principal in principals)
    )
    events = [event for markers in marked for event in markers]
    await asyncio.gather(*(runtime.store.forget_event(event=event) for event in events))
    return Erased(events=len(events))
