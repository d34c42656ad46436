"""Rounds: m objects each, numbered in the order in which they came, open to votes and then closed.

A round's objects are a blob, written once. Its votes are a page whose first byte says whether it
is open; every vote is written under the guard that it still is, and closing changes that byte. So
no vote can reach a round from which an answer was given, whichever workers are concerned.
"""

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.families.p_rec.recommender import VotersRecommender
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

OPEN, CLOSED = b"\x01", b"\x02"
HEAD = 1
"""Bytes of a page of votes before the first voter's."""
MOST_SHOWN = 1_000
MOST_HELD = 20_000
"""Rounds whose objects a worker remembers."""


@dataclass(frozen=True, slots=True)
class Round:
    """A round, by its number; its objects stand in the order of their places."""

    number: int
    id: str
    objects: tuple[str, ...]


class RoundBook:
    """What a worker remembers of a recommender's rounds: they never change, but for closing."""

    def __init__(self) -> None:
        self._by_number: dict[int, Round] = {}
        self._numbers: dict[str, int] = {}
        self._closed: set[int] = set()

    async def numbered(
        self, runtime: "Runtime", recommender: VotersRecommender, number: int
    ) -> Round | None:
        """Return a round by its number, or None if it was never finished being made."""
        known = self._by_number.get(number)
        if known is not None:
            return known
        (blob,) = await runtime.store.load(keys=[recommender.definition(number)])
        if blob is None:
            return None
        fields = json.loads(blob.content)
        return self._keep(Round(number, fields["id"], tuple(fields["objects"])))

    async def called(
        self, runtime: "Runtime", recommender: VotersRecommender, round_id: str
    ) -> Round | None:
        """Return a round by its id, or None."""
        number = self._numbers.get(round_id)
        if number is None:
            (number,) = await runtime.store.number_of(
                roster=recommender.rounds_roster, names=[recommender.round_name(round_id)]
            )
        if number is None:
            return None
        found = await self.numbered(runtime, recommender, number)
        return found if found is not None and found.id == round_id else None

    async def named(
        self,
        runtime: "Runtime",
        recommender: VotersRecommender,
        round_id: str,
        *,
        argument: str = "round",
    ) -> Round:
        """Return a round by its id, or say that there is none."""
        found = await self.called(runtime, recommender, round_id)
        if found is None:
            raise InvalidArgument(argument, "is not a round of this recommender")
        return found

    async def make(
        self,
        runtime: "Runtime",
        recommender: VotersRecommender,
        *,
        round_id: str | None,
        objects: Sequence[str],
    ) -> tuple[Round, bool]:
        """Make a round, open to votes; tell whether it is new. The same one again is no mistake."""
        wanted = recommender.document.objects
        if len(objects) != wanted:
            raise InvalidArgument("objects", f"must be {wanted}, as the recommender says")
        if len(set(objects)) != len(objects):
            raise InvalidArgument("objects", "must be distinct")
        name = os.urandom(8).hex() if round_id is None else round_id
        store = runtime.store
        (number,) = await store.enrol(
            roster=recommender.rounds_roster, names=[recommender.round_name(name)]
        )
        content = json.dumps({"id": name, "objects": list(objects)}).encode()
        saved = await store.save(key=recommender.definition(number), content=content, expected=0)
        made = await self.numbered(runtime, recommender, number)
        if made is None or made.id != name or made.objects != tuple(objects):
            raise InvalidArgument("id", "already names a round with other objects")
        # After the objects: a page without them would take votes for nothing.
        await store.append_page(page=recommender.ballots(number), content=OPEN, expected=0)
        recommender.touched = True
        return made, saved is not None

    async def close(self, runtime: "Runtime", recommender: VotersRecommender, one: Round) -> None:
        """End the voting of a round. Idempotent."""
        if one.number in self._closed:
            return
        page = recommender.ballots(one.number)
        written = await runtime.store.write_page(page=page, writes=[(0, CLOSED)], guard=(0, OPEN))
        if not written.done and written.found != CLOSED:
            # Whoever made the round was interrupted before its page was there: nobody has voted.
            await runtime.store.append_page(page=page, content=CLOSED, expected=0)
            await self.close(runtime, recommender, one)
        self._closed.add(one.number)
        recommender.touched = True

    async def is_closed(
        self, runtime: "Runtime", recommender: VotersRecommender, one: Round
    ) -> bool:
        """Tell whether voting has ended."""
        if one.number not in self._closed:
            page = recommender.ballots(one.number)
            if await runtime.store.read_page(page=page, start=0, end=HEAD) == CLOSED:
                self._closed.add(one.number)
        return one.number in self._closed

    async def latest(
        self, runtime: "Runtime", recommender: VotersRecommender, *, most: int = MOST_SHOWN
    ) -> list[tuple[Round, bool]]:
        """Return the newest rounds in their order, and whether each is closed."""
        size = await runtime.store.roster_size(roster=recommender.rounds_roster)
        numbers = range(max(0, size - most), size)
        found = await asyncio.gather(
            *(self.numbered(runtime, recommender, number) for number in numbers)
        )
        made = [one for one in found if one is not None]
        closed = await asyncio.gather(*(self.is_closed(runtime, recommender, one) for one in made))
        return list(zip(made, closed, strict=True))

    def _keep(self, one: Round) -> Round:
        if len(self._by_number) >= MOST_HELD:
            self._by_number.clear()
            self._numbers.clear()
        self._by_number[one.number] = one
        self._numbers[one.id] = one.number
        return one
