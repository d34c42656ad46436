"""Rounds: 2 to m objects each, numbered as they came, open to votes and then closed.

A round's objects are a blob, written once. Its votes are a page whose first byte says whether it
is open; every vote is written under the guard that it still is, and closing changes that byte. So
no vote can reach a round from which an answer was given, whichever workers are concerned.

A worker remembers the rounds that it met. They never change, except that open ones are closed.
"""

import asyncio
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from discreet.errors import DiscreetError, InvalidArgument, StoreDamaged
from discreet.families.contract import Recommender
from discreet.families.p_rec.remembered import Remembered
from discreet.state.stores import PageWrite

OPEN, CLOSED = b"\x01", b"\x02"
HEAD = 1
"""Bytes of a page of votes before the first voter's."""
LEAST_OBJECTS = 2
MOST_SHOWN = 1_000
MOST_REMEMBERED = 20_000
_TOGETHER = 512


@dataclass(slots=True)
class Round:
    """A round, by its number; its objects stand in the order of their places.

    `closed` once this worker knows that voting has ended.
    """

    number: int
    id: str
    objects: tuple[str, ...]
    closed: bool = field(default=False, compare=False)


class Rounds:
    """The rounds of one recommender, in the store and in this worker's memory."""

    def __init__(self, owner: Recommender[Any], *, objects: int) -> None:
        self._store = owner.store
        self._key = owner.key
        self._objects = objects
        self._roster = owner.key(b"rounds")
        self._by_number: Remembered[int, Round] = Remembered(MOST_REMEMBERED)
        self._number_of: Remembered[str, int] = Remembered(MOST_REMEMBERED)
        self.changed = True
        """Whether a round was made or closed, or votes cast, since the rounds were last counted."""

    def page(self, number: int) -> bytes:
        """Return the page of a round's votes."""
        return self._key(b"votes", number.to_bytes(4, "little"))

    def definition(self, number: int) -> bytes:
        """Return the blob of a round's objects."""
        return self._key(b"round", number.to_bytes(4, "little"))

    async def count(self) -> int:
        """Return how many rounds there are."""
        return await self._store.roster_size(roster=self._roster)

    async def by_number(self, number: int) -> Round | None:
        """Return a round by its number, or None if it was never finished being made."""
        known = self.remembered(number)
        if known is not None:
            return known
        (blob,) = await self._store.load(keys=[self.definition(number)])
        if blob is None:
            return None
        try:
            fields = json.loads(blob.content)
            found = Round(number, str(fields["id"]), tuple(map(str, fields["objects"])))
        except Exception:  # readers fail in many ways
            raise StoreDamaged("a round cannot be read") from None
        self._by_number.put(number, found)
        self._number_of.put(found.id, number)
        return found

    def remembered(self, number: int) -> Round | None:
        """Return a round that this worker has met."""
        return self._by_number.get(number)

    async def by_id(self, round_id: str) -> Round | None:
        """Return a round by its id, or None."""
        number = self._number_of.get(round_id)
        if number is None:
            (number,) = await self._store.number_of(roster=self._roster, names=[_name(round_id)])
        if number is None:
            return None
        found = await self.by_number(number)
        return found if found is not None and found.id == round_id else None

    async def require(self, round_id: str, *, argument: str = "round") -> Round:
        """Return a round by its id, or raise `InvalidArgument`."""
        found = await self.by_id(round_id)
        if found is None:
            raise InvalidArgument(argument, "is not a round of this recommender")
        return found

    async def make(self, *, round_id: str | None, objects: Sequence[str]) -> tuple[Round, bool]:
        """Make a round, open to votes; tell whether it is new. Idempotent.

        Raises `InvalidArgument` for unusable objects, and for an id whose objects are others.
        """
        if not LEAST_OBJECTS <= len(objects) <= self._objects:
            raise InvalidArgument(
                "objects",
                f"must be from {LEAST_OBJECTS} to {self._objects}, the recommender's most",
            )
        if len(set(objects)) != len(objects):
            raise InvalidArgument("objects", "must be distinct")
        name = os.urandom(8).hex() if round_id is None else round_id
        (number,) = await self._store.enrol(roster=self._roster, names=[_name(name)])
        content = json.dumps({"id": name, "objects": list(objects)}).encode()
        saved = await self._store.save(key=self.definition(number), content=content, expected=0)
        made = await self.by_number(number)
        if made is None or made.id != name or made.objects != tuple(objects):
            raise InvalidArgument("id", "already names a round with other objects")
        # After the objects: a page without them would take votes for nothing.
        await self._open(self.page(number))
        self.changed = True
        return made, saved is not None

    async def close(self, one: Round) -> None:
        """End the voting of a round. Idempotent."""
        page = self.page(one.number)
        while not one.closed:
            written = await self._store.write_page(page=page, writes=[(0, CLOSED)], guard=(0, OPEN))
            if written.done or written.found == CLOSED:
                one.closed = self.changed = True
            else:
                # Making the round was interrupted before its page was there: nobody has voted.
                await self._open(page)

    async def _open(self, page: bytes) -> None:
        """Begin a page of votes, unless there is one."""
        (opened,) = await self._store.write_pages([PageWrite(page, 0, OPEN, long=0)])
        if isinstance(opened, DiscreetError):
            raise opened

    async def is_closed(self, one: Round) -> bool:
        """Tell whether voting has ended."""
        if not one.closed:
            page = self.page(one.number)
            one.closed = await self._store.read_page(page=page, start=0, end=HEAD) == CLOSED
        return one.closed

    async def latest(self, *, most: int = MOST_SHOWN) -> list[tuple[Round, bool]]:
        """Return the newest rounds in their order, and whether each is closed."""
        size = await self.count()
        numbers = range(max(0, size - most), size)
        found = await asyncio.gather(*map(self.by_number, numbers))
        made = [one for one in found if one is not None]
        closed = await asyncio.gather(*map(self.is_closed, made))
        return list(zip(made, closed, strict=True))

    async def erase(self) -> None:
        """Erase all rounds and their votes, in the store. Idempotent."""
        size = await self.count()
        for start in range(0, size, _TOGETHER):
            numbers = range(start, min(start + _TOGETHER, size))
            await self._store.erase(keys=[self.page(number) for number in numbers])
            await self._store.erase(keys=[self.definition(number) for number in numbers])
        await self._store.remove_roster(roster=self._roster)


def _name(round_id: str) -> bytes:
    """Return how the roster calls a round."""
    return hashlib.blake2b(round_id.encode(), digest_size=16).digest()
