"""What decisions report about themselves, without knowing who listens.

The server listens with Prometheus series, simulations not at all. Whoever reads a counter before
and after one request knows what that request added to it. So nothing is reported here that depends
on a context, on a reward, on whether feedback came, or on sums: answers are counted by what they
cost and how they ended, which follows from public facts. What feedback taught is reported when a
model is released, and from that model alone (`ReleasedFigures`).
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from discreet.privacy.charges import Charge

_TELLING = 4.0
"""Standard deviations of noise, at least, of which there must be feedback to tell a mean."""


class AnswerOutcome(StrEnum):
    """How a recommendation ended."""

    PERSONALISED = "personalised"
    DEGRADED = "degraded"
    UNPROTECTED = "unprotected"
    REPEATED = "repeated"
    REFUSED = "refused"
    EMPTY = "empty"
    HOLDOUT = "holdout"


class FamilyCounter(StrEnum):
    """Things that families count."""

    RELEASES = "releases"
    COMMUNICATIONS = "communications"
    MIXING_ROUNDS = "mixing_rounds"
    CLIENT_RUNS = "client_runs"
    TRAININGS = "trainings"
    FORWARDS = "forwards"
    FORWARDS_RECEIVED = "forwards_received"
    NOT_AWAITED = "decisions_not_awaited"
    NOT_LOGGED = "decisions_not_logged"


class FamilyGauge(StrEnum):
    """Things that families measure: the last value stands."""

    RELEASE = "release"
    RELEASED_AT = "release_timestamp_seconds"
    RELEASE_DUE = "release_due_timestamp_seconds"
    RELEASED_FEEDBACK = "released_feedback"
    RELEASED_REWARDS = "released_rewards"
    RELEASED_REWARD_MEAN = "released_reward_mean"
    RELEASED_REWARD_ERROR = "released_reward_error"
    RELEASED_REGRET = "released_regret"
    FEEDBACK_RHO = "feedback_rho"
    CELLS = "cells"
    DEPTH = "depth"
    SPLITS = "splits"
    EXPLORED = "arms_explored"
    CLUSTERS = "clusters"
    NEIGHBOURS = "neighbours"
    MODEL_NONZEROS = "model_nonzeros"
    ROUNDS = "rounds"
    PROFILES = "profiles"
    TRAINING_SECONDS = "training_seconds"
    OPEN_DECISIONS = "open_decisions"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedFigures:
    """What a released model says about all feedback together; None where it does not say.

    `feedback` is how much was learned from and `rewards` what it added up to, both with the noise
    of all releases; `reward_mean` their ratio, drawn to one half as far as noise could pretend;
    `regret` what an answer from this model is expected to fall short of the best item, by the
    model's own means; `rho` what a client's first record in a release costs, by the document;
    `variance` the most that noise adds to the variance of `feedback`, and of `rewards`.
    """

    feedback: float | None = None
    rewards: float | None = None
    reward_mean: float | None = None
    regret: float | None = None
    rho: float | None = None
    variance: float | None = None

    def mean_and_error(self) -> tuple[float, float] | None:
        """Return the mean reward and its standard error, by chance and by noise together.

        None where the model does not say, or where noise could pretend as much feedback. The noise
        of rewards and that of feedback may be the same noise, so their errors add up.
        """
        if self.feedback is None or self.rewards is None or self.variance is None:
            return None
        deviation = math.sqrt(self.variance)
        if self.feedback < 1.0 or self.feedback < _TELLING * deviation:
            return None
        mean = min(max(self.rewards / self.feedback, 0.0), 1.0)
        # One more of either kind: a mean of exactly 0 or 1 is not known without any error.
        spread = (mean * self.feedback + 1.0) * ((1.0 - mean) * self.feedback + 1.0)
        chance = spread / (self.feedback + 2.0) ** 2 / self.feedback
        return mean, math.sqrt(chance + (deviation * (1.0 + mean) / self.feedback) ** 2)

    def gauges(self) -> dict[FamilyGauge, float]:
        """Return what is known, as gauges."""
        measured = self.mean_and_error()
        every = {
            FamilyGauge.RELEASED_FEEDBACK: self.feedback,
            FamilyGauge.RELEASED_REWARDS: self.rewards,
            FamilyGauge.RELEASED_REWARD_MEAN: self.reward_mean,
            FamilyGauge.RELEASED_REWARD_ERROR: None if measured is None else measured[1],
            FamilyGauge.RELEASED_REGRET: self.regret,
            FamilyGauge.FEEDBACK_RHO: self.rho,
        }
        return {what: value for what, value in every.items() if value is not None}


class Observer(Protocol):
    """Listens to decisions. Must not raise and must not block."""

    def recommendation(
        self,
        *,
        recommender: str,
        algorithm: str,
        outcome: AnswerOutcome,
        charge: Charge,
        items: int,
        answers: int = 1,
    ) -> None:
        """Report answers alike: each was charged so much; items are of all together."""

    def forged(self) -> None:
        """Report feedback under an id that this service did not issue: nobody's, so public."""

    def reached(self, *, recommender: str, algorithm: str, tenths: int) -> None:
        """Report that a client's answers have now cost so many tenths of the budget, 0 for the
        first payment. Answers are priced by public facts, so this is one."""

    def exhausted(self, *, recommender: str, algorithm: str) -> None:
        """Report that an answer was not paid for because a budget is spent."""

    def count(
        self,
        *,
        recommender: str,
        what: FamilyCounter,
        label: str = "",
        amount: int = 1,
        peer: str = "",
    ) -> None:
        """Count something; `label` is a direction or an outcome, `peer` another instance, where
        there is one."""

    def gauge(self, *, recommender: str, what: FamilyGauge, value: float, label: str = "") -> None:
        """Report how much there is of something; `label` is a state where there is one."""

    def exchanged(
        self, *, recommender: str, peer: str, direction: str, outcome: str, size: int
    ) -> None:
        """Report a message to another instance (`sent`) or from one (`received`), in bytes."""


class NullObserver:
    """Listens to nothing: simulations and tests."""

    def recommendation(
        self,
        *,
        recommender: str,
        algorithm: str,
        outcome: AnswerOutcome,
        charge: Charge,
        items: int,
        answers: int = 1,
    ) -> None: ...

    def forged(self) -> None: ...

    def reached(self, *, recommender: str, algorithm: str, tenths: int) -> None: ...

    def exhausted(self, *, recommender: str, algorithm: str) -> None: ...

    def count(
        self,
        *,
        recommender: str,
        what: FamilyCounter,
        label: str = "",
        amount: int = 1,
        peer: str = "",
    ) -> None: ...

    def gauge(
        self, *, recommender: str, what: FamilyGauge, value: float, label: str = ""
    ) -> None: ...

    def exchanged(
        self, *, recommender: str, peer: str, direction: str, outcome: str, size: int
    ) -> None: ...
