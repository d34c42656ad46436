"""Nobody has to listen: the null observer takes everything that decisions report."""

import inspect

import numpy as np
import pytest

from discreet.families.observer import FamilyGauge, NullObserver, Observer, ReleasedFigures


def test_the_null_observer_has_every_method_with_the_same_arguments() -> None:
    for name, method in inspect.getmembers(Observer, inspect.isfunction):
        if not name.startswith("_"):
            assert inspect.signature(method) == inspect.signature(getattr(NullObserver, name))


@pytest.mark.parametrize("noise", [0.0, 5.0, 20.0])
@pytest.mark.parametrize("mean", [0.02, 0.3, 0.9])
def test_a_mean_is_within_twice_its_error(mean: float, noise: float) -> None:
    """Records of that mean, with noise in likes and in dislikes. 95 % should be within 1.96 errors;
    of 2,000 runs fewer than 93 % is a false alarm of 1e-4 at most. With errors that are wrong by
    30 % it is 83 %."""
    rng = np.random.default_rng(5)
    records, within = 400, 0
    for _ in range(2_000):
        true = rng.binomial(records, mean)
        liked, disliked = np.array([true, records - true]) + rng.normal(0, noise, 2)
        figures = ReleasedFigures(
            feedback=liked + disliked, rewards=max(liked, 0.0), variance=2 * noise**2
        )
        found = figures.mean_and_error()
        assert found is not None
        within += abs(found[0] - mean) < 1.96 * found[1]
    assert within > 0.93 * 2_000


def test_noise_alone_tells_no_mean() -> None:
    for feedback, variance in ((0.0, 0.0), (0.5, 0.0), (39.0, 100.0), (None, 1.0), (100.0, None)):
        figures = ReleasedFigures(feedback=feedback, rewards=1.0, variance=variance)
        assert figures.mean_and_error() is None
        assert FamilyGauge.RELEASED_REWARD_ERROR not in figures.gauges()
    sure = ReleasedFigures(feedback=100.0, rewards=100.0, variance=0.0).mean_and_error()
    assert sure is not None
    assert sure[1] > 0.005, "a hundred of a hundred is not certainty"
