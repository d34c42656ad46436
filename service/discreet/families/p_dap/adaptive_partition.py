"""Adaptive partition of the context space, as served: one vendor, private in every answer.

After P. Zhou, Y. Zhou, D. Wu, H. Jin: Differentially Private Online Learning for Cloud-Based Video
Recommendation with Multimedia Big Data in Social Networks. IEEE Transactions on Multimedia 18(6),
2016. The partition is theirs. The choice is not: their exploration and their sensitivity do not
bear the guarantee that they claim (`adaptive_partition_published` is their own reading and says
why). Here everything that depends on the context goes through one randomised response.

| paper's symbol | name here | range |
|---|---|---|
| x_i(t) | `request.context` | [0,1]^d |
| d | `dimensions` | >= 1 |
| K, M_i | `arms`, of which `request.available` may be answered | >= 0 |
| m | `segments` | >= 2 |
| A, p | `base`, `growth`: a cell splits at A * m^(p l) arrivals | >= 1, > 0 |
| alpha | `similarity`, for geometric privacy only | > 0 |
| epsilon, epsilon_0 | `epsilon`, of one recommended arm | (0, 50] |
| l | `address.level` | 0 .. 16 |
| M_C, N_kC, r_kC | arrivals, counts and means of a cell | >= 0, >= 0, [0,1] |

Guarantee card
- Who is protected: the person whose context a request carries, against everybody who sees
  answers, any number of them, whatever else they know.
- Neighbouring inputs: two requests that differ in their context, in any way at all, with the same
  available arms, the same limit and the same learned state.
- Mechanism: `discreet.families.p_dap.mixture` (proof there): `ShortlistResponse` on the best arm of the
  cell, mixed with a draw that ignores the context.
- Sensitivity: none is assumed. The best arm may change arbitrarily between two contexts.
- Cost of a call: one `RandomisedResponse(epsilon)` for each arm drawn from two or more; nothing
  when only one arm is available. Geometric: epsilon of the deepest level known when planning,
  whatever the level of the cell. Mode none: `ExactRelease`.
- Assumptions: noise from the operating system; the caller debits `plan.events` before it answers.
  Not covered: what the answers to others tell about this person's *feedback*, which enters the
  statistics; the time that an answer takes; who reads the store.

Why geometric charges the deepest level. A cell of level l is answered with
eps_l = epsilon * m^(alpha * min(l, D)), where D is the deepest level that the last survey saw. D is
a parameter of the mechanism, known before the request. Two contexts may lie in cells of any two
levels, and both epsilons are at most eps_D; by the proof in `mixture` the draw is eps_D-DP.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from discreet.families.p_dap.cell import arrivals, observation, tallies
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
from discreet.families.p_dap.memory import Memory, SplitCell, posterior
from discreet.families.p_dap.mixture import Mixture, Odds
from discreet.families.p_dap.outlook import Outlook, Weights
from discreet.families.p_dap.partition import Partition, Route, check_offer
from discreet.families.shortlist import Slots
from discreet.errors import InvalidArgument
from discreet.privacy.choice import ShortlistResponse
from discreet.privacy.events import ExactRelease, PrivacyEvent, RandomisedResponse, Repeated
from discreet.privacy.noise import NoiseSource

_READ_AHEAD = 4
"""Levels that are read in the same round trip below a cell that may have split."""

OPTIMISM = 0.25
"""How many standard errors, scaled by sqrt(ln arrivals), an arm's mean is flattered by.

An arm tried little here may be better than it looks. This is how exploration within the cell is
part of the utility, and so protected like everything else.
"""


@dataclass(frozen=True, slots=True, eq=False)
class CellPlan(Plan):
    """A plan, with what it was priced under, the way to the cell, and what the cell inherits."""

    outlook: Outlook
    route: Route
    prior: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The active cell of a context: its statistics, its means, and the law of its answer."""

    address: Address
    means: Floats
    mixture: Mixture


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptivePartition:
    """The learner. Its parameters are frozen; its memory only saves reading.

    `exploration_rate` is the share of answers that ignore the context in the long run; while the
    survey has seen little, the share is larger. Zero turns that off altogether. In geometric mode
    no level gets more than `epsilon_ceiling`, or `epsilon` if that is more.
    """

    generation: bytes
    dimensions: int
    arms: int
    segments: int = 2
    base: float = 100.0
    growth: float = 1.0
    similarity: float = 0.5
    exploration_rate: float = 0.02
    epsilon: float = 1.0
    mode: Literal["uniform", "geometric", "none"] = "uniform"
    epsilon_ceiling: float = 8.0
    partition: Partition = field(init=False, repr=False)
    epsilons: tuple[float, ...] = field(init=False, repr=False)
    """Epsilon of one draw by level; the last for all deeper levels."""
    _responses: tuple[ShortlistResponse, ...] = field(init=False, repr=False)
    _releases: tuple[RandomisedResponse, ...] = field(init=False, repr=False)
    memory: Memory = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.arms < 0:
            raise InvalidArgument("arms", "must not be negative")
        if self.mode not in ("uniform", "geometric", "none"):
            raise InvalidArgument("mode", "must be uniform, geometric or none")
        if not 0 <= self.exploration_rate <= 1:
            raise InvalidArgument("exploration_rate", "must be from 0 to 1")
        if not (math.isfinite(self.similarity) and self.similarity > 0):
            raise InvalidArgument("similarity", "must be finite and greater than 0")
        if not (math.isfinite(self.epsilon_ceiling) and self.epsilon_ceiling > 0):
            raise InvalidArgument("epsilon_ceiling", "must be finite and greater than 0")
        partition = Partition(
            generation=self.generation,
            dimensions=self.dimensions,
            segments=self.segments,
            base=self.base,
            growth=self.growth,
        )
        epsilons = (self.epsilon,)
        if self.mode == "geometric":
            most = max(self.epsilon, self.epsilon_ceiling)
            grown = (
                self.epsilon * self.segments ** (self.similarity * level)
                for level in range(partition.deepest + 1)
            )
            epsilons = tuple(min(epsilon, most) for epsilon in grown)
        blank = Outlook.blank(arms=self.arms, exploration_rate=self.exploration_rate)
        fix = object.__setattr__
        fix(self, "partition", partition)
        fix(self, "epsilons", epsilons)
        fix(self, "_responses", tuple(ShortlistResponse(epsilon=value) for value in epsilons))
        fix(self, "_releases", tuple(RandomisedResponse(value) for value in epsilons))
        fix(self, "memory", Memory(arms=self.arms, outlook=blank))

    def plan(self, *, request: Request) -> CellPlan:
        """Say what to read, by the context, and what will be released, without it."""
        memory = self.memory
        self.check_offer(request.available, request.limit)
        outlook = memory.outlook
        route = self.partition.route(request.context)
        level, parent = memory.deepest_split(route.name)
        prior = outlook.means if parent is None else parent.means(outlook)
        events = self.events(draws=min(request.limit, len(request.available) - 1), outlook=outlook)
        return self._plan(route.address(level), events, outlook, route, prior)

    def check_offer(self, available: Slots, limit: int = 1) -> None:
        """Refuse an offer that cannot be made, and note it for the next survey."""
        # Most requests offer the whole catalogue, in one array that is never written to.
        if limit < 1 or available is not self.memory.checked:
            check_offer(available, limit=limit, arms=self.arms)
            self.memory.note_offered(available)

    def _plan(
        self,
        address: Address,
        events: tuple[PrivacyEvent, ...],
        outlook: Outlook,
        route: Route,
        prior: Floats,
    ) -> CellPlan:
        reads: tuple[Address, ...] = (address,)
        if address.key not in self.memory.whole:
            last = self.read_ahead(address.level, outlook)
            reads += tuple(route.address(level) for level in range(address.level + 1, last + 1))
        return CellPlan(reads, events, outlook, route, prior)

    def read_ahead(self, level: int, outlook: Outlook) -> int:
        """Return the deepest level that is read along with a cell that may have split."""
        return min(outlook.depth, level + _READ_AHEAD, self.partition.deepest)

    def events(self, *, draws: int, outlook: Outlook) -> tuple[PrivacyEvent, ...]:
        """Return what so many draws release: the context has no part in it."""
        if draws == 0:
            return ()
        if self.mode == "none":
            return (ExactRelease(),)
        event = self._releases[min(outlook.depth, len(self._releases) - 1)]
        return (event,) if draws == 1 else (Repeated(event, draws),)

    def decide(
        self, *, state: Mapping[Address, Vector], plan: Plan, request: Request, noise: NoiseSource
    ) -> Decision | Deeper:
        """Draw the answer, arm by arm; each propensity is given the arms before it."""
        found = self.find(state=state, plan=plan, request=request)
        if isinstance(found, Deeper):
            return found
        choices = _draw(found.mixture, request.limit, noise)
        return Decision(
            choices=choices,
            address=found.address,
            events=plan.events,
            personalised=bool(plan.events),
            estimated_regret=_shortfall(found.means, request.available, choices),
        )

    def find(
        self, *, state: Mapping[Address, Vector], plan: Plan, request: Request
    ) -> Found | Deeper:
        """Return the active cell of the context and the law of its answer, without drawing."""
        located = self.locate(state=state, plan=plan)
        if isinstance(located, Deeper):
            return located
        assert isinstance(plan, CellPlan)
        outlook = plan.outlook
        address, vector, prior = located
        counts, sums = tallies(vector, self.arms)
        means = posterior(counts=counts, sums=sums, prior=prior)
        odds = self.odds(request.available, request.limit, outlook=outlook, level=address.level)
        ranking = odds.ranking
        utilities = means[ranking]
        if len(ranking) > 1:
            middle = float(np.add.reduce(utilities)) / len(ranking)
            flattery = OPTIMISM * math.sqrt(middle * (1.0 - middle) * math.log1p(arrivals(vector)))
            utilities += flattery / np.sqrt(counts[ranking] + 1.0)
        return Found(address, means, Mixture(odds, utilities))

    def locate(
        self, *, state: Mapping[Address, Vector], plan: Plan
    ) -> tuple[Address, Vector, Floats] | Deeper:
        """Return the active cell of the context, its statistics, and what it inherits."""
        if not isinstance(plan, CellPlan):
            raise InvalidArgument("plan", "must come from this learner's plan")
        memory, route, outlook, prior = self.memory, plan.route, plan.outlook, plan.prior
        above: SplitCell | Floats | None = None
        for address in plan.reads:
            vector = state[address]
            if not self.partition.has_split(address, vector):
                memory.note_whole(address.key)
                return address, vector, prior
            level = address.level
            if above is None and level > 0:
                above = memory.split.get(route.name(level - 1), prior)
            above = memory.note_split(
                name=route.name(level), address=address, vector=vector, above=above
            )
            prior = above.means(outlook)
        below = route.address(address.level + 1)
        return Deeper(self._plan(below, plan.events, outlook, route, prior))

    def note_arrivals(self, address: Address, seen: int) -> None:
        """Take notice of how much a cell has seen: one that has split is no longer read alone."""
        if self.partition.splits_at(address.level, seen):
            self.memory.whole.pop(address.key, None)

    def odds(self, available: Slots, limit: int, *, outlook: Outlook, level: int) -> Odds:
        """Return what is public about an answer from a cell of this level."""
        level = min(level, outlook.depth, len(self._responses) - 1)
        whole = limit == 1 and available is self.memory.checked
        kept = self.memory.odds.get(level) if whole else None
        if kept is not None and kept[0] is outlook and kept[1].arms is available:
            return kept[1]
        ranking, curiosity = self._offer(available, outlook, outlook.ranking)
        response, size = None, len(ranking)
        if self.mode != "none":
            response, size = self._responses[level], outlook.size
        odds = Odds(
            arms=available,
            curiosity=curiosity,
            coin=outlook.coin,
            # Arms beyond the shortlist matter only as far as a list can use it up.
            ranking=ranking[: size + min(limit, len(available)) - 1],
            size=size,
            response=response,
        )
        if whole:
            self.memory.odds[level] = (outlook, odds)
        return odds

    def _offer(self, available: Slots, outlook: Outlook, ranking: Slots) -> tuple[Slots, Weights]:
        """Return the ranking and the weights of exploration, of the available arms only."""
        if len(available) == self.arms:
            return ranking, outlook.curiosity
        allowed = np.zeros(self.arms, dtype=np.bool_)
        allowed[available] = True
        return ranking[allowed[ranking]], outlook.curiosity[available]

    def decide_without(self, *, plan: Plan, request: Request, noise: NoiseSource) -> Decision:
        """Answer what most people like, or explore. No arm's probability depends on the client."""
        if not isinstance(plan, CellPlan):
            raise InvalidArgument("plan", "must come from this learner's plan")
        outlook = plan.outlook
        popular, curiosity = self._offer(request.available, outlook, outlook.popular)
        odds = Odds(
            arms=request.available,
            curiosity=curiosity,
            coin=outlook.coin,
            ranking=popular,
            size=1,
            response=None,
        )
        mixture = Mixture(odds, -np.arange(len(popular), dtype=np.float64))
        return Decision(
            choices=_draw(mixture, request.limit, noise),
            # The shallowest cell is the one that certainly exists; the answer above has not
            # looked at it, it is only where feedback will be counted.
            address=plan.reads[0],
            personalised=False,
        )

    def learn(self, *, decision: Decision, choice: int, reward: float) -> Update:
        """Return one arrival, one more trial of the arm, and its reward."""
        return observation(decision=decision, choice=choice, reward=reward)

    def survey(self, *, cells: Mapping[Address, Vector]) -> Survey:
        """Choose the shortlist anew. Plans already made keep the outlook they were priced by."""
        offered = self.memory.take_offered()
        self.memory.outlook = Outlook.of(
            cells=cells,
            offered=offered if len(offered) else np.arange(self.arms, dtype=np.intp),
            arms=self.arms,
            exploration_rate=self.exploration_rate,
            odds=[math.exp(epsilon) for epsilon in self.epsilons],
        )
        return self.partition.summary(cells)

    def has_split(self, address: Address, vector: Vector) -> bool:
        """Tell whether a cell with these statistics has split."""
        return self.partition.has_split(address, vector)


def _draw(mixture: Mixture, limit: int, noise: NoiseSource) -> tuple[Choice, ...]:
    """Draw up to `limit` different arms."""
    choices = [mixture.draw(noise)]
    for _ in range(min(limit, len(mixture.odds.arms)) - 1):
        mixture = mixture.without(choices[-1].slot)
        choices.append(mixture.draw(noise))
    return tuple(choices)


def _shortfall(means: Floats, available: Slots, choices: tuple[Choice, ...]) -> float:
    """Return how far the chosen arms' means stay behind the best ones', on average."""
    offered = means if len(available) == len(means) else means[available]
    if len(choices) == 1:
        return float(offered[offered.argmax()] - means[choices[0].slot])
    best = np.sort(offered)[::-1][: len(choices)].sum()
    return float((best - sum(means[choice.slot] for choice in choices)) / len(choices))
