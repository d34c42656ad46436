"""Votes: one byte for each voter and round, by the voter's number; 0 is silence.

A request's votes are looked at first, all of them, and then written, one atomic step a round under
the guard that it is open. What cannot be used is told, and nothing of the request is stored. (If a
round is closed between the look and the write, votes for *other* rounds of the same request may
stand already; sending it again without that round changes nothing about them.)
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.families.p_rec.credits import SILENT, Ballots
from discreet.families.observer import Count
from discreet.state.principals import Principals
from discreet.families.p_rec.recommender import VotersRecommender
from discreet.families.p_rec.rounds import HEAD, OPEN, Round, RoundBook
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

_TOGETHER = 3_000
"""Voters that one command numbers: more would keep everybody else waiting for the store."""
_ASIDE = 1_000
"""Votes of one request that are looked at on the spot."""
MOST_BALLOT_BYTES = 192 * 2**20
_CLOSED = "is closed: voting has ended, and nothing of this request for it was counted"


class Vote(NamedTuple):
    """A vote, already checked for form."""

    round: str
    voter: str
    object: str


async def cast(
    runtime: "Runtime", recommender: VotersRecommender, book: RoundBook, votes: Sequence[Vote]
) -> int:
    """Count votes; the last one of a voter in a round is the one that counts."""
    try:
        numbered = await _looked_at(runtime, recommender, book, votes)
        for one, ballots in numbered:
            await _write(runtime, recommender, one, ballots)
    except InvalidArgument:
        _count(runtime, recommender, "refused", len(votes))
        raise
    recommender.touched = True
    _count(runtime, recommender, "counted", len(votes))
    return len(votes)


def _count(runtime: "Runtime", recommender: VotersRecommender, label: str, amount: int) -> None:
    runtime.observer.count(
        recommender=recommender.name, what=Count.VOTES, label=label, amount=amount
    )


async def _looked_at(
    runtime: "Runtime", recommender: VotersRecommender, book: RoundBook, votes: Sequence[Vote]
) -> list[tuple[Round, dict[int, int]]]:
    """Return each round with its ballots by voters' numbers, or say what cannot be used."""
    rounds: dict[str, Round] = {}
    for position, vote in enumerate(votes):
        if vote.round not in rounds:
            place = _place(position, votes) + "round"
            one = await book.named(runtime, recommender, vote.round, argument=place)
            if await book.is_closed(runtime, recommender, one):
                raise InvalidArgument(place, _CLOSED)
            rounds[vote.round] = one
    sorted_ = partial(_sorted, runtime.principals, recommender, rounds, votes)
    # Many take a moment, and other requests should not have to wait for it.
    ballots, names = await asyncio.to_thread(sorted_) if len(votes) > _ASIDE else sorted_()
    numbers = await _numbers(runtime, recommender, list(names.values()))
    by_voter = dict(zip(names, numbers, strict=True))
    return [
        (rounds[name], {by_voter[voter]: ballot for voter, ballot in each.items()})
        for name, each in ballots.items()
    ]


def _sorted(
    principals: Principals,
    recommender: VotersRecommender,
    rounds: dict[str, Round],
    votes: Sequence[Vote],
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
            place = _place(position, votes) + "object"
            raise InvalidArgument(place, "is not an object of that round")
        ballots[vote.round][vote.voter] = ballot
        if vote.voter not in names:
            names[vote.voter] = principals.client(recommender.name, recommender.voter(vote.voter))
    return ballots, names


def _place(position: int, votes: Sequence[Vote]) -> str:
    return f"votes.{position}." if len(votes) > 1 else ""


async def _numbers(
    runtime: "Runtime", recommender: VotersRecommender, names: list[bytes]
) -> list[int]:
    """Return every voter's number, letting in those who are new as long as there is room."""
    store, roster = runtime.store, recommender.voters_roster
    most = recommender.document.voters
    size, retired = await asyncio.gather(
        store.roster_size(roster=roster), store.roster_size(roster=recommender.retired_roster)
    )
    if retired:
        await _refuse_retired(runtime, recommender, names)
    found: list[int] = []
    for start in range(0, len(names), _TOGETHER):
        some = names[start : start + _TOGETHER]
        if size + len(names) > most:
            # Nearly full: look before letting anybody in.
            known = await store.number_of(roster=roster, names=some)
            size = await store.roster_size(roster=roster)
            if size + sum(number is None for number in known) > most:
                raise InvalidArgument("voter", f"cannot be let in: there are {most} voters already")
        found += await store.enrol(roster=roster, names=some)
    if max(found, default=0) >= most:
        raise InvalidArgument("voter", f"cannot be let in: there are {most} voters already")
    return found


async def _refuse_retired(
    runtime: "Runtime", recommender: VotersRecommender, names: Sequence[bytes]
) -> None:
    for start in range(0, len(names), _TOGETHER):
        known = await runtime.store.number_of(
            roster=recommender.retired_roster, names=names[start : start + _TOGETHER]
        )
        if any(number is not None for number in known):
            raise InvalidArgument(
                "voter", "was erased and cannot vote again under that id; use another"
            )


async def _write(
    runtime: "Runtime", recommender: VotersRecommender, one: Round, ballots: dict[int, int]
) -> None:
    written = await runtime.store.write_page(
        page=recommender.ballots(one.number),
        writes=[(HEAD + start, content) for start, content in stretches(ballots)],
        guard=(0, OPEN),
    )
    if not written.done:
        raise InvalidArgument("round", _CLOSED)


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


class BallotCache:
    """Votes of closed rounds, which do not change any more; the longest unused go first."""

    def __init__(self, most_bytes: int = MOST_BALLOT_BYTES) -> None:
        self._most = most_bytes
        self._held: OrderedDict[int, Ballots] = OrderedDict()
        self._bytes = 0

    async def of(self, runtime: "Runtime", recommender: VotersRecommender, number: int) -> Ballots:
        """Return the votes of a closed round, by voters' numbers."""
        held = self._held.get(number)
        if held is not None:
            self._held.move_to_end(number)
            return held
        page = recommender.ballots(number)
        # No further than the voters that were promised: whoever slipped in beyond is silent.
        content = await runtime.store.read_page(
            page=page, start=HEAD, end=HEAD + recommender.document.voters
        )
        ballots: Ballots = np.frombuffer(content, dtype=np.uint8)
        self._held[number] = ballots
        self._bytes += ballots.nbytes
        while self._bytes > self._most and len(self._held) > 1:
            _, dropped = self._held.popitem(last=False)
            self._bytes -= dropped.nbytes
        return ballots

    def clear(self) -> None:
        """Forget everything."""
        self._held.clear()
        self._bytes = 0


async def take_back(runtime: "Runtime", recommender: VotersRecommender, *, voter: str) -> int:
    """Erase all votes of a voter, in closed rounds too; return how many there were.

    From now on he was silent, and is: a voter who could begin again would have his credit anew,
    and the proof gives everybody one. Every worker notices by the number of such erasures.
    """
    store = runtime.store
    name = runtime.principals.client(recommender.name, recommender.voter(voter))
    (number,) = await store.number_of(roster=recommender.voters_roster, names=[name])
    if number is None:
        return 0
    await store.enrol(roster=recommender.retired_roster, names=[name])
    rounds = await store.roster_size(roster=recommender.rounds_roster)
    taken = 0
    for start in range(0, rounds, _TOGETHER):
        pages = [recommender.ballots(at) for at in range(start, min(start + _TOGETHER, rounds))]
        held = await asyncio.gather(
            *(
                store.read_page(page=page, start=HEAD + number, end=HEAD + number + 1)
                for page in pages
            )
        )
        voted = [
            page for page, ballot in zip(pages, held, strict=True) if ballot not in (b"", b"\0")
        ]
        silence = bytes([SILENT])
        await asyncio.gather(
            *(store.write_page(page=page, writes=[(HEAD + number, silence)]) for page in voted)
        )
        taken += len(voted)
    # Also when nothing was left to take: an earlier attempt may have died before it said so.
    await store.save(key=recommender.erasures, content=b"")
    return taken
