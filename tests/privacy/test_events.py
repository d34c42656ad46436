"""What was released is a frozen fact that refuses parameters which mean nothing."""

import dataclasses
import math

import pytest

from discreet.errors import InvalidArgument
from discreet.privacy import events


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
@pytest.mark.parametrize(
    "kind", [events.ExponentialChoice, events.RandomisedResponse, events.PermuteAndFlip]
)
def test_an_epsilon_must_be_finite_and_positive(
    kind: type[events.PrivacyEvent], epsilon: float
) -> None:
    with pytest.raises(InvalidArgument, match="epsilon"):
        kind(epsilon)  # type: ignore[call-arg]


def test_events_are_values() -> None:
    one = events.RandomisedResponse(1.0)
    assert one == events.RandomisedResponse(1.0)
    assert hash(one) == hash(events.RandomisedResponse(1.0))
    assert one != events.PermuteAndFlip(1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.epsilon = 2.0  # type: ignore[misc]


@pytest.mark.parametrize(("scale", "sensitivity"), [(0.0, 1.0), (1.0, 0.0), (math.nan, 1.0)])
def test_noise_needs_a_scale_and_a_sensitivity(scale: float, sensitivity: float) -> None:
    for kind in (events.LaplaceRelease, events.GaussianRelease):
        with pytest.raises(InvalidArgument):
            kind(scale, sensitivity)


@pytest.mark.parametrize("times", [0, -1])
def test_repetition_needs_a_number(times: int) -> None:
    with pytest.raises(InvalidArgument):
        events.Repeated(events.RandomisedResponse(1.0), times)
