"""Adaptive partition as its paper publishes it: P-DAP, GP-DAP and DAP, for one vendor.

P. Zhou, Y. Zhou, D. Wu, H. Jin: Differentially Private Online Learning for Cloud-Based Video
Recommendation with Multimedia Big Data in Social Networks. IEEE Transactions on Multimedia 18(6),
2016. Algorithm 1 (ExP-DAP) line by line, with the geometric privacy of section VI. The lines about
other vendors (6 to 9, 15, 16) are left out: with one vendor their sets are empty.

| paper's symbol | name here | range |
|---|---|---|
| x_i(t) | `request.context` | [0,1]^d |
| d | `dimensions` | >= 1 |
| K, M_i | `arms` | >= 0 |
| m | `segments` | >= 2 |
| A | `base` | >= 1 |
| p (printed b in line 19) | `growth` | > 0 |
| alpha | `similarity` | > 0 |
| L | `lipschitz` | > 0 |
| T | `horizon` | >= 2 |
| epsilon, epsilon_0 | `epsilon` | > 0 |
| Delta u | `sensitivity` | L * m^-alpha, at most 1 |
| G_1 | `_control(level)` | m^(2 alpha l) * ln T |
| l | `address.level` | 0, 1, ... |
| M_C, N_kC, r_kC | arrivals, counts, means of a cell | >= 0, >= 0, [0,1] |

Guarantee card
- Protects: nobody. For simulations and comparison only; a server must not pass it off as private.
- The paper claims (Theorem 4) epsilon-DP of the answers to one user in that user's context. The
  claim does not hold: lines 4 and 5 answer a deterministic function of the cell, and Lemma 2 takes
  L * m^-alpha for the sensitivity although its own Definition 3 lets contexts differ by 1 and the
  utilities are empirical means of two different cells, which may differ by the whole range.
- Cost of a call: infinite (`ExactRelease`), because of line 5, in every mode. So no budget
  can pay for it, and only a recommender that says `privacy: none` could run it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from service.algorithms.cell import observation, tallies
from service.algorithms.contract import (
    Address,
    Choice,
    Decision,
    Deeper,
    Floats,
    Plan,
    Request,
    Survey,
    Update,
    Vector,
)
from service.algorithms.partition import Partition, Route, check_request
from service.errors import InvalidArgument
from service.privacy.choice import Exact, ExponentialMechanism
from service.privacy.draw import draw_index
from service.privacy.events import ExactRelease, PrivacyEvent
from service.privacy.noise import NoiseSource

_MOST_RANGE = 1_300.0
"""Above this epsilon over sensitivity, exponentials no longer fit the sampler's tables. The best
arm's weight is then e^650 times a worthless arm's, and means that differ by a hundredth by e^6."""


@dataclass(frozen=True, slots=True, eq=False)
class WayDown(Plan):
    """A plan, with the way to the cell that it reads."""

    route: Route


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedAdaptivePartition:
    """Algorithm 1 with `mode` uniform (P-DAP), geometric (GP-DAP) or none (DAP)."""

    generation: bytes
    dimensions: int
    arms: int
    segments: int = 2
    base: float = 100.0
    growth: float = 1.0
    similarity: float = 1.0
    lipschitz: float = 1.0
    horizon: int = 100_000
    epsilon: float = 1.0
    mode: Literal["uniform", "geometric", "none"] = "uniform"
    partition: Partition = field(init=False, repr=False)
    sensitivity: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.arms < 0:
            raise InvalidArgument("arms", "must not be negative")
        if self.mode not in ("uniform", "geometric", "none"):
            raise InvalidArgument("mode", "must be uniform, geometric or none")
        for name in ("similarity", "lipschitz", "epsilon"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise InvalidArgument(name, "must be finite and greater than 0")
        if self.horizon < 2:
            raise InvalidArgument("horizon", "must be at least 2")
        partition = Partition(
            generation=self.generation,
            dimensions=self.dimensions,
            segments=self.segments,
            base=self.base,
            growth=self.growth,
        )
        object.__setattr__(self, "partition", partition)
        # Lemma 2. Rewards lie in [0, 1], so a larger bound than 1 would say nothing.
        sensitivity = min(1.0, self.lipschitz * self.segments**-self.similarity)
        object.__setattr__(self, "sensitivity", sensitivity)

    def plan(self, *, request: Request) -> WayDown:
        """Start at the whole cube; `decide` asks to go deeper until it finds the active cell."""
        check_request(request, arms=self.arms)
        events: tuple[PrivacyEvent, ...] = ()
        if len(request.available) > 1:
            events = (ExactRelease(),)
        route = self.partition.route(request.context)
        return WayDown((route.address(0),), events, route)

    def decide(
        self, *, state: Mapping[Address, Vector], plan: Plan, request: Request, noise: NoiseSource
    ) -> Decision | Deeper:
        """Answer by lines 3 to 16. A list repeats them over the arms that are left."""
        assert isinstance(plan, WayDown)
        # Line 3: the active cell C that holds x(t).
        address = plan.reads[-1]
        vector = state[address]
        if self.partition.has_split(address, vector):
            below = plan.route.address(address.level + 1)
            return Deeper(WayDown((below,), plan.events, plan.route))
        counts, sums = tallies(vector, self.arms)
        means = np.divide(sums, counts, out=np.zeros(self.arms), where=counts > 0)  # line 2: 0
        left = request.available
        choices: list[Choice] = []
        for _ in range(min(request.limit, len(left))):
            choice = self._select(left, counts, means, address.level, noise)
            choices.append(choice)
            left = left[left != choice.slot]
        best = np.sort(means[request.available])[::-1][: len(choices)]
        chosen = means[[choice.slot for choice in choices]]
        return Decision(
            choices=tuple(choices),
            address=address,
            events=plan.events,
            personalised=bool(plan.events),
            estimated_regret=float((best.sum() - chosen.sum()) / len(choices)),
        )

    def _select(
        self,
        left: "np.ndarray[tuple[int], np.dtype[np.intp]]",
        counts: Floats,
        means: Floats,
        level: int,
        noise: NoiseSource,
    ) -> Choice:
        # Lines 4 and 5: an arm that was not explored enough here is selected. Any of them will do
        # for the paper; the lowest slot is.
        unexplored = left[counts[left] < self._control(level)]
        if len(unexplored):
            return Choice(slot=int(unexplored[0]), propensity=1.0)
        # Lines 11 to 14. Without privacy (DAP) the best mean is selected itself.
        utilities = means[left]
        if self.mode == "none":
            return Choice(int(left[Exact().choose(utilities=utilities).value]), 1.0)
        mechanism = self._mechanism(level)
        index = mechanism.choose(utilities=utilities, noise=noise).value
        return Choice(int(left[index]), float(mechanism.probabilities(utilities)[index]))

    def _control(self, level: int) -> float:
        """Return G_1 of Theorem 2."""
        return float(self.segments ** (2 * self.similarity * level) * math.log(self.horizon))

    def _mechanism(self, level: int) -> ExponentialMechanism:
        """Return line 12 at this level; in section VI epsilon is eps_0 * m^(alpha * l)."""
        epsilon = self.epsilon
        if self.mode == "geometric":
            epsilon *= self.segments ** (self.similarity * level)
        return ExponentialMechanism(
            epsilon=min(epsilon, _MOST_RANGE * self.sensitivity), sensitivity=self.sensitivity
        )

    def decide_without(self, *, plan: Plan, request: Request, noise: NoiseSource) -> Decision:
        """Answer uniformly, which tells nothing about anybody. The paper has no such case."""
        left = request.available
        choices: list[Choice] = []
        for _ in range(min(request.limit, len(left))):
            slot = int(left[draw_index(np.ones(len(left), dtype=np.int64), noise)])
            choices.append(Choice(slot=slot, propensity=1.0 / len(left)))
            left = left[left != slot]
        return Decision(choices=tuple(choices), address=plan.reads[-1], personalised=False)

    def learn(self, *, decision: Decision, choice: int, reward: float) -> Update:
        """Line 18: M_C, N_kC and the sum behind r_kC. Lines 19 to 21 follow from M_C."""
        return observation(decision=decision, choice=choice, reward=reward)

    def survey(self, *, cells: Mapping[Address, Vector]) -> Survey:
        """Nothing in Algorithm 1 uses aggregates; they are only looked over."""
        return self.partition.summary(cells)

    def has_split(self, address: Address, vector: Vector) -> bool:
        """Lines 19 and 20: whether a cell with these statistics has been partitioned."""
        return self.partition.has_split(address, vector)
