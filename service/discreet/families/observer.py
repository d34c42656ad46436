"""What decisions tell about themselves, without knowing who listens.

The server listens with Prometheus counters, simulations not at all. Nothing here carries a
client, a context or a single reward that could be joined to one: recommender names, outcomes and
amounts only.
"""

from enum import StrEnum
from typing import Protocol

from discreet.privacy.charges import Charge


class Answer(StrEnum):
    """How a recommendation ended."""

    PERSONALISED = "personalised"
    DEGRADED = "degraded"
    UNPROTECTED = "unprotected"
    REPEATED = "repeated"
    REFUSED = "refused"
    EMPTY = "empty"


class Heard(StrEnum):
    """How feedback ended."""

    COUNTED = "counted"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    EXPIRED = "expired"
    FORGED = "forged"


class Count(StrEnum):
    """Things that families count, each by one label."""

    COMMUNICATIONS = "communications"
    MIXING_ROUNDS = "mixing_rounds"
    VOTES = "votes"
    CLIENT_RUNS = "client_runs"
    TRAININGS = "trainings"


class Figure(StrEnum):
    """Things that families measure: the last value stands."""

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
        outcome: Answer,
        charge: Charge,
        items: int,
        estimated_regret: float,
        answers: int = 1,
    ) -> None:
        """Note an answer and what it was charged.

        Of several `answers` alike each was charged so much; items and regret are of all together.
        """

    def feedback(self, *, recommender: str, algorithm: str, outcome: Heard, reward: float) -> None:
        """Note feedback; expired and forged feedback has no recommender (an empty name)."""

    def exhausted(self, *, recommender: str, algorithm: str) -> None:
        """Note that a debit was refused because a budget is spent."""

    def survey(
        self,
        *,
        recommender: str,
        algorithm: str,
        cells: int,
        depth: int,
        splits: int,
        explored: int,
    ) -> None:
        """Note what a survey of the learned state found."""

    def forward(self, *, recommender: str, vendor: str, outcome: str) -> None:
        """Note what became of a question to a vendor: answered, trained, or why not."""

    def hosted(self, *, recommender: str, requester: str, outcome: str) -> None:
        """Note a question by another vendor: answered, trained, or unpaid (no sums told)."""

    def outbox(self, waiting: int) -> None:
        """Note how much feedback waits to be passed on to vendors."""

    def spent(self, *, recommender: str, algorithm: str, charge: Charge) -> None:
        """Note a debit that no single answer is charged with (an upload, a run, a broadcast)."""

    def count(self, *, recommender: str, what: Count, label: str = "", amount: int = 1) -> None:
        """Count something; `label` is a direction or an outcome where there is one."""

    def figure(self, *, recommender: str, what: Figure, value: float, label: str = "") -> None:
        """Note how much there is of something; `label` is a state where there is one."""

    def exchanged(
        self, *, recommender: str, peer: str, direction: str, outcome: str, size: int
    ) -> None:
        """Note a message to another instance (`sent`) or from one (`received`), in bytes."""


def note_refusal(observer: Observer, *, recommender: str, algorithm: str, answers: int = 1) -> None:
    """Note that so many questions were refused because a budget is spent: nothing was released."""
    observer.recommendation(
        recommender=recommender,
        algorithm=algorithm,
        outcome=Answer.REFUSED,
        charge=Charge(),
        items=0,
        estimated_regret=0.0,
        answers=answers,
    )


class NullObserver:
    """Listens to nothing: simulations and tests."""

    def recommendation(
        self,
        *,
        recommender: str,
        algorithm: str,
        outcome: Answer,
        charge: Charge,
        items: int,
        estimated_regret: float,
        answers: int = 1,
    ) -> None: ...

    def feedback(
        self, *, recommender: str, algorithm: str, outcome: Heard, reward: float
    ) -> None: ...

    def exhausted(self, *, recommender: str, algorithm: str) -> None: ...

    def survey(
        self,
        *,
        recommender: str,
        algorithm: str,
        cells: int,
        depth: int,
        splits: int,
        explored: int,
    ) -> None: ...

    def forward(self, *, recommender: str, vendor: str, outcome: str) -> None: ...

    def hosted(self, *, recommender: str, requester: str, outcome: str) -> None: ...

    def outbox(self, waiting: int) -> None: ...

    def spent(self, *, recommender: str, algorithm: str, charge: Charge) -> None: ...

    def count(self, *, recommender: str, what: Count, label: str = "", amount: int = 1) -> None: ...

    def figure(self, *, recommender: str, what: Figure, value: float, label: str = "") -> None: ...

    def exchanged(
        self, *, recommender: str, peer: str, direction: str, outcome: str, size: int
    ) -> None: ...
