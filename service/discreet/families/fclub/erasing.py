"""Erasing one client's sums, or everything that a local recommender learned."""

from typing import TYPE_CHECKING

from discreet.families.fclub.recommender import ClusterRecommender
from discreet.families.fclub.sent import close_record, open_record, room

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime


async def erase_user(runtime: "Runtime", recommender: ClusterRecommender, client: str) -> int:
    """Erase a client's sums; return 1 if there were any.

    The order is the argument of `sent`: close, erase, open.
    """
    address = recommender.user(runtime.principals.client(recommender.name, client))
    (sums,) = await runtime.store.read(addresses=[address])
    (number,) = await runtime.store.number_of(roster=recommender.key(b"users"), names=[address])
    if not len(sums) and number is None:
        return 0
    if number is None:
        # Somebody might be about to give one, and to write a letter.
        (number,) = await runtime.store.enrol(roster=recommender.key(b"users"), names=[address])
    recorded = number < room(recommender)
    if recorded:
        await close_record(runtime, recommender, number)
    alone = recommender.key(b"erased", address)
    await runtime.store.index_cell(index=alone, address=address, level=0)
    await runtime.store.remove_cells(index=alone)
    if recorded:
        await open_record(runtime, recommender, number)
    recommender.touched = True
    return 1 if len(sums) else 0


async def erase_all(runtime: "Runtime", recommender: ClusterRecommender) -> None:
    """Erase whatever lies beside the users' sums."""
    await runtime.store.erase(
        keys=[recommender.key(purpose) for purpose in (b"desk", b"sent", b"view")]
    )
    await runtime.store.strike_roster(roster=recommender.key(b"users"))
