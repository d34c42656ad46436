"""What a worker remembers of clients: their histories as far as read, and the voters' credits.

All of it is a cache. A client's page tells, at every question, whether what is remembered of it is
still the beginning of it; credits are the replay of a run's answers over its rounds' votes, and a
replay from the start gives the same bytes as one that went on from where it was. Questions of one
client wait for each other within a worker; between workers, the store's guards decide.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from discreet.families.p_rec.credits import Credits
from discreet.families.p_rec.ballots import BallotCache
from discreet.families.p_rec.history import MARK_BYTES, History, RunSoFar, Word
from discreet.families.p_rec.recommender import VotersRecommender

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

_BREATH = 8
"""Rounds of a replay after which others have their turn."""
MOST_CREDIT_BYTES = 192 * 2**20
_OVERHEAD = 2_000
"""About what a client takes beside its credits, for the first hundred rounds."""


@dataclass(slots=True, eq=False)
class Known:
    """One client, as far as it was read."""

    history: History
    credits: Credits | None = None
    run: int = 0
    heard: int = 0
    weight: int = field(default=_OVERHEAD)

    async def credits_for(
        self,
        runtime: "Runtime",
        recommender: VotersRecommender,
        ballots: BallotCache,
        so_far: RunSoFar,
    ) -> Credits:
        """Return the voters' credits after all answers of the run that have a word."""
        while True:
            if self.credits is None or self.run != so_far.number:
                voting = recommender.run.voting
                self.credits = Credits(diversity=voting.diversity, radius=voting.radius)
                self.run, self.heard = so_far.number, 0
            credits = self.credits
            for one in so_far.answers[self.heard :]:
                if one.word is Word.PENDING:
                    return credits
                votes = await ballots.of(runtime, recommender, one.round)
                if self.credits is not credits:
                    break  # votes were taken back meanwhile: begin again
                credits.hear(ballots=votes, chosen=one.chosen, liked=one.word is Word.LIKED)
                self.heard += 1
                if self.heard % _BREATH == 0:
                    # A long replay over votes in memory would keep other requests waiting.
                    await asyncio.sleep(0)
            if self.credits is credits:
                return credits

    def forget_credits(self) -> None:
        """Begin the replay anew at the next question."""
        self.credits, self.run, self.heard = None, 0, 0


class ClientCache:
    """Clients by their digests; the longest unused are forgotten first."""

    def __init__(self, most_bytes: int = MOST_CREDIT_BYTES) -> None:
        self._most = most_bytes
        self._held: OrderedDict[bytes, Known] = OrderedDict()
        self._bytes = 0

    def get(self, who: bytes) -> Known | None:
        """Return what is remembered of a client."""
        known = self._held.get(who)
        if known is not None:
            self._held.move_to_end(who)
        return known

    def put(self, who: bytes, known: Known) -> None:
        """Remember a client, and forget others if that is too much."""
        before = self._held.pop(who, None)
        if before is not None:
            self._bytes -= before.weight
        held = 0 if known.credits is None else known.credits.held_bytes
        known.weight = _OVERHEAD + held + 100 * len(known.history.records)
        self._held[who] = known
        self._bytes += known.weight
        while self._bytes > self._most and len(self._held) > 1:
            _, dropped = self._held.popitem(last=False)
            self._bytes -= dropped.weight

    def drop(self, who: bytes) -> None:
        """Forget a client."""
        dropped = self._held.pop(who, None)
        if dropped is not None:
            self._bytes -= dropped.weight

    def forget_credits(self) -> None:
        """Forget every credit: votes were taken back."""
        for who, known in list(self._held.items()):
            known.forget_credits()
            self.put(who, known)

    def clear(self) -> None:
        """Forget everybody."""
        self._held.clear()
        self._bytes = 0


async def read_history(
    runtime: "Runtime", recommender: VotersRecommender, who: bytes, known: Known | None
) -> Known | None:
    """Return the client as the store has it now, going on from what is known; None if nowhere."""
    page = recommender.history(who)
    if known is not None:
        position = known.history.settled
        mark = runtime.store.read_page(page=page, start=0, end=MARK_BYTES)
        rest = runtime.store.read_page(page=page, start=History.offset_of(position))
        found, content = await mark, await rest
        if found == known.history.mark:
            known.history.take(content, position=position)
            return known
    content = await runtime.store.read_page(page=page)
    if len(content) < MARK_BYTES:
        return None
    history = History(content[:MARK_BYTES])
    history.take(content[MARK_BYTES:], position=0)
    return Known(history)
