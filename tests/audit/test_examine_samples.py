"""Statistical judgements: right on known truths, and able to see a mechanism that is 30% off.

Samples are seeded. Where a level is checked by repetition, the number of repetitions and the
probability of a false alarm are stated.
"""

import math

import numpy as np
import pytest
from scipy import stats

from discreet.audit.examine_samples import (
    clopper_pearson,
    entropy_evidence,
    fineness,
    judge_fit,
    judge_lower_bound,
    supremum_evidence,
)

ERROR = 2e-9


@pytest.mark.parametrize(("successes", "trials"), [(0, 50), (1, 50), (17, 50), (49, 50), (50, 50)])
def test_clopper_pearson_inverts_the_binomial(successes: int, trials: int) -> None:
    low, high = clopper_pearson(successes, trials, 0.01)
    if successes:
        assert stats.binom.sf(successes - 1, trials, float(low)) == pytest.approx(0.01)
    else:
        assert low == 0
    if successes < trials:
        assert stats.binom.cdf(successes, trials, float(high)) == pytest.approx(0.01)
    else:
        assert high == 1


def test_evidence_bounds_the_probability_of_being_this_far_off() -> None:
    """At 400 repetitions a p-value below 0.01 may come 4 times; 20 has probability below 1e-8."""
    rng = np.random.default_rng(1)
    probabilities = np.array([0.5, 0.3, 0.15, 0.05])
    entropy = supremum = 0
    for _ in range(400):
        drawn = rng.multinomial(500, probabilities)
        entropy += entropy_evidence(drawn, probabilities) > math.log(100)
        sample = rng.normal(size=500)
        supremum += supremum_evidence(sample, lambda x: stats.norm.cdf(x)) > math.log(100)
    assert entropy < 20
    assert supremum < 20


def test_a_bin_that_cannot_be_hit_settles_it() -> None:
    counts = np.array([5, 1], dtype=np.int64)
    assert entropy_evidence(counts, np.array([1.0, 0.0])) == math.inf


@pytest.mark.parametrize("factor", [0.7, 1.3])
@pytest.mark.parametrize("law", [stats.laplace, stats.norm], ids=["laplace", "gaussian"])
def test_a_scale_thirty_per_cent_off_is_seen(law: stats.rv_continuous, factor: float) -> None:
    rng = np.random.default_rng(2)
    off = law.rvs(scale=factor, size=20_000, random_state=rng)
    right = law.rvs(size=20_000, random_state=rng)
    assert not judge_fit([supremum_evidence(off, law.cdf)], error=ERROR).holds
    assert judge_fit([supremum_evidence(right, law.cdf)], error=ERROR).holds


def test_a_discrete_distribution_function_is_compared_from_both_sides() -> None:
    rng = np.random.default_rng(3)
    sample = rng.integers(0, 2, size=20_000).astype(np.float64)

    def coin(x: np.ndarray) -> np.ndarray:
        return np.clip((np.floor(x) + 1) / 2, 0, 1)

    assert supremum_evidence(sample, coin) < math.log(1 / ERROR)
    assert supremum_evidence(np.zeros(20_000), coin) > math.log(1 / ERROR)


def test_fineness_counts_binary_digits_after_the_point() -> None:
    values = np.array([0.0, 1.0, 0.5, 0.75, 6.0, 2.0**-20, 1 + 2.0**-52, 2.0**-1074, -0.375])
    assert list(fineness(values)) == [-2000, 0, 1, 2, -1, 20, 52, 1074, 3]


def _response(rng: np.random.Generator, epsilon: float, size: int) -> tuple[np.ndarray, np.ndarray]:
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    return (
        (rng.random((size, 1)) < p).astype(np.float64),
        (rng.random((size, 1)) < 1 - p).astype(np.float64),
    )


def test_the_lower_bound_comes_close_and_stays_below() -> None:
    rng = np.random.default_rng(4)
    first, second = _response(rng, 1.0, 40_000)
    finding = judge_lower_bound(first, second, claimed=1.0, error=ERROR)
    assert finding.holds
    assert 0.8 < finding.measured < 1.0


def test_the_lower_bound_refutes_a_claim_thirty_per_cent_too_small() -> None:
    rng = np.random.default_rng(5)
    first, second = _response(rng, 1.3, 40_000)
    assert not judge_lower_bound(first, second, claimed=1.0, error=ERROR).holds


def test_delta_is_taken_off_before_the_ratio() -> None:
    """A release that shows everything once in fifty times is (0, 0.02)-DP."""
    rng = np.random.default_rng(6)
    first = np.where(rng.random((40_000, 1)) < 0.02, 1.0, 0.0)
    second = np.where(rng.random((40_000, 1)) < 0.02, 2.0, 0.0)
    assert judge_lower_bound(first, second, claimed=0.1, delta=0.02, error=ERROR).holds
    assert not judge_lower_bound(first, second, claimed=0.1, delta=0.0, error=ERROR).holds


def test_equal_worlds_give_no_bound() -> None:
    rng = np.random.default_rng(7)
    first, second = rng.normal(size=(2, 20_000, 3))
    finding = judge_lower_bound(first, second, claimed=0.0, error=ERROR)
    assert finding.measured == 0
    assert finding.holds
