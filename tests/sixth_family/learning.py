"""From feedback to counts, and from counts to the next model."""

import math

import numpy as np

from discreet.families.contract import REWARD_STEPS
from discreet.privacy.conversions import zcdp_rho
from discreet.privacy.events import GaussianRelease
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import Vector
from tests.sixth_family.model import OverallModel

COUNTS = b"counts"
SENSITIVITY = math.nextafter(math.sqrt(2.0), 2.0)
"""Replacing a record takes at most 1 from one entry and gives at most 1 to another."""


def release_event(epsilon: float, delta: float) -> GaussianRelease:
    """Return the release whose noise covers the replacement of one record."""
    scale = SENSITIVITY / math.sqrt(2.0 * zcdp_rho(epsilon=epsilon, delta=delta))
    return GaussianRelease(math.nextafter(scale, math.inf), SENSITIVITY)


def increments(slot: int, reward: float) -> list[tuple[int, int]]:
    """Return what a reward adds: liked, and not."""
    steps = round(reward * REWARD_STEPS)
    return [(2 * slot, steps), (2 * slot + 1, REWARD_STEPS - steps)]


def next_model(
    model: OverallModel, gathered: Vector | None, event: GaussianRelease, noise: NoiseSource
) -> OverallModel:
    """Return the counts with what has gathered, and with this release's noise."""
    steps = np.zeros(2 * len(model.liked), dtype=np.int64)
    if gathered is not None:
        steps[: len(gathered)] = gathered[: len(steps)]
    if len(steps):
        scale = event.scale * REWARD_STEPS
        steps = steps + noise.discrete_gaussian(scale=scale, size=len(steps))
    fresh = steps / REWARD_STEPS
    return OverallModel(model.liked + fresh[0::2], model.disliked + fresh[1::2])
