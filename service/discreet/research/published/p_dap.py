"""Adaptive partition as its paper publishes it: P-DAP and GP-DAP, and DAP, CAP and DUP beside them.

P. Zhou, Y. Zhou, D. Wu, H. Jin: Differentially Private Online Learning for Cloud-Based Video
Recommendation with Multimedia Big Data in Social Networks. IEEE Transactions on Multimedia 18(6),
2016. Here is Algorithm 1 (ExP-DAP), what a vendor does for its own users, line by line, with the
geometric privacy of section VI; `adaptive_partition_published_others` is Algorithm 2.

| paper's symbol | name here | range |
|---|---|---|
| x_i(t) | `request.context` | [0,1]^d |
| d | `dimensions` | >= 1 |
| K, M_i | own items, the slots below `own` | >= 0 |
| M_-i | `vendors`, the slots from `own` on | >= 0 |
| m | `segments` | >= 2 |
| A | `base` | >= 1 |
| p (printed b in line 19) | `growth` | > 0 |
| alpha | `similarity` | > 0 |
| L | `lipschitz` | > 0 |
| T | `horizon` | >= 2 |
| epsilon, epsilon_0 | `epsilon` | > 0 |
| Delta u | `sensitivity` | L * m^-alpha, at most 1 |
| G_1, G_2, K G_3 | `_control(level)` | m^(2 alpha l) * ln T |
| l | `address.level` | 0, 1, ... |
| M_C, N_kC, r_kC | arrivals, counts, means of a cell | >= 0, >= 0, any |
| N_1kC | counts of the slots from `own + vendors` on | >= 0 |

How it is read where the paper is silent or contradicts itself
- K_i, printed as an intersection, is the union of the own items and the other vendors.
- The split exponent of line 19, printed b, is the p of the text.
- "There is some k" in lines 4, 6 and 8: the lowest slot.
- ln(t) in the control functions is ln(T): a learner need not know what time it is elsewhere.
- G_2 is printed with a term Gamma/4 * m^(alpha l), Gamma = theta ln^2(T) ln(theta T ln(T) /
  sigma) / epsilon. At T = 30,000, four vendors and epsilon 0.01 that asks for more than 100,000
  forwards to every vendor from every cell, so that line 8 would never be left. It is left out.
- CAP, the centralised rival, is this algorithm with one learner that sees every arrival and owns
  every vendor's items: `vendors` 0 and mode none.
- DUP, the uniform rival, is mode none with `uniform_level`: cells of one size, never split.
- DAP is mode none. In all of them, G_1 and the split rule are the same.

Guarantee card
- Protects: nobody. For simulations and comparison only; a server must not pass it off as private.
- The paper claims (Theorem 4) epsilon-DP of the answers to one user in that user's context. The
  claim does not hold: lines 4 to 9 answer a deterministic function of the cell, so does line 16,
  and Lemma 2 takes L * m^-alpha for the sensitivity although its own Definition 3 lets contexts
  differ by 1 and the utilities are empirical means of two different cells, which may differ by
  the whole range.
- Cost of a call: infinite (`ExactRelease`), because of line 5, in every mode. So no budget
  can pay for it, and only a recommender that says `privacy: none` could run it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from discreet.families.p_dap.cell import REWARD_STEPS, observation, tallies
from discreet.families.p_dap.contract import (
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
from discreet.families.p_dap.partition import Partition, Route, check_offer
from discreet.families.shortlist import Slots
from discreet.errors import InvalidArgument
from discreet.privacy.choice import Exact, ExponentialMechanism
from discreet.privacy.draw import draw_index
from discreet.privacy.events import ExactRelease, PrivacyEvent
from discreet.privacy.noise import NoiseSource

_MOST_RANGE = 1_300.0
"""Above this epsilon over sensitivity, exponentials no longer fit the sampler's tables. The best
arm's weight is then e^650 times a worthless arm's, and means that differ by a hundredth by e^6."""

_MOST_REMEMBERED = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class WayDown(Plan):
    """A plan, with the way to the cell that it reads."""

    route: Route


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedCells:
    """What both algorithms share: the cells, and the rule that splits them."""

    generation: bytes
    dimensions: int
    arms: int
    segments: int = 2
    base: float = 100.0
    growth: float = 1.0
    similarity: float = 1.0
    horizon: int = 100_000
    uniform_level: int | None = None
    partition: Partition = field(init=False, repr=False)
    _split: set[bytes] = field(init=False, repr=False, default_factory=set)
    """Cells known to have split, which is final. Forgetting them costs reads."""

    def __post_init__(self) -> None:
        if self.arms < 0:
            raise InvalidArgument("arms", "must not be negative")
        if not (math.isfinite(self.similarity) and self.similarity > 0):
            raise InvalidArgument("similarity", "must be finite and greater than 0")
        if self.horizon < 2:
            raise InvalidArgument("horizon", "must be at least 2")
        partition = Partition(
            generation=self.generation,
            dimensions=self.dimensions,
            segments=self.segments,
            base=self.base,
            growth=self.growth,
        )
        if self.uniform_level is not None and not 0 <= self.uniform_level <= partition.deepest:
            raise InvalidArgument("uniform_level", f"must be from 0 to {partition.deepest}")
        object.__setattr__(self, "partition", partition)

    def plan(self, *, request: Request) -> WayDown:
        """Start at the deepest cell known to exist; `decide` goes on until it is the active one."""
        check_offer(request.available, limit=request.limit, arms=self.arms)
        events: tuple[PrivacyEvent, ...] = ()
        if len(request.available) > 1:
            events = (ExactRelease(),)
        route = self.partition.route(request.context)
        level = self.uniform_level or 0
        address = route.address(level)
        while address.key in self._split:
            level += 1
            address = route.address(level)
        return WayDown((address,), events, route)

    def active(
        self, *, state: Mapping[Address, Vector], plan: Plan
    ) -> tuple[Address, Deeper | None]:
        """Line 3: return the active cell C that holds x(t), or the step that is still to go."""
        assert isinstance(plan, WayDown)
        address = plan.reads[-1]
        if not self.has_split(address, state[address]):
            return address, None
        if len(self._split) >= _MOST_REMEMBERED:
            self._split.clear()
        self._split.add(address.key)
        below = plan.route.address(address.level + 1)
        return address, Deeper(WayDown((below,), plan.events, plan.route))

    def control(self, level: int) -> float:
        """Return G_1 of Theorem 2: m^(2 alpha l) * ln T."""
        return float(self.segments ** (2 * self.similarity * level) * math.log(self.horizon))

    def decide_without(self, *, plan: Plan, request: Request, noise: NoiseSource) -> Decision:
        """Answer uniformly, which tells nothing about anybody. The paper has no such case."""
        left = request.available
        choices: list[Choice] = []
        for _ in range(min(request.limit, len(left))):
            slot = int(left[draw_index(np.ones(len(left), dtype=np.int64), noise)])
            choices.append(Choice(slot=slot, propensity=1.0 / len(left)))
            left = left[left != slot]
        return Decision(choices=tuple(choices), address=plan.reads[-1], personalised=False)

    def survey(self, *, cells: Mapping[Address, Vector]) -> Survey:
        """Look, for metrics; nothing in the paper uses aggregates."""
        depth = max((address.level for address in cells), default=0)
        splits = sum(self.has_split(address, vector) for address, vector in cells.items())
        tried = np.zeros(self.arms, dtype=np.bool_)
        for vector in cells.values():
            tried |= tallies(vector, self.arms)[0] > 0
        return Survey(depth=depth, splits=splits, explored=int(tried.sum()))

    def has_split(self, address: Address, vector: Vector) -> bool:
        """Lines 19 and 20: whether a cell with these statistics has been partitioned."""
        return self.uniform_level is None and self.partition.has_split(address, vector)


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedAdaptivePartition(PublishedCells):
    """Algorithm 1 with `mode` uniform (P-DAP), geometric (GP-DAP) or none (DAP, CAP, DUP).

    Of the slots, the last `2 * vendors` stand for other vendors: first one a vendor for evaluated
    forwards (lines 8, 9 and 16), then one a vendor for training forwards (lines 6 and 7). What is
    learned about the former may be noisy and outside [0, 1]; of the latter only the number counts.
    """

    vendors: int = 0
    lipschitz: float = 1.0
    epsilon: float = 1.0
    mode: Literal["uniform", "geometric", "none"] = "uniform"
    sensitivity: float = field(init=False, repr=False)
    own: int = field(init=False, repr=False)
    _mechanisms: dict[int, ExponentialMechanism] = field(
        init=False, repr=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        PublishedCells.__post_init__(self)
        if self.vendors < 0 or 2 * self.vendors > self.arms:
            raise InvalidArgument("vendors", "must be from 0 to half of the arms")
        if self.mode not in ("uniform", "geometric", "none"):
            raise InvalidArgument("mode", "must be uniform, geometric or none")
        for name in ("lipschitz", "epsilon"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise InvalidArgument(name, "must be finite and greater than 0")
        # Lemma 2. Rewards lie in [0, 1], so a larger bound than 1 would say nothing.
        sensitivity = min(1.0, self.lipschitz * self.segments**-self.similarity)
        object.__setattr__(self, "sensitivity", sensitivity)
        object.__setattr__(self, "own", self.arms - 2 * self.vendors)

    def decide(
        self, *, state: Mapping[Address, Vector], plan: Plan, request: Request, noise: NoiseSource
    ) -> Decision | Deeper:
        """Answer by lines 3 to 16. A list repeats them over the own items that are left."""
        address, deeper = self.active(state=state, plan=plan)
        if deeper is not None:
            return deeper
        counts, sums = tallies(state[address], self.arms)
        means = np.divide(sums, counts, out=np.zeros(self.arms), where=counts > 0)  # line 2: 0
        left = request.available
        if request.limit > 1:
            left = left[left < self.own]
        choices: list[Choice] = []
        for _ in range(min(request.limit, len(left))):
            choice = self._select(left, counts, means, address.level, noise)
            choices.append(choice)
            left = left[left != choice.slot]
        return Decision(
            choices=tuple(choices),
            address=address,
            events=plan.events,
            personalised=bool(plan.events),
            estimated_regret=self._shortfall(means, request.available, choices),
        )

    def _select(
        self, left: Slots, counts: Floats, means: Floats, level: int, noise: NoiseSource
    ) -> Choice:
        own = left[left < self.own]
        judged = left[(left >= self.own) & (left < self.own + self.vendors)]
        trained = left[left >= self.own + self.vendors]
        # Lines 4 and 5, 6 and 7, 8 and 9: whoever was not tried enough here is tried.
        for slots in (own, trained, judged):
            short = slots[counts[slots] < self.control(level)]
            if len(short):
                return Choice(slot=int(short[0]), propensity=1.0)
        if not len(own):
            best = judged if len(judged) else trained
            return Choice(slot=int(best[means[best].argmax()]), propensity=1.0)
        # Lines 11 to 14. Without privacy (DAP) the best mean is selected itself.
        utilities = means[own]
        if self.mode == "none":
            index = Exact().choose(utilities=utilities).value
            probabilities = np.zeros(len(own))
            probabilities[index] = 1.0
        else:
            mechanism = self._mechanism(level)
            index = mechanism.choose(utilities=utilities, noise=noise).value
            probabilities = mechanism.probabilities(utilities)
        # Lines 15 and 16: the best vendor is called if it is better than what was drawn.
        if len(judged):
            vendor = judged[means[judged].argmax()]
            beaten = utilities < means[vendor]
            if beaten[index]:
                return Choice(int(vendor), min(1.0, float(probabilities[beaten].sum())))
        return Choice(int(own[index]), float(probabilities[index]))

    def _mechanism(self, level: int) -> ExponentialMechanism:
        """Return line 12 at this level; in section VI epsilon is eps_0 * m^(alpha * l)."""
        known = self._mechanisms.get(level)
        if known is None:
            known = ExponentialMechanism(
                epsilon=min(self.epsilon_at(level), _MOST_RANGE * self.sensitivity),
                sensitivity=self.sensitivity,
            )
            self._mechanisms[level] = known
        return known

    def epsilon_at(self, level: int) -> float:
        """Return the epsilon of a cell of this level: section VI lets it grow with depth."""
        if self.mode != "geometric":
            return self.epsilon
        return float(self.epsilon * self.segments ** (self.similarity * level))

    def _shortfall(self, means: Floats, available: Slots, choices: list[Choice]) -> float:
        """Return by how much the best own items beat the answer, as far as means can tell."""
        own = available[available < self.own]
        if not len(own) or choices[0].slot >= self.own:
            return 0.0
        best = np.sort(means[own])[::-1][: len(choices)]
        chosen = means[[choice.slot for choice in choices]]
        return float((best.sum() - chosen.sum()) / len(choices))

    def learn(self, *, decision: Decision, choice: int, reward: float) -> Update:
        """Line 18: M_C, N_kC and the sum behind r_kC. Lines 19 to 21 follow from M_C."""
        return observed(decision=decision, choice=choice, reward=reward, exact_below=self.own)


def observed(*, decision: Decision, choice: int, reward: float, exact_below: int) -> Update:
    """Return what a reward adds; from slot `exact_below` on it may be noisy, of any size."""
    if not 0 <= choice < len(decision.choices) or decision.choices[choice].slot < exact_below:
        return observation(decision=decision, choice=choice, reward=reward)
    if not (math.isfinite(reward) and abs(reward) < 2.0**40):
        raise InvalidArgument("reward", "must be finite and below 2**40")
    update = observation(decision=decision, choice=choice, reward=0.0)
    *counted, (sum_field, _) = update.increments
    return Update(
        address=update.address,
        increments=(*counted, (sum_field, round(reward * REWARD_STEPS))),
    )
