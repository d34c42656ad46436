"""One client's run of p-REC, and exactly what its answers reveal about every voter.

Two worlds that differ by one voter differ in that voter's own votes alone, for as long as the voter
counts; all others' credits follow from the answers. So the loss of a run, ln P(answers) - ln
P'(answers), is a sum over its rounds that needs no second run, and there are only as many different
terms in a round as it has objects. `worst_epsilon` is the largest loss of *any* run, whatever is
voted, drawn, liked and disliked; it can be found where a voter has one credit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from discreet.families.p_rec.credits import Ballots, Credits
from discreet.families.p_rec.model import RoundQuestion, RunView, begin_runs, draw
from discreet.families.p_rec.run_parameters import RunParameters, VotingParameters
from discreet.privacy.noise import NoiseSource
from discreet.research.noise import SeededNoise
from discreet.research.published.p_rec import PublishedVotersRun
from discreet.research.worlds.electorates import Electorate, Mask, Pattern, SyntheticElectorate

Reading = Literal["published", "served"]
Floats = npt.NDArray[np.float64]


class ServedVotersRun:
    """One client's run as served, in memory: the same answers as the shipped decisions give.

    That is a test; the decisions themselves would take hours for as many votes.
    """

    def __init__(self, *, parameters: RunParameters, noise: NoiseSource) -> None:
        voting = parameters.voting
        self._parameters = parameters
        self._noise = noise
        self._offset = begin_runs(parameters, 1, noise)[0]
        self._credits = Credits(diversity=voting.diversity, radius=voting.radius)
        self.ended = False

    def recommend(self, ballots: Ballots) -> int:
        """Return the place of one object."""
        view = None
        if not self.ended:
            tally = self._credits.tally(ballots=ballots, objects=self._parameters.voting.objects)
            view = RunView(tally, self._offset)
        question = RoundQuestion(self._parameters.voting.objects, view)
        (drawn,) = draw(self._parameters, [question], self._noise)
        self.ended = not drawn.used_votes
        return drawn.chosen[0]

    def update(self, ballots: Ballots, *, chosen: int, liked: bool) -> None:
        """Take the client's opinion on what was shown."""
        if liked:
            self._credits.update(ballots=ballots, liked=chosen)
        else:
            self._credits.update(ballots=ballots, disliked=[chosen])

    @property
    def counting(self) -> npt.NDArray[np.bool_]:
        """Which voters count."""
        return self._credits.counting


@dataclass(frozen=True, slots=True)
class VotersRunResult:
    """How often the client disliked the answer, and the most that was revealed of any voter."""

    disliked: int
    revealed: float
    ended: bool
    curve: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class VotersCase:
    """One choice of parameters; `run` are those of the served reading."""

    reading: Reading
    voting: VotingParameters
    peers: int
    voters: int
    run: RunParameters | None = None

    @property
    def epsilon_bound(self) -> float:
        """The bound on what a run costs."""
        if self.run is None:
            return self.voting.published_epsilon(self.peers)
        return self.run.event.epsilon

    @property
    def loss_bound(self) -> float:
        """How many disliked objects are expected at most."""
        if self.run is None:
            return self.voting.loss_bound(peers=self.peers, voters=self.voters)
        return self.run.loss_bound


@dataclass(frozen=True, slots=True)
class VotersTrial:
    """A case, with a pattern of voting and a seed."""

    case: VotersCase
    pattern: Pattern
    seed: int

    @property
    def rounds(self) -> int:
        """How long it is."""
        return self.case.voting.rounds

    @property
    def label(self) -> str:
        """Return what to show while it runs."""
        return f"{self.case.reading}, {self.pattern}, seed {self.seed}"

    def run(self) -> VotersRunResult:
        """Play it."""
        case = self.case
        electorate = SyntheticElectorate(
            voting=case.voting,
            peers=case.peers,
            voters=case.voters,
            pattern=self.pattern,
            seed=self.seed,
        )
        return play(case, electorate, seed=self.seed)


def play(case: VotersCase, electorate: Electorate, *, seed: int) -> VotersRunResult:
    """Play one run to its end."""
    noise = SeededNoise(seed)
    run: ServedVotersRun | PublishedVotersRun
    if case.run is None:
        run = PublishedVotersRun(voting=case.voting, voters=case.voters, noise=noise)
    else:
        run = ServedVotersRun(parameters=case.run, noise=noise)
    revealed = np.zeros(case.voters)
    disliked, curve = 0, []
    ended = False
    for _ in range(case.voting.rounds):
        counting = padded(run.counting, case.voters)
        asked = electorate.next_round(counting)
        chosen = run.recommend(asked.ballots)
        ended = isinstance(run, ServedVotersRun) and run.ended
        if not ended:
            revealed += losses(case.voting, asked.ballots, counting, chosen)
        liked = chosen in asked.liked
        run.update(asked.ballots, chosen=chosen, liked=liked)
        disliked += not liked
        curve.append(disliked)
    test = 0.0 if case.run is None else case.run.test_epsilon
    return VotersRunResult(disliked, float(np.abs(revealed).max()) + test, ended, tuple(curve))


def padded(counting: Mask, voters: int) -> Mask:
    """Return who counts, including voters not met yet."""
    whole = np.ones(voters, dtype=np.bool_)
    whole[: len(counting)] = counting
    return whole


def losses(voting: VotingParameters, ballots: Ballots, counting: Mask, chosen: int) -> Floats:
    """Return for every voter how much likelier that voter makes what was drawn, in logarithms."""
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


def log_chances(voting: VotingParameters, votes: npt.NDArray[np.int64]) -> Floats:
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
def worst_epsilon(voting: VotingParameters, *, least: int, voters: int) -> float:
    """Return the largest loss of any run with at least `least` votes that count in every round.

    It is found from few voters to many: what a round leaks, and the worst that can follow it.
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
def _steps(voting: VotingParameters, votes: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return all rounds of so many votes, ours among them: who stays if ours does, and the loss."""
    counts = np.array(list(vote_counts(votes, voting.objects)), dtype=np.int64)
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


def vote_counts(votes: int, objects: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to divide votes among objects, up to the objects' order."""
    if objects == 1:
        yield (votes,)
        return
    for first in range(votes, -1, -1):
        for rest in vote_counts(votes - first, objects - 1):
            if rest[0] <= first:
                yield (first, *rest)
