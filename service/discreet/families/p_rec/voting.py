"""Voters' weights, as served: p-REC with the promise about the voters tested, not trusted.

After S. Gilbert, X. Liu, H. Yu: On Differentially Private Online Collaborative Recommendation
Systems. ICISC 2015. Each round brings m new objects; voters vote for one each; a client is shown
one object and likes it or not; voters who contradict the client lose credit, and count no more when
it is gone. The draw and the credits are the paper's (`discreet.privacy.truncated`,
`voters_credits`; `voters_published` is the paper's whole algorithm). Its privacy presumes that at
least P voters never lose their credit, which is a promise about people nobody knows. Here a noisy
test decides, before each round, whether enough of them are left; if not, the run goes on without
votes.

| paper's symbol | name here | range |
|---|---|---|
| m | `objects` | 2 .. 200 |
| T | `rounds` | (2m+1)(R+1)/3 and more, so that gamma <= 1/2 |
| R, D | `radius`, `diversity` | >= 0 |
| P | `peers` | >= 6m |
| n | `voters`, the most that are let in | >= P |
| gamma, lambda, rho | `uniform_share`, `sharpness`, 1/(2m) | m/(3T/(R+1)-1), 2m ln(T/(R+1)) |
| credit^(R), credit^(D) | `Credits` | 2R+1, 2D |
| s = 2D+2R+1 | `Voting.credit` | |
| w | `Terms.survivors` + 1 | >= 2 |
| C_t, V_t | credit of all who count; of those among them who voted in the round | |

Guarantee card
- Who is protected: a voter, with all his votes, against the client of a run, who may be anybody,
  know everybody else's votes, and like and dislike whatever tells him most.
- Neighbouring inputs: the voter is there, with all the votes he ever casts, or is not there at all.
  (Changing all votes of a voter is two such steps.) A round's votes are fixed before its first
  answer; later votes of others may depend on earlier answers.
- Mechanism: AboveThreshold on V_t, then `TruncatedExponential` on the votes of those who count.
- Sensitivity: V_t differs by at most s, upwards for all rounds or downwards for all.
- Cost of a run, however many rounds it has: `Terms.event`, (epsilon, delta) or rho and delta,
  charged once, before the first answer.
- Assumptions: noise from the operating system; the caller gives each answer once, and hears the
  client's word on it (or takes his silence for dislike) before the next; fewer than `voters` voters
  come: once the roster is full, one voter's place is another's refusal, and a request that holds a
  refused vote is refused whole. Not covered: that; what the *client* likes; who reads the store;
  how long an answer takes.

Proof. Fix two neighbouring inputs, U with the voter and U' without, and one sequence of answers b
with the client's words on them. Everybody else's credits depend on b alone, so they are the same.

Erasure. A voter who is erased is silent in all rounds from then on, closed ones too, and never
votes again. If it is ours, the inputs are equal from there on. If it is another, it is the same in
both; C is then the credit of those who were not erased, which an erasure can only make smaller, so
that (2) and (3) stand.

(1) One draw. Let a be the number of voters in U who count and vote in this round, ours among them
(otherwise nothing differs). Its loss is at most K lambda ln(1 + 1/(a-1)) (`truncated`). The loss is
not 0 only if the drawn object has more than a share 1/(2m) in U or in U'. With c of the a votes in
U, its share is c/a in U, and c/(a-1) or (c-1)/(a-1) in U'; in either case 2mc >= a.

(2) A leak takes credit. If the object is disliked, its c >= a/(2m) voters lose one each. If it is
liked, some other object's chance differs too, for chances sum to 1; by (1) that one has at least
a/(2m) votes, and its voters lose one each. The silent among those who count, at least
(C - V)/s of them, lose one each in any case. Put c = C/s and v = V/s, so that a >= v: one leak
makes c smaller by at least (v/(2m) + c - v)/s, and loses at most K lambda/(v-1).

(3) All leaks. Suppose V >= w s in every round that uses votes, that is w <= v <= c. Then loss per
c taken, K lambda s / ((v-1)(c - v(1-1/(2m)))), is largest at an end, because the denominator is
concave in v: at v = c it is 2m K lambda s/(c(c-1)), at v = w it is K lambda s/((w-1)(c-w+w/(2m))).
They are equal at c = w and at c = (2m-1)(w-1); in between the first is larger, beyond the second.
Both fall as c grows, so each leak but the last loses at most the integral over the c it takes, and
all of them together at most the integral from w to n (`_integral`). The last loses at most
K lambda ln(1+1/(w-1)). The sum is `votes_epsilon`, for any number of rounds.

(4) The squares, for zCDP. Let L be the set of objects whose chance differs in a round. The others
have the same chance in U and U', so L has too, and given L the draw is e-DP with the e of its
round; hence for each order alpha the expectation of exp((alpha-1) loss - alpha (alpha-1) e^2/2
[drawn from L]) is at most 1, and by induction that of the whole run is. The sum of e^2 over draws
from L is at most the largest e times (3)'s bound on their sum. So the draws have the moments of
rho = draw_epsilon * votes_epsilon / 2.

(5) The test. Round t uses votes while V_t + X_t >= threshold + Y, X_t and Y discrete Laplace of
`scale`, Y once a run; the first round that fails ends it. V_t is larger in U by 0 to s. From U to
U', shift Y down by s: every passed test passes still, the failed one shifts by at most s, so the
chances change by a factor of at most exp(2 s/scale); from U' to U, no shift of Y is needed. Given b
the test's chances multiply those of the draws, so the losses add; for moments, AboveThreshold is
(2s/scale)^2/2-zCDP and composes with the draws concurrently (Vadhan and Zhang, STOC 2023).

(6) The failure. Let E be: in the first round in which V_t would be below w s in U', the test
passes. Then V_t < w s + s in U, so X_t - Y >= margin; X_t is fresh and Y has its own law, so E has
probability at most P(X - Y >= margin) <= `delta`, in U and in U'. Outside E every round that uses
votes has V >= w s in both, as (3) supposes. (The hard stop below `floor` acts only within E.) So
P(S) <= exp(epsilon) P'(S) + delta and the reverse, and likewise with moments.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.families.p_rec.credits import Ballots, Credits
from discreet.families.p_rec.run_parameters import Terms
from discreet.privacy.draw import draw_below
from discreet.privacy.noise import NoiseSource


@dataclass(frozen=True, slots=True)
class Answer:
    """The object drawn, by its place, and whether votes had a part in it."""

    chosen: int
    counted: bool


def begin(*, terms: Terms, noise: NoiseSource) -> int:
    """Return the noise of a new run's threshold. It is secret: whoever knows it sees the test."""
    return int(noise.discrete_laplace(scale=terms.scale, size=1)[0])


def answer(
    *, terms: Terms, credits: Credits, offset: int, ballots: Ballots, noise: NoiseSource
) -> Answer:
    """Draw one object of a round, by the votes if the test allows; if not, the run has ended.

    The caller keeps the answer before showing it, and after an answer that was not counted asks
    `draw_without_votes` for the rest of the run.
    """
    objects = terms.voting.objects
    standing = credits.standing(ballots=ballots, objects=objects)
    tested = standing.credit + int(noise.discrete_laplace(scale=terms.scale, size=1)[0])
    if tested < terms.threshold + offset or standing.credit < terms.floor:
        return draw_without_votes(terms=terms, noise=noise)
    rule = terms.voting.rule(terms.survivors)
    return Answer(rule.choose(votes=standing.votes, noise=noise).value, counted=True)


def draw_without_votes(*, terms: Terms, noise: NoiseSource) -> Answer:
    """Draw one object by chance alone: it tells nothing about anybody."""
    return Answer(draw_below(terms.voting.objects, noise), counted=False)


class Run:
    """One client's run in memory, as a simulation plays it."""

    def __init__(self, *, terms: Terms, noise: NoiseSource) -> None:
        self._terms = terms
        self._noise = noise
        self._offset = begin(terms=terms, noise=noise)
        self._credits = Credits(diversity=terms.voting.diversity, radius=terms.voting.radius)
        self.ended = False

    def recommend(self, ballots: Ballots) -> int:
        """Return the place of one object."""
        if self.ended:
            return draw_without_votes(terms=self._terms, noise=self._noise).chosen
        drawn = answer(
            terms=self._terms,
            credits=self._credits,
            offset=self._offset,
            ballots=ballots,
            noise=self._noise,
        )
        self.ended = not drawn.counted
        return drawn.chosen

    def hear(self, ballots: Ballots, *, chosen: int, liked: bool) -> None:
        """Take the client's word on what he was shown."""
        self._credits.hear(ballots=ballots, chosen=chosen, liked=liked)

    @property
    def counting(self) -> npt.NDArray[np.bool_]:
        """Which voters count."""
        return self._credits.counting
