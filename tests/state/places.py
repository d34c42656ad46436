"""A store under test, with what a test may do to it from outside, and what tests put into it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from discreet.privacy.charges import Charge, Limit
from discreet.state.stores import (
    Debit,
    Debited,
    FeedbackRecord,
    Increments,
    Learned,
    Ledger,
    Store,
)

ONE = Charge(nano_epsilon=100, nano_rho=5, pico_delta=1)
ADA = b"ada}{".ljust(32, b"}")
BOB = b"bob".ljust(32, b"\x00")
GENERATION = b"generation}{"
BLOCK = b"block}"

shared = pytest.mark.parametrize("place", ["embedded", "cluster"], indirect=True)
"""Memory belongs to one process and one client, and nobody can meddle with it from outside."""


@dataclass
class Place:
    """A fresh store, a way to let time pass in it, and where other clients find the same data.

    A store in memory has one client: its `url` is None.
    """

    store: Store
    elapse: Callable[[float], Awaitable[None]]
    url: str | None
    namespace: str


async def spend(store: Store, principal: bytes = ADA, **terms: Any) -> Debited:
    """Make one debit of `ONE`, or as `terms` say, and raise its error."""
    (found,) = await store.spend([Debit(principal, **{"charge": ONE} | terms)])
    if isinstance(found, Exception):
        raise found
    return found


async def spent(store: Store, principal: bytes = ADA) -> Ledger:
    """Return the ledger of one principal."""
    (found,) = await store.ledgers([principal])
    return found


def record(
    *increments: tuple[int, int],
    principal: bytes = ADA,
    claim: bytes = b"claim",
    reward: int = 1,
    blocks: Mapping[bytes, Increments] | None = None,
    generation: bytes = GENERATION,
    ttl: int = 60,
    charge: Charge = Charge(),  # noqa: B008  it is frozen
    limit: Limit = Limit(),  # noqa: B008  it is frozen
) -> FeedbackRecord:
    """Return feedback that adds `increments` (one to field 0) to `BLOCK`, or those of `blocks`."""
    added = {BLOCK: increments or [(0, 1)]} if blocks is None else blocks
    return FeedbackRecord(principal, generation, claim, reward, ttl, added, charge, limit)


async def learn(store: Store, one: FeedbackRecord) -> Learned:
    """Learn from one record, and raise its error."""
    (found,) = await store.learn([one])
    if isinstance(found, Exception):
        raise found
    return found


async def released(
    store: Store, number: int, generation: bytes = GENERATION
) -> dict[bytes, list[int]]:
    """Freeze for a release, and return what was set aside for it as lists."""
    await store.freeze(generation=generation, number=number)
    found = await store.frozen(generation=generation, number=number)
    return {block: vector.tolist() for block, vector in found.items()}
