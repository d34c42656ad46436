"""What a policy would have earned, estimated from choices that another one made at random.

For row i of the log with reward r_i, let w_i = pi(a_i | x_i) / p_i: the policy's probability of
what was shown, divided by the one with which it was shown. q is any guess of rewards that was made
without row i.

    IPS      mean of w_i r_i                                   (Horvitz and Thompson 1952)
    SNIPS    sum of w_i r_i / sum of w_i                       (Swaminathan and Joachims 2015)
    DR       mean of sum_a pi(a | x_i) q(x_i, a) + w_i (r_i - q(x_i, a_i))
                                                               (Dudik, Langford and Li 2011)
    replay   mean of r_i where a policy that is played on the log answers what was shown
                                                               (Li, Chu, Langford and Wang 2011)

IPS and DR are unbiased where the policy shows only what the log could show, also for a policy that
learns as it goes: pi may depend on all rows before i. SNIPS is consistent. Replay is unbiased for a
shorter run: of as many rounds as rows counted.

Intervals are 95%, by the normal distribution, with the variance of the terms' own means (for SNIPS
and replay linearised). Rows of one client are no independent witnesses, so their terms are added up
first where the log says who came. The effective sample size is (sum w)^2 / sum w^2.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.research.worlds.environments import Floats

NORMAL_95 = 1.959964
FEWEST_EFFECTIVE = 100
"""An effective sample size below this bears no normal interval."""

Groups = npt.NDArray[np.int32] | None
"""Whose row it is; None if every row is somebody else's."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95% interval; NaN where nothing can be said."""

    mean: float
    half_width: float

    @property
    def low(self) -> float:
        """Return the interval's lower end."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Return its upper end."""
        return self.mean + self.half_width

    def as_json(self) -> dict[str, float | None]:
        """Return it for programs: JSON has no NaN."""
        return {
            name: value if math.isfinite(value) else None
            for name, value in (("mean", self.mean), ("low", self.low), ("high", self.high))
        }


@dataclass(frozen=True, slots=True, eq=False)
class PolicyTerms:
    """What the estimators are made of, a number a row.

    `weights` are w, `expected` is sum_a pi(a|x) q(x,a), `guessed` is q(x, a) of what was shown.
    """

    weights: Floats
    rewards: Floats
    expected: Floats
    guessed: Floats

    def part(self, rows: slice) -> "PolicyTerms":
        """Return some of the rows."""
        return PolicyTerms(
            self.weights[rows], self.rewards[rows], self.expected[rows], self.guessed[rows]
        )

    @property
    def robust(self) -> Floats:
        """Return every row's term of the doubly robust estimate."""
        terms: Floats = self.expected + self.weights * (self.rewards - self.guessed)
        return terms


def ips(terms: PolicyTerms, groups: Groups = None) -> Estimate:
    """Return the estimate by inverse propensities."""
    return mean_of(terms.weights * terms.rewards, groups)


def snips(terms: PolicyTerms, groups: Groups = None) -> Estimate:
    """Return the estimate by inverse propensities that are made to add up to 1."""
    weights = terms.weights
    total = float(weights.sum())
    if total <= 0:
        return Estimate(math.nan, math.nan)
    mean = float(weights @ terms.rewards) / total
    spread = _deviation(weights * (terms.rewards - mean), groups)
    return Estimate(mean, NORMAL_95 * spread / total)


def doubly_robust(terms: PolicyTerms, groups: Groups = None) -> Estimate:
    """Return the doubly robust estimate."""
    return mean_of(terms.robust, groups)


def replay(rewards: Floats, counts: npt.NDArray[np.bool_], groups: Groups = None) -> Estimate:
    """Return the mean reward of the rows that count."""
    number = int(np.count_nonzero(counts))
    if not number:
        return Estimate(math.nan, math.nan)
    mean = float(rewards[counts].mean())
    spread = _deviation((rewards - mean)[counts], None if groups is None else groups[counts])
    return Estimate(mean, NORMAL_95 * spread / number if number > 1 else math.nan)


def mean_of(terms: Floats, groups: Groups = None) -> Estimate:
    """Return the mean of terms that have the wanted mean each."""
    count = len(terms)
    mean = float(terms.mean()) if count else math.nan
    if count < 2:
        return Estimate(mean, math.nan)
    return Estimate(mean, NORMAL_95 * _deviation(terms - mean, groups) / count)


def _deviation(residuals: Floats, groups: Groups) -> float:
    """Return the standard deviation of the sum of residuals, whose mean is 0."""
    if groups is not None:
        count = len(np.unique(groups))
        residuals = np.bincount(groups, weights=residuals).astype(np.float64)
    else:
        count = len(residuals)
    if count < 2:
        return math.nan
    return math.sqrt(float(residuals @ residuals) * count / (count - 1))


def effective_sample_size(weights: Floats) -> float:
    """Return how many rows drawn by the policy itself would say as much."""
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class PolicyResult:
    """Everything that is estimated about one policy.

    `late` is the doubly robust estimate over the last quarter of the rows; `robust` its terms, by
    which policies are compared on the same rows. `counted` are the rows of the replay;
    `between_runs` is the standard error that several runs add, whose noise differs.
    """

    name: str
    ips: Estimate
    snips: Estimate
    dr: Estimate
    late: Estimate
    effective: float
    robust: Floats
    replay: Estimate | None = None
    counted: int = 0
    degraded: float = 0.0
    unlearned: float = 0.0
    between_runs: float = 0.0

    @classmethod
    def of(cls, name: str, terms: PolicyTerms, groups: Groups, **more: Any) -> "PolicyResult":
        """Return what these terms say."""
        count = len(terms.weights)
        last = slice(count - max(1, count // 4), None)
        return cls(
            name=name,
            ips=ips(terms, groups),
            snips=snips(terms, groups),
            dr=doubly_robust(terms, groups),
            late=doubly_robust(terms.part(last), None if groups is None else groups[last]),
            effective=effective_sample_size(terms.weights),
            robust=terms.robust,
            **more,
        )

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "policy": self.name,
            **{
                name: None if one is None else one.as_json()
                for name, one in (
                    ("dr", self.dr),
                    ("ips", self.ips),
                    ("snips", self.snips),
                    ("replay", self.replay),
                    ("dr_last_quarter", self.late),
                )
            },
            "effective_sample_size": round(self.effective, 1),
            "reliable": self.effective >= FEWEST_EFFECTIVE,
            "replay_rows": self.counted,
            "degraded_answers": self.degraded,
            "feedback_not_learned": self.unlearned,
        }


def difference(one: PolicyResult, other: PolicyResult, groups: Groups) -> Estimate:
    """Return how much more one earns than the other, by their terms on the same rows."""
    found = mean_of(one.robust - other.robust, groups)
    runs = math.hypot(one.between_runs, other.between_runs)
    return Estimate(found.mean, math.hypot(found.half_width, NORMAL_95 * runs))


def averaged(runs: Sequence[PolicyResult]) -> PolicyResult:
    """Return the mean of several runs on one log, which differ in what noise and draws did.

    Their rows are the same, so the mean's interval is that of one run, and wider by the spread of
    the runs' mean.
    """
    first = runs[0]
    if len(runs) == 1:
        return first

    def together(many: Sequence[Estimate]) -> Estimate:
        means = np.array([one.mean for one in many])
        half = float(np.mean([one.half_width for one in many]))
        return Estimate(float(means.mean()), math.hypot(half, NORMAL_95 * _spread(means)))

    replays = [one.replay for one in runs if one.replay is not None]
    return replace(
        first,
        ips=together([one.ips for one in runs]),
        snips=together([one.snips for one in runs]),
        dr=together([one.dr for one in runs]),
        late=together([one.late for one in runs]),
        effective=float(np.mean([one.effective for one in runs])),
        robust=np.mean([one.robust for one in runs], axis=0),
        replay=together(replays) if replays else None,
        counted=round(float(np.mean([one.counted for one in runs]))),
        degraded=float(np.mean([one.degraded for one in runs])),
        unlearned=float(np.mean([one.unlearned for one in runs])),
        between_runs=_spread(np.array([one.dr.mean for one in runs])),
    )


def _spread(means: Floats) -> float:
    """Return the standard error of the mean of several runs."""
    return float(means.std(ddof=1)) / math.sqrt(len(means))
