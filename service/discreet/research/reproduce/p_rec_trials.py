"""One client's run of p-REC, and exactly what its answers tell about every voter.

Two worlds that differ by one voter differ in his own vote alone, for as long as he counts; all
others' credits follow from the answers. So the loss of a run, ln P(answers) - ln P'(answers), is a
sum over its rounds that needs no second run, and there are only as many different terms in a round
as it has objects. `worst_epsilon` is the largest loss of *any* run, whatever is voted, drawn, liked
and disliked; it can be found where a voter has one credit.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from discreet.audit.families.p_rec import spreads
from discreet.families.p_rec.voting import Run
from discreet.families.p_rec.credits import Ballots
from discreet.research.published.p_rec import PublishedRun
from discreet.families.p_rec.run_parameters import Terms, Voting
from discreet.research.worlds.electorates import Electorate, MadeUp, Mask, Pattern
from discreet.research.noise import SeededNoise

Reading = Literal["published", "served"]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Played:
    """How often the client disliked what he got, and the most that his answers tell of anybody."""

    lost: int
    told: float
    ended: bool
    curve: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One choice of parameters; `terms` are those of the served reading."""

    reading: Reading
    voting: Voting
    peers: int
    voters: int
    terms: Terms | None = None

    @property
    def epsilon_bound(self) -> float:
        """What a run is said to cost at most."""
        if self.terms is None:
            return self.voting.published_epsilon(self.peers)
        return self.terms.event.epsilon

    @property
    def loss_bound(self) -> float:
        """How many disliked objects are expected at most."""
        if self.terms is None:
            return self.voting.loss_bound(peers=self.peers, voters=self.voters)
        return self.terms.loss_bound


@dataclass(frozen=True, slots=True)
class VoterTrial:
    """A case, with a pattern of voting and a seed."""

    case: Case
    pattern: Pattern
    seed: int

    @property
    def rounds(self) -> int:
        """How long it is."""
        return self.case.voting.rounds

    def run(self) -> Played:
        """Play it."""
        case = self.case
        electorate = MadeUp(
            voting=case.voting,
            peers=case.peers,
            voters=case.voters,
            pattern=self.pattern,
            seed=self.seed,
        )
        return play(case, electorate, seed=self.seed)


def play(case: Case, electorate: Electorate, *, seed: int) -> Played:
    """Play one run to its end."""
    noise = SeededNoise(seed)
    run: Run | PublishedRun
    if case.terms is None:
        run = PublishedRun(voting=case.voting, voters=case.voters, noise=noise)
    else:
        run = Run(terms=case.terms, noise=noise)
    told = np.zeros(case.voters)
    lost, curve = 0, []
    ended = False
    for _ in range(case.voting.rounds):
        counting = padded(run.counting, case.voters)
        asked = electorate.next_round(counting)
        chosen = run.recommend(asked.ballots)
        ended = isinstance(run, Run) and run.ended
        if not ended:
            told += losses(case.voting, asked.ballots, counting, chosen)
        liked = chosen in asked.liked
        run.hear(asked.ballots, chosen=chosen, liked=liked)
        lost += not liked
        curve.append(lost)
    test = 0.0 if case.terms is None else case.terms.test_epsilon
    return Played(lost, float(np.abs(told).max()) + test, ended, tuple(curve))


def padded(counting: Mask, voters: int) -> Mask:
    """Return who counts, those not heard of yet included."""
    whole = np.ones(voters, dtype=np.bool_)
    whole[: len(counting)] = counting
    return whole


def losses(voting: Voting, ballots: Ballots, counting: Mask, chosen: int) -> Floats:
    """Return for every voter how much likelier he makes what was drawn, as a logarithm."""
    votes = np.bincount(ballots * counting, minlength=voting.objects + 1)[1:]
    by_vote = np.zeros(voting.objects + 1)
    voted = np.flatnonzero(votes)
    if len(voted):
        # Without the last voter there is nobody to draw by: `log_chances` says chance.
        worlds = np.vstack([votes, votes - np.eye(voting.objects, dtype=np.int64)[voted]])
        chances = log_chances(voting, worlds)[:, chosen]
        by_vote[voted + 1] = chances[0] - chances[1:]
    taken: Floats = by_vote[ballots * counting]
    return taken


def log_chances(voting: Voting, votes: npt.NDArray[np.int64]) -> Floats:
    """Return the logarithm of every object's chance, for many rounds at once, one a row.

    The formula of `discreet.privacy.truncated`, in double precision.
    """
    total = votes.sum(axis=1, keepdims=True)
    steep, half = voting.sharpness, 1 / (2 * voting.objects)
    excess = np.exp(steep * (votes / np.maximum(total, 1) - 1)) - np.exp(steep * (half - 1))
    excess[2 * voting.objects * votes <= total] = 0.0
    whole = excess.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, excess / np.where(whole > 0, whole, 1.0), 1 / voting.objects)
    gamma = voting.uniform_share
    logarithms: Floats = np.log(gamma / voting.objects + (1 - gamma) * shares)
    return logarithms


@lru_cache(maxsize=256)
def worst_epsilon(voting: Voting, *, least: int, voters: int) -> float:
    """Return the largest loss of any run with at least `least` votes that count in every round.

    As `claims_voters.worst_run`, with logarithms in double precision.
    """
    best = np.zeros((voters + 1, 2))
    for left in range(least, voters + 1):
        stays, rises = _steps(voting, left)
        # A round that takes nobody's credit leaks nothing.
        after = best[np.minimum(stays, left - 1)]
        best[left] = best[left - 1]
        if len(stays):
            best[left, 0] = max(best[left, 0], (rises + after[:, 0]).max())
            best[left, 1] = max(best[left, 1], (after[:, 1] - rises).max())
    return float(best[voters].max())


@lru_cache(maxsize=4096)
def _steps(voting: Voting, votes: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return all rounds of so many votes, ours among them: who stays if ours does, and the loss."""
    counts = np.array(list(spreads(votes, voting.objects)), dtype=np.int64)
    there = log_chances(voting, counts)
    stays, rises = [], []
    for mine in range(voting.objects):
        voted = counts[:, mine] > 0
        less = counts[voted]
        less[:, mine] -= 1
        loss = there[voted] - log_chances(voting, less)
        for drawn in range(voting.objects):
            kept = counts[voted, drawn]
            stays.append(kept if mine == drawn else votes - kept)
            rises.append(loss[:, drawn])
    every, losses_ = np.concatenate(stays), np.concatenate(rises)
    # Rounding makes a little something of losses that are exactly nothing.
    leaks = np.abs(losses_) > 1e-12
    return every[leaks], losses_[leaks]
