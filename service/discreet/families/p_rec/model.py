"""One answer from a round's votes, as served, and the proof of what a run of answers reveals.

After S. Gilbert, X. Liu, H. Yu: On Differentially Private Online Collaborative Recommendation
Systems. ICISC 2015. Each round brings m new objects; voters vote for one each; a client is shown
one object and likes it or not; voters who contradict the client lose credit, and count no more when
it is gone. The draw and the credits are the paper's (`discreet.privacy.truncated`, `credits`;
`discreet.research.published.p_rec` is the paper's whole algorithm). Its privacy presumes that at
least P voters never lose their credit, which is a promise about people nobody knows. Here a noisy
test decides, before each round, whether enough of them are left; if not, the run goes on without
votes. In the paper every round has m objects and one is shown; here a round has from 2 to m, and
up to k of them are shown, all different.

| paper's symbol | name here | range |
|---|---|---|
| m | `objects`, the most of a round | 2 .. 200 |
| (1) | `shown`, k: the most that an answer shows | 1 .. m |
| T | `rounds` | (2m+1)(R+1)/3 and more, so that gamma <= 1/2 |
| R, D | `radius`, `diversity` | >= 0 |
| P | `peers` | >= 6m |
| n | `voters`, the most that are let in | >= P |
| gamma, lambda, rho | `uniform_share`, `sharpness`, 1/(2m) | m/(3T/(R+1)-1), 2m ln(T/(R+1)) |
| credit^(R), credit^(D) | `Credits` | 2R+1, 2D |
| s = 2D+2R+1 | `VotingParameters.credit` | |
| w | `RunParameters.survivors` + 1 | >= 2 |
| C_t, V_t | credit of all who count; of those among them who voted in the round | |

Statement. U and U' are two worlds that differ in one voter, who in U is there with all the votes
that the voter ever casts, and in U' is not there at all. What a run of a client reveals, however
many rounds it has, is `RunParameters.event`: (epsilon, delta), or rho and delta. Mechanism:
AboveThreshold on V_t, whose sensitivity is s, upwards for all rounds or downwards for all; then
`TruncatedExponential` on the votes of those who count. It is presumed that a round's votes are
fixed before its first answer; that each answer is drawn once, with at most k objects, and the
client's opinions on it taken before the next, none after it; and that fewer than `voters` come.
An answer counts as one liked object, the first of its list that the client liked, and those that
were disliked; if nothing was liked, all of it was disliked, also what the client passed over.
What a recommender promises by it is in `guarantee`.

Proof. Fix one sequence of answers b with the client's opinions on them. Everybody else's credits
depend on b alone, so they are the same in U and U'.

Erasure. A voter who is erased is silent in all rounds from then on, closed ones too, and never
votes again. If it is ours, the worlds are equal from there on. If it is another, it is the same in
both; C is then the credit of those who were not erased, which an erasure can only make smaller, so
that (2) and (3) stand.

(1) One answer. Let a be the number of voters in U who count and vote in this round, ours among them
(otherwise nothing differs). Its loss is at most K lambda ln(1 + 1/(a-1)), where K stands for
the factor of `truncated`, for every list of up to k objects and every number of objects up to m.
Call an object heavy if it has more than a share 1/(2m) in U or in U'. With c of the a votes in U,
its share is c/a in U, and c/(a-1) or (c-1)/(a-1) in U'; in either case 2mc >= a. If the loss is not
0, a heavy object was shown and there is another heavy one, shown or not. For either the first
object's chance differs: then it is heavy, and some other object's chance differs too, for chances
sum to 1 and those of objects that a round lacks do not differ. Or a further object's does: then
some object shown before is heavy, and so is some object that was left.

(2) A leak takes credit. If nothing is liked, the heavy object that was shown was disliked, and its
c >= a/(2m) voters lose one each. If something is liked, it is one of the two heavy objects at
most; the voters of the other lose one each, at least a/(2m) of them. (If two likes counted, both
could be spared, for ever.) The silent among those who count, at least (C - V)/s of them, lose one
each in any case. Put c = C/s and v = V/s, so that a >= v: one leak makes c smaller by at least
(v/(2m) + c - v)/s, and loses at most K lambda/(v-1).

(3) All leaks. Suppose V >= w s in every round that uses votes, that is w <= v <= c. Then loss per
c taken, K lambda s / ((v-1)(c - v(1-1/(2m)))), is largest at an end, because the denominator is
concave in v: at v = c it is 2m K lambda s/(c(c-1)), at v = w it is K lambda s/((w-1)(c-w+w/(2m))).
They are equal at c = w and at c = (2m-1)(w-1); in between the first is larger, beyond the second.
Both fall as c grows, so each leak but the last loses at most the integral over the c it takes, and
all of them together at most the integral from w to n (`run_parameters`). The last loses at most
K lambda ln(1+1/(w-1)). The sum is `votes_epsilon`, for any number of rounds.

(4) The squares, for zCDP. Let L be the set of answers whose chance differs in a round. The others
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

(7) All clients, with feedback on. Everybody else, voters and clients, may act on all answers so
far: given these, their votes, opinions and questions are the same in U and U', which is all that
(1) to (6) use of them. When a round closes, when a run begins and what it is charged depend on
questions and on whether feedback came, never on votes. Runs draw noise of their own, so they
compose; they overlap in time, which the ledger's filters allow (`discreet.privacy.accountants`).
"""

from collections.abc import Sequence
from typing import NamedTuple

from discreet.families.p_rec.credits import VoteTally
from discreet.families.p_rec.run_parameters import RunParameters
from discreet.privacy.draw import draw_below
from discreet.privacy.noise import NoiseSource


class RunView(NamedTuple):
    """A round as one client's run sees it: the votes that count, and the threshold's noise."""

    tally: VoteTally
    offset: int


class RoundQuestion(NamedTuple):
    """What is drawn from: a round of so many objects, and how many are wanted.

    Without a view, votes are not looked at: no run was paid for, or it has ended.
    """

    objects: int
    view: RunView | None = None
    limit: int = 1


class DrawnObjects(NamedTuple):
    """The objects drawn, by their places in the round, and whether votes had a part in it."""

    chosen: tuple[int, ...]
    used_votes: bool


def begin_runs(parameters: RunParameters, many: int, noise: NoiseSource) -> list[int]:
    """Return the noise of new runs' thresholds. It is secret: whoever knows it sees the test."""
    drawn: list[int] = noise.discrete_laplace(scale=parameters.scale, size=many).tolist()
    return drawn


def draw(
    parameters: RunParameters, questions: Sequence[RoundQuestion], noise: NoiseSource
) -> list[DrawnObjects]:
    """Draw objects of each round, by the votes if the test allows; all of them if there are few.

    After an answer that did not use votes the run has ended. The caller stores an answer before
    showing it, and asks for no more objects than the run was paid for.
    """
    tested = sum(question.view is not None for question in questions)
    fresh = iter(noise.discrete_laplace(scale=parameters.scale, size=tested).tolist())
    rule = parameters.voting.rule(parameters.survivors)
    drawn = []
    for objects, view, limit in questions:
        limit = min(limit, objects)
        if view is not None and _passes(parameters, view, next(fresh)):
            chosen = rule.choose_several(votes=view.tally.votes, limit=limit, noise=noise).value
            drawn.append(DrawnObjects(chosen, True))
        else:
            left = list(range(objects))
            random = tuple([left.pop(draw_below(len(left), noise)) for _ in range(limit)])
            drawn.append(DrawnObjects(random, False))
    return drawn


def _passes(parameters: RunParameters, view: RunView, noise_now: int) -> bool:
    credit = view.tally.credit
    tested = credit + noise_now
    return tested >= parameters.threshold + view.offset and credit >= parameters.floor
