"""What one worker holds in memory for one recommender. Losing it costs time and nothing else."""

import asyncio
from weakref import WeakValueDictionary

from discreet.families.p_rec.ballots import BallotCache
from discreet.families.p_rec.clients import ClientCache
from discreet.families.p_rec.rounds import RoundBook


class Desk:
    """Rounds, votes and clients, and whose turn it is."""

    def __init__(self) -> None:
        self.rounds = RoundBook()
        self.ballots = BallotCache()
        self.clients = ClientCache()
        self._erasures = 0
        self._turns: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()

    def turn(self, who: bytes) -> asyncio.Lock:
        """Return the lock under which this worker answers a client, one question at a time."""
        lock = self._turns.get(who)
        if lock is None:
            lock = self._turns[who] = asyncio.Lock()
        return lock

    def notice_erasures(self, count: int) -> None:
        """Forget votes and credits if any votes were taken back since the last look."""
        if count != self._erasures:
            self._erasures = count
            self.ballots.clear()
            self.clients.forget_credits()
