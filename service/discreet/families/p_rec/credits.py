"""How much each voter still counts with one client: two credits a voter, two small integers.

Algorithm 2, procedure UpdateCreditAndWeight. A voter starts with 2D of D-credit and 2R+1 of
R-credit, and counts while the R-credit and the sum of both are above 0. Kept are the R-credit and
the sum, a byte each where they fit; a voter who has stopped counting has the sum 0 for ever.

Two rules are ours. A voter who is silent in a round that the client answered loses one of the
sum. The paper has everybody vote in every round. Where that is not so, silent voters must not keep
credit for nothing: the proof in `model` needs each round that can leak to take its share of all
credit there is. For the same reason one like counts where several objects were shown: the first.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument

Ballots = npt.NDArray[np.uint8]
"""One byte for each voter, by number: 0 is silence, k a vote for the object at k - 1."""

Counts = npt.NDArray[np.int64]

SILENT = 0
MOST_OBJECTS = 200
MOST_CREDIT = 65_535

_Credit = npt.NDArray[np.unsignedinteger]


class VoteTally(NamedTuple):
    """A round as one client sees it: the votes of those who count, and their credit in all."""

    votes: Counts
    credit: int


class Credits:
    """The credits of all voters with one client. Voters not met so far have been silent."""

    def __init__(self, *, diversity: int, radius: int) -> None:
        full = 2 * diversity + 2 * radius + 1
        if diversity < 0 or radius < 0:
            raise InvalidArgument("diversity", "and radius must not be negative")
        if full > MOST_CREDIT:
            raise InvalidArgument("diversity", f"2D + 2R + 1 must be at most {MOST_CREDIT}")
        kind = np.dtype(np.uint8 if full < 256 else np.uint16)
        self._full = full
        self._full_radius = 2 * radius + 1
        self._answered = 0
        self._sum: _Credit = np.zeros(0, dtype=kind)
        self._radius: _Credit = np.zeros(0, dtype=kind)

    def copy(self) -> "Credits":
        """Return the same credits, to be updated by themselves."""
        twin = Credits.__new__(Credits)
        twin.__dict__.update(self.__dict__, _sum=self._sum.copy(), _radius=self._radius.copy())
        return twin

    @property
    def answered(self) -> int:
        """How many rounds the client has given an opinion on."""
        return self._answered

    @property
    def held_bytes(self) -> int:
        """How much memory this takes."""
        return self._sum.nbytes + self._radius.nbytes

    @property
    def counting(self) -> npt.NDArray[np.bool_]:
        """Which of the voters met so far still count."""
        counting: npt.NDArray[np.bool_] = self._sum != 0
        return counting

    def tally(self, *, ballots: Ballots, objects: int) -> VoteTally:
        """Count the votes of those who count, and add up their credit.

        The same operations are done whatever the ballots and credits are.
        """
        self._reach(len(ballots))
        voting = self._sum[: len(ballots)]
        counted = np.bincount(ballots * (voting != 0), minlength=objects + 1)
        if len(counted) > objects + 1:
            raise InvalidArgument("ballots", "must name objects of the round")
        votes = counted[1:]
        # Where nobody has more than one, votes are credit.
        worth = votes if self._full == 1 else voting * (ballots != SILENT)
        return VoteTally(votes, int(np.add.reduce(worth, dtype=np.int64)))

    def update(
        self, *, ballots: Ballots, liked: int | None = None, disliked: Sequence[int] = ()
    ) -> None:
        """Take credit from those who contradicted the client, and from the silent.

        `liked` and `disliked` are places of objects that were shown. Whoever voted for what was
        disliked loses one of both credits; if something was liked, whoever voted for anything else
        loses one of the sum. Nobody loses more than one in a round.
        """
        self._reach(len(ballots))
        self._answered += 1
        voting, rest = self._sum[: len(ballots)], self._sum[len(ballots) :]
        keeps = ballots != SILENT if liked is None else ballots == liked + 1
        if disliked:
            spared = _spared(ballots, disliked)
            keeps &= spared
        if self._full == 1:
            # Whoever loses one has nothing left, of either credit.
            voting *= keeps
            rest[:] = 0
            return
        voting -= np.minimum(voting, ~keeps)
        if disliked:
            radius = self._radius[: len(ballots)]
            radius -= np.minimum(radius, ~spared)
            voting *= radius != 0
        rest -= np.minimum(rest, 1)

    def _reach(self, voters: int) -> None:
        """Make room for voters who were silent so far."""
        missing = voters - len(self._sum)
        if missing > 0:
            left = max(self._full - self._answered, 0)
            kind = self._sum.dtype
            self._sum = np.concatenate([self._sum, np.full(missing, left, dtype=kind)])
            self._radius = np.concatenate(
                [self._radius, np.full(missing, self._full_radius, dtype=kind)]
            )


def _spared(ballots: Ballots, disliked: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Tell which ballots are for none of these objects."""
    if len(disliked) == 1:
        others: npt.NDArray[np.bool_] = ballots != disliked[0] + 1
        return others
    spared = np.ones(256, dtype=np.bool_)
    spared[[place + 1 for place in disliked]] = False
    found: npt.NDArray[np.bool_] = spared[ballots]
    return found
