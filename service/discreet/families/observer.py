"""What decisions report about themselves, without knowing who listens.

The server listens with Prometheus series, simulations not at all. Nothing here carries a client, a
context or a single reward that could be joined to one: recommender names, outcomes and amounts
only.
"""

from enum import StrEnum
from typing import Protocol

from discreet.privacy.charges import Charge
from discreet.state.stores import NO_CHARGE, Account


class AnswerOutcome(StrEnum):
    """How a recommendation ended."""

    PERSONALISED = "personalised"
    DEGRADED = "degraded"
    UNPROTECTED = "unprotected"
    REPEATED = "repeated"
    REFUSED = "refused"
    EMPTY = "empty"


class FeedbackOutcome(StrEnum):
    """How feedback ended. Unpaid: accepted and not learned, because the budget is spent."""

    COUNTED = "counted"
    UNPAID = "unpaid"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    EXPIRED = "expired"
    FORGED = "forged"


class FamilyCounter(StrEnum):
    """Things that families count."""

    RELEASES = "releases"
    COMMUNICATIONS = "communications"
    MIXING_ROUNDS = "mixing_rounds"
    VOTES = "votes"
    CLIENT_RUNS = "client_runs"
    TRAININGS = "trainings"
    FORWARDS = "forwards"
    FORWARDS_RECEIVED = "forwards_received"


class FamilyGauge(StrEnum):
    """Things that families measure: the last value stands."""

    RELEASE = "release"
    RELEASED_AT = "release_timestamp_seconds"
    RELEASE_DUE = "release_due_timestamp_seconds"
    CELLS = "cells"
    DEPTH = "depth"
    SPLITS = "splits"
    EXPLORED = "arms_explored"
    VENDOR_OUTBOX = "vendor_outbox"
    CLUSTERS = "clusters"
    NEIGHBOURS = "neighbours"
    MODEL_NONZEROS = "model_nonzeros"
    VOTERS = "voters"
    ROUNDS = "rounds"
    PROFILES = "profiles"
    TRAINING_SECONDS = "training_seconds"


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
        estimated_regret: float,
        answers: int = 1,
    ) -> None:
        """Report answers alike: each was charged so much; items and regret are of all together."""

    def feedback(
        self,
        *,
        recommender: str,
        algorithm: str,
        outcome: FeedbackOutcome,
        reward: float = 0.0,
        charge: Charge = NO_CHARGE,
    ) -> None:
        """Report feedback; what cannot be opened has no recommender (an empty name)."""

    def exhausted(self, *, recommender: str, algorithm: str) -> None:
        """Report that a debit was refused because a budget is spent."""

    def spent(
        self,
        *,
        recommender: str,
        algorithm: str,
        charge: Charge,
        account: Account = Account.FEEDBACK,
    ) -> None:
        """Report a debit that belongs to no single answer or feedback (taking part in a release of
        fclub, for example)."""

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
        estimated_regret: float,
        answers: int = 1,
    ) -> None: ...

    def feedback(
        self,
        *,
        recommender: str,
        algorithm: str,
        outcome: FeedbackOutcome,
        reward: float = 0.0,
        charge: Charge = NO_CHARGE,
    ) -> None: ...

    def exhausted(self, *, recommender: str, algorithm: str) -> None: ...

    def spent(
        self,
        *,
        recommender: str,
        algorithm: str,
        charge: Charge,
        account: Account = Account.FEEDBACK,
    ) -> None: ...

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
