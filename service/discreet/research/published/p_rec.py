"""Voters' weights, as published: p-REC and p-REC_sim, line by line, for comparison.

After S. Gilbert, X. Liu, H. Yu: On Differentially Private Online Collaborative Recommendation
Systems. ICISC 2015, algorithms 1 and 2. Symbols as in `discreet.families.p_rec.model`.

Guarantee card
- Who is protected: a voter against the client of one run, for neighbours that differ by a voter.
- Mechanism: `TruncatedExponential` on the surviving votes, in every round.
- Cost of a run: 36 m^2 (2D+2R+1) ln(T/(R+1)) / P, for p-REC_sim 18 m^2 ln(T) / P
  (`VotingParameters.published_epsilon`), **if** at least P voters are the client's peers,
  whatever the client likes.
- Where that fails: nothing in the algorithm sees to it. A client who likes and dislikes at random
  has no peers; survivors then dwindle to one, whose next vote decides the answer with a chance
  near 1, where the bound says that it hardly matters. So this reading is not served.
"""

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.families.p_rec.credits import SILENT, Ballots
from discreet.families.p_rec.run_parameters import VotingParameters
from discreet.privacy.draw import draw_below
from discreet.privacy.noise import NoiseSource


class PublishedVotersRun:
    """One client's run of algorithm 2; with D = R = 0 it is algorithm 1, p-REC_sim."""

    def __init__(self, *, voting: VotingParameters, voters: int, noise: NoiseSource) -> None:
        self._voting = voting
        self._noise = noise
        self._rule = voting.rule(1)  # gamma, lambda and rho
        self._diversity_credit = np.full(voters, 2 * voting.diversity, dtype=np.int64)
        self._radius_credit = np.full(voters, 2 * voting.radius + 1, dtype=np.int64)
        self._weight = np.ones(voters, dtype=np.bool_)

    def recommend(self, ballots: Ballots) -> int:
        """Procedure RecommendByWeight."""
        votes = self.surviving_votes(ballots)
        if not votes.any():
            # The paper presumes survivors; without any, x_j is 0/0.
            return draw_below(self._voting.objects, self._noise)
        return self._rule.choose(votes=votes, noise=self._noise).value

    def update(self, ballots: Ballots, *, chosen: int, liked: bool) -> None:
        """Procedure UpdateCreditAndWeight."""
        voted = ballots == chosen + 1
        if liked:
            self._diversity_credit -= ~voted
        else:
            self._radius_credit -= voted
        self._weight = (self._radius_credit > 0) & (
            self._diversity_credit + self._radius_credit > 0
        )

    def surviving_votes(self, ballots: Ballots) -> npt.NDArray[np.int64]:
        """Return how many surviving voters voted for each object."""
        if len(ballots) != len(self._weight) or (ballots == SILENT).any():
            raise InvalidArgument("ballots", "must hold a vote of every voter")
        return np.bincount(ballots[self._weight], minlength=self._voting.objects + 1)[1:]

    @property
    def counting(self) -> npt.NDArray[np.bool_]:
        """Which voters count."""
        return self._weight
