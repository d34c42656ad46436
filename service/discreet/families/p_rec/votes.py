"""Votes: one byte for each voter and round, by the voter's number; 0 is silence.

A request's votes are checked first, all of them, and then written, one atomic step a round under
the guard that it is open. If one cannot be used, nothing of the request is stored. (If a round is
closed between the check and the write, votes for *other* rounds of the same request may be stored
already; sending it again without that round changes nothing about them.)
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.families.contract import Recommender
from discreet.families.p_rec.credits import SILENT, Ballots
from discreet.families.p_rec.remembered import Remembered
from discreet.families.p_rec.rounds import HEAD, OPEN, Round, Rounds

_TOGETHER = 3_000
"""Voters that one command numbers: more would keep everybody else waiting for the store."""
_MOST_IN_LOOP = 1_000
"""Votes of one request that are sorted in the event loop; more are sorted in a thread."""
MOST_BALLOT_BYTES = 192 * 2**20
_OVERHEAD = 200
"""About what a round's ballots take beside their bytes."""
_VOTER = "\0voter/"
"""No client's id begins like this: ids are printable."""
_CLOSED = "is closed: voting has ended, and nothing of this request for it was counted"


class Vote(NamedTuple):
    """A vote, already checked for form."""

    round: str
    voter: str
    object: str


class Votes:
    """Rounds and votes of one recommender: what its API offers beside answers."""

    PURPOSE = "rounds and votes"

    def __init__(self, owner: Recommender[Any], *, objects: int, most_voters: int) -> None:
        self._owner = owner
        self._store = owner.store
        self._most_voters = most_voters
        self.rounds = Rounds(owner, objects=objects)
        self.voters_roster = owner.key(b"voters")
        self.retired_roster = owner.key(b"retired")
        self.erasures_key = owner.key(b"erasures")
        """The blob whose version counts how often a voter's votes were erased."""
        self.erasures = 0
        """The last version of it that this worker has seen."""
        self._ballots: Remembered[int, Ballots] = Remembered(MOST_BALLOT_BYTES)

    # Reading.

    async def ballots(self, numbers: Sequence[int]) -> list[Ballots]:
        """Return the votes of closed rounds, which do not change any more but by erasures."""
        seen, found, missing = self.erasures, dict[int, Ballots](), []
        for number in numbers:
            known = self._ballots.get(number)
            if known is None:
                missing.append(number)
            else:
                found[number] = known
        if not missing:
            return [found[number] for number in numbers]
        # No further than the voters that were promised: whoever slipped in beyond is silent.
        pages = await asyncio.gather(
            *(
                self._store.read_page(
                    page=self.rounds.page(number), start=HEAD, end=HEAD + self._most_voters
                )
                for number in missing
            )
        )
        for number, page in zip(missing, pages, strict=True):
            found[number] = ballots = np.frombuffer(page, dtype=np.uint8)
            # What was read before an erasure must not be remembered after it.
            if seen == self.erasures:
                self._ballots.put(number, ballots, ballots.nbytes + _OVERHEAD)
        return [found[number] for number in numbers]

    async def ballots_of(self, number: int) -> Ballots:
        """Return the votes of one closed round, which is mostly remembered."""
        known = self._ballots.get(number)
        if known is None:
            (known,) = await self.ballots([number])
        return known

    def notice_erasures(self, count: int) -> None:
        """Forget the votes in memory if any were erased since the last look."""
        if count != self.erasures:
            self.erasures = count
            self._ballots.clear()

    async def count_voters(self) -> int:
        """Return how many voters have a number."""
        return await self._store.roster_size(roster=self.voters_roster)

    # Casting.

    async def cast(self, votes: Sequence[Vote]) -> int:
        """Count votes; the last one of a voter in a round is the one that counts.

        Raises `InvalidArgument` if one of them cannot be used, and names it.
        """
        rounds = await self._open_rounds(votes)
        if len(votes) > _MOST_IN_LOOP:
            ballots, names = await asyncio.to_thread(self._sorted, rounds, votes)
        else:
            ballots, names = self._sorted(rounds, votes)
        retired = await self._store.roster_size(roster=self.retired_roster)
        if retired and any(await self._retired(list(names.values()))):
            raise InvalidArgument(
                "voter", "was erased and cannot vote again under that id; use another"
            )
        numbers = await self._number(list(names.values()))
        by_voter = dict(zip(names, numbers, strict=True))
        for name, each in ballots.items():
            await self._write(rounds[name], {by_voter[voter]: one for voter, one in each.items()})
        if await self._store.roster_size(roster=self.retired_roster) != retired:
            # Somebody was erased meanwhile; if it was one of these, the erasure wins.
            gone = await self._retired(list(names.values()))
            for voter, was_erased in zip(names, gone, strict=True):
                if was_erased:
                    await self.erase_voter(voter)
        return len(votes)

    async def _open_rounds(self, votes: Sequence[Vote]) -> dict[str, Round]:
        rounds: dict[str, Round] = {}
        for position, vote in enumerate(votes):
            if vote.round not in rounds:
                field = _field(position, votes) + "round"
                one = await self.rounds.require(vote.round, argument=field)
                if await self.rounds.is_closed(one):
                    raise InvalidArgument(field, _CLOSED)
                rounds[vote.round] = one
        return rounds

    def _sorted(
        self, rounds: dict[str, Round], votes: Sequence[Vote]
    ) -> tuple[dict[str, dict[str, int]], dict[str, bytes]]:
        """Return every round's ballots by voter, and every voter's digest."""
        places = {
            name: {chosen: at + 1 for at, chosen in enumerate(one.objects)}
            for name, one in rounds.items()
        }
        ballots: dict[str, dict[str, int]] = {name: {} for name in rounds}
        names: dict[str, bytes] = {}
        for position, vote in enumerate(votes):
            ballot = places[vote.round].get(vote.object)
            if ballot is None:
                field = _field(position, votes) + "object"
                raise InvalidArgument(field, "is not an object of that round")
            ballots[vote.round][vote.voter] = ballot
            if vote.voter not in names:
                names[vote.voter] = self._digest(vote.voter)
        return ballots, names

    async def _number(self, names: Sequence[bytes]) -> list[int]:
        """Return every voter's number, letting in further ones as long as there is room."""
        store, roster, most = self._store, self.voters_roster, self._most_voters
        full = InvalidArgument("voter", f"cannot be let in: there are {most} voters already")
        size = await store.roster_size(roster=roster)
        numbers: list[int] = []
        for start in range(0, len(names), _TOGETHER):
            some = names[start : start + _TOGETHER]
            if size + len(names) > most:
                # Nearly full: look before letting anybody in.
                known = await store.number_of(roster=roster, names=some)
                size = await store.roster_size(roster=roster)
                if size + sum(number is None for number in known) > most:
                    raise full
            numbers += await store.enrol(roster=roster, names=some)
        if max(numbers, default=0) >= most:
            raise full
        return numbers

    async def _retired(self, names: Sequence[bytes]) -> list[bool]:
        """Tell of each voter whether they were erased."""
        gone: list[bool] = []
        for start in range(0, len(names), _TOGETHER):
            known = await self._store.number_of(
                roster=self.retired_roster, names=names[start : start + _TOGETHER]
            )
            gone += [number is not None for number in known]
        return gone

    async def _write(self, one: Round, ballots: dict[int, int]) -> None:
        written = await self._store.write_page(
            page=self.rounds.page(one.number),
            writes=[(HEAD + start, content) for start, content in stretches(ballots)],
            guard=(0, OPEN),
        )
        if not written.done:
            raise InvalidArgument("round", _CLOSED)

    def _digest(self, voter: str) -> bytes:
        return self._owner.principal(_VOTER + voter)

    # Erasing.

    async def erase_voter(self, voter: str) -> int:
        """Erase all votes of a voter, in closed rounds too; return how many there were.

        From now on the voter has always been silent, and stays so: a voter who could begin again
        would have their credit again, and the proof gives it to everybody once. Every worker
        notices by the number of erasures. Idempotent.
        """
        store, name = self._store, self._digest(voter)
        (number,) = await store.number_of(roster=self.voters_roster, names=[name])
        if number is None:
            return 0
        await store.enrol(roster=self.retired_roster, names=[name])
        at, rounds, erased = HEAD + number, await self.rounds.count(), 0
        for start in range(0, rounds, _TOGETHER):
            several = range(start, min(start + _TOGETHER, rounds))
            pages = [self.rounds.page(each) for each in several]
            held = await asyncio.gather(
                *(store.read_page(page=page, start=at, end=at + 1) for page in pages)
            )
            silence = bytes([SILENT])
            voted = [
                page for page, vote in zip(pages, held, strict=True) if vote not in (b"", silence)
            ]
            await asyncio.gather(
                *(store.write_page(page=page, writes=[(at, silence)]) for page in voted)
            )
            erased += len(voted)
        # Also when nothing was left to erase: an earlier attempt may have died before this.
        await store.save(key=self.erasures_key, content=b"")
        return erased

    async def erase(self) -> None:
        """Erase all rounds, votes and voters, in the store. Idempotent."""
        await self.rounds.erase()
        await self._store.erase(keys=[self.erasures_key])
        for roster in (self.voters_roster, self.retired_roster):
            await self._store.remove_roster(roster=roster)


def _field(position: int, votes: Sequence[Vote]) -> str:
    return f"votes[{position}]." if len(votes) > 1 else ""


def stretches(ballots: dict[int, int]) -> list[tuple[int, bytes]]:
    """Return the ballots as runs of neighbouring voters: where each begins, and its bytes."""
    numbers = np.fromiter(ballots.keys(), dtype=np.int64, count=len(ballots))
    values = np.fromiter(ballots.values(), dtype=np.uint8, count=len(ballots))
    order = np.argsort(numbers)
    numbers, values = numbers[order], values[order]
    ends = np.flatnonzero(np.diff(numbers) != 1) + 1
    pieces: list[npt.NDArray[np.uint8]] = np.split(values, ends)
    starts = numbers[np.concatenate([[0], ends]).astype(np.int64)].tolist()
    return [(start, piece.tobytes()) for start, piece in zip(starts, pieces, strict=True)]
