"""Feedback makes an item more popular: what a reward adds, what it costs, and with which noise.

A record adds its reward, in [0, 1], to the coordinate of the item that it is about. Replacing one
record by another moves at most two coordinates by at most one each, so the L2 sensitivity of a
release is sqrt(2); adding or removing one moves it by 1, which that covers. Each release adds
Gaussian noise of its own to what gathered since the last one, on every slot of the catalogue, and
never to the same rewards again. So a record is paid for once, at the rho of one release, and
everything that later answers are made of is post-processing.

The noise covers slots, which are public; how many rewards there were, and on which items, is not.
"""

import math

import numpy as np

from discreet.errors import InvalidArgument
from discreet.families.budgets import BudgetPolicy
from discreet.families.collaborative.similarities import Floats
from discreet.families.contract import REWARD_STEPS, Blocks
from discreet.families.documents import Exact, FeedbackPrivacyDocument
from discreet.families.questions import Lesson
from discreet.privacy.calibration import zcdp_gaussian_scale
from discreet.privacy.noise import NoiseSource
from discreet.privacy.numeric import GaussianMechanism
from discreet.state.stores import EXACT

REWARDS = b"rewards"
"""The block of the sums: one field a slot."""

_SENSITIVITY = math.nextafter(math.sqrt(2), 2) * REWARD_STEPS
"""In steps: what replacing one record can move the rewards by."""


class RewardLearning:
    """The feedback dial of one document: the price of a record, and the noise of a release."""

    def __init__(self, privacy: FeedbackPrivacyDocument | Exact) -> None:
        """Calibrate the noise. Raises `InvalidArgument` if a record could never be paid for."""
        self.budget: BudgetPolicy | None = None
        self.charge = EXACT
        self._mechanism: GaussianMechanism | None = None
        if not isinstance(privacy, FeedbackPrivacyDocument):
            return
        self.budget = BudgetPolicy.of(privacy.budget)
        scale = zcdp_gaussian_scale(
            epsilon=privacy.epsilon, delta=privacy.delta, sensitivity=_SENSITIVITY
        )
        # Rewards are whole steps, so that rounding costs nothing.
        self._mechanism = GaussianMechanism(scale=scale, sensitivity=_SENSITIVITY, granularity=1.0)
        self.charge = self.budget.charge((self._mechanism.event(integers=True),))
        if not self.budget.limit.admits(self.charge):
            raise InvalidArgument("privacy.feedback.budget", "must pay for at least one record")

    def lesson(self, slot: int, reward: float) -> Lesson:
        """Return what a reward adds, and the price of a client's first between two releases."""
        if not 0.0 <= reward <= 1.0:
            raise InvalidArgument("reward", "must be from 0 to 1")
        return Lesson({REWARDS: [(slot, round(reward * REWARD_STEPS))]}, self.charge)

    def release(self, gathered: Blocks, size: int, noise: NoiseSource) -> tuple[Floats, Floats]:
        """Return what to add to the rewards of `size` slots, and to the variance of their noise."""
        steps = np.zeros(size, dtype=np.int64)
        held = gathered.get(REWARDS, steps)[:size]
        steps[: len(held)] = held
        if self._mechanism is None or not size:
            return steps / REWARD_STEPS, np.zeros(size)
        noisy = self._mechanism.release(steps, noise).value
        return noisy / REWARD_STEPS, np.full(size, (self._mechanism.scale / REWARD_STEPS) ** 2)
