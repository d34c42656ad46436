"""How often a client was erased, so that whatever was on its way meanwhile does not stay.

An erasure first counts itself here, and then erases. Whoever writes something under a client reads
the count before it begins and once more after it has written. If the count has grown, the erasure
may have passed before the write landed: the writer takes its own write back. If it has not, the
write was there before the erasure began, which finds it. So nothing that began before an erasure
is there after it, whichever worker it came through; but for a worker that dies between its write
and its second look.

The count stays, under the client's digest. It is a number, and tells how often.
"""

from collections.abc import Sequence
from hashlib import blake2b

from discreet.errors import ClientErased
from discreet.state.store_values import Blobs, Stamp


class Tombstones:
    """The erasures of principals, in the store."""

    def __init__(self, store: Blobs) -> None:
        self._store = store

    async def mark(self, principal: bytes) -> Stamp:
        """Count another erasure; return which it is, and when it was by the store's own clock.

        Recommenders of a ledger group share a principal: it is marked once for all of them.
        """
        return await self._store.stamp(key=_key(principal))

    async def count(self, principal: bytes) -> int:
        """Return how often this principal was erased."""
        (count,) = await self._store.versions(keys=[_key(principal)])
        return count

    async def counts(self, principals: Sequence[bytes]) -> Sequence[int]:
        """Return how often each of these was erased."""
        return await self._store.versions(keys=[_key(each) for each in principals])

    async def refuse_if_erased(self, principal: bytes, *, since: int) -> None:
        """Raise `ClientErased` if there was an erasure since the count was `since`."""
        if await self.count(principal) != since:
            raise ClientErased("the client was erased while this request was being answered")

    async def cover(self, decisions: Sequence[tuple[bytes, int]]) -> list[bool]:
        """Tell which of these decisions were made before an erasure; each is a principal and the
        moment when it was made."""
        blobs = await self._store.load(keys=[_key(principal) for principal, _ in decisions])
        return [
            blob is not None and made_at <= int.from_bytes(blob.content, "little")
            for blob, (_, made_at) in zip(blobs, decisions, strict=True)
        ]


def _key(principal: bytes) -> bytes:
    return blake2b(principal, digest_size=16, person=b"erased").digest()
