"""Voters and clients for p-REC: peers as the paper presumes them, and others that are not.

The first `peers` voters agree with the client except for what the radius and the diversity allow.
The others follow a pattern:

- scattered: each votes for any object, by chance;
- halving: each votes by the digits of the voter's number, so that every liked or disliked object
  takes the same part of them (the pattern of the paper's lower bound);
- united: all vote for one object that the client dislikes;
- adaptive: those who still count divide evenly among the objects that the client dislikes, so that
  each dislike takes as few of them as can be. It looks at the run so far.
"""

from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from discreet.families.p_rec.credits import Ballots
from discreet.families.p_rec.run_parameters import VotingParameters
from discreet.research.worlds.environments import seeded

Pattern = Literal["scattered", "halving", "united", "adaptive"]
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class VotingRound:
    """One round: everybody's vote, and the objects that the client likes, by place."""

    ballots: Ballots
    liked: frozenset[int]


class Electorate(Protocol):
    """Gives, round after round, the votes and what the client likes."""

    def next_round(self, counting: Mask) -> VotingRound:
        """Return the next round; `counting` says who still counts, and may be short."""
        ...


@dataclass(slots=True, eq=False)
class SyntheticElectorate:
    """An electorate of a pattern, with exactly so many peers."""

    voting: VotingParameters
    peers: int
    voters: int
    pattern: Pattern
    seed: int
    _at: int = field(init=False, default=0)
    _rng: np.random.Generator = field(init=False)
    _mistaken: frozenset[int] = field(init=False)
    _diverse: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        self._rng = seeded("electorate", self.seed)
        order = self._rng.permutation(self.voting.rounds).tolist()
        self._mistaken = frozenset(order[: self.voting.radius])
        self._diverse = frozenset(order[self.voting.radius :][: self.voting.diversity])

    def next_round(self, counting: Mask) -> VotingRound:
        """Return the next round."""
        objects = self.voting.objects
        order = self._rng.permutation(objects)
        wanted, unwanted = int(order[0]), order[1:]
        liked = {wanted}
        votes = np.full(self.peers, wanted)
        if self._at in self._mistaken:
            votes[:] = unwanted[-1]
        elif self._at in self._diverse and objects > 2:
            liked.add(int(unwanted[0]))
            unwanted = unwanted[1:]
            votes[::2] = order[1]
        others = self._others(unwanted, counting)
        self._at += 1
        return VotingRound(
            np.concatenate([votes, others]).astype(np.uint8) + np.uint8(1), frozenset(liked)
        )

    def _others(self, unwanted: npt.NDArray[np.intp], counting: Mask) -> npt.NDArray[np.intp]:
        count, objects = self.voters - self.peers, self.voting.objects
        if self.pattern == "united":
            return np.full(count, unwanted[0])
        if self.pattern == "halving":
            digits = max(1, int(np.ceil(np.log(max(count, 2)) / np.log(objects))))
            shift: int = objects ** (self._at % digits)
            return np.mod(np.arange(count) // shift, objects)
        if self.pattern == "scattered":
            return self._rng.integers(0, objects, count)
        alive = np.ones(count, dtype=np.bool_)
        alive[: len(counting[self.peers :])] = counting[self.peers :]
        votes = np.full(count, unwanted[0])
        votes[alive] = unwanted[np.arange(int(alive.sum())) % len(unwanted)]
        return votes
