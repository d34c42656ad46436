"""Five families, one vocabulary: decide, learn, merge.

All learned state is a sum. A family keeps vectors of 64-bit integers by address; learning yields
additive increments; merging is addition. So any number of workers, in any order, reach the same
bytes, without locks.

How one decision runs (the caller is `discreet.decisions.recommend`):

    plan = learner.plan(request=...)           what to read, and what deciding will release
    state = read(plan.reads)                   the store's answer, while the ledger is debited
    decision = learner.decide(state=..., plan=..., request=..., noise=...)
    if it is `Deeper`: read what it names as well, and decide again

`plan` may depend on the context only in *where* it reads; what it *releases* (`plan.events`) must
not depend on the context at all, because it is charged before anything is known about the state.
A `Decision` whose events differ from its plan's is never answered.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from discreet.errors import StateOverflow
from discreet.privacy.events import PrivacyEvent
from discreet.privacy.noise import NoiseSource

Vector = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Address(NamedTuple):
    """Where one vector of sums lives. `key` is a digest; `level` is its depth in the partition."""

    key: bytes
    level: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One question: who is asking (as features), and which arms may be answered.

    `available` holds the slots of the arms that may be recommended, in ascending order. It is
    public: the answer itself shows which items are allowed.
    """

    context: Floats
    available: npt.NDArray[np.intp]
    limit: int = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """What deciding needs to read, what it will release, and whatever the learner wants to keep."""

    reads: tuple[Address, ...]
    events: tuple[PrivacyEvent, ...]


@dataclass(frozen=True, slots=True)
class Deeper:
    """The state showed that another address must be read first (a cell that has split)."""

    plan: Plan


class Choice(NamedTuple):
    """One recommended arm and the probability with which it was drawn. Never shown to a caller."""

    slot: int
    propensity: float


@dataclass(frozen=True, slots=True)
class Decision:
    """What was chosen, from where, and what that released.

    `address` is where feedback will be learned; `estimated_regret` is the learner's own plug-in
    estimate, for metrics only.
    """

    choices: tuple[Choice, ...]
    address: Address
    events: tuple[PrivacyEvent, ...] = ()
    personalised: bool = True
    estimated_regret: float = 0.0


@dataclass(frozen=True, slots=True)
class Update:
    """Increments by field of one address's vector; they merge by addition."""

    address: Address
    increments: tuple[tuple[int, int], ...]
    events: tuple[PrivacyEvent, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Survey:
    """What a look over the learned state found: its depth, split cells, and arms ever tried."""

    depth: int = 0
    splits: int = 0
    explored: int = 0


class Learner(Protocol):
    """A family with its parameters. Its only mutable part is a cache of final or advisory facts.

    Losing that cache may cost reads; it must never change what is charged or promised.
    """

    def plan(self, *, request: Request) -> Plan:
        """Say what deciding will read and release, from public facts and the context's address."""
        ...

    def decide(
        self, *, state: Mapping[Address, Vector], plan: Plan, request: Request, noise: NoiseSource
    ) -> Decision | Deeper:
        """Choose, paying for the context with `plan.events`."""
        ...

    def decide_without(self, *, plan: Plan, request: Request, noise: NoiseSource) -> Decision:
        """Choose from a distribution that does not depend on the client at all: no events."""
        ...

    def learn(self, *, decision: Decision, choice: int, reward: float) -> Update:
        """Return what the reward for `decision.choices[choice]` adds, and where."""
        ...

    def survey(self, *, cells: Mapping[Address, Vector]) -> Survey:
        """Refresh facts that come from aggregate statistics (a shortlist, the deepest level).

        `cells` is everything learned, or a uniform sample of it when there is much. Returns what
        was seen, for metrics.
        """
        ...


def merge(*, state: Vector, update: Update) -> Vector:
    """Return `state` with the update added; grows to the longest field, refuses to overflow."""
    longest = max((index for index, _ in update.increments), default=-1) + 1
    merged = np.zeros(max(len(state), longest), dtype=np.int64)
    merged[: len(state)] = state
    for index, amount in update.increments:
        total = int(merged[index]) + amount
        if not -(2**63) <= total < 2**63:
            raise StateOverflow("a statistic would leave its 64-bit field")
        merged[index] = total
    return merged
