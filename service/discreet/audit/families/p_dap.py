"""The claims of the served learners, for the audit: exact losses between contexts in all cells.

A small learner is taught until its cells disagree about the best arm and lie at different depths.
Then every context's answer is compared with every other's. What is compared with the charge is
read off the shipped `decide`, with noise that is written down in advance; lists, whose draws would
take too long to script, are enumerated from the integers that each draw uses.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np

from discreet.families.p_dap.adaptive_partition import AdaptivePartition, Found
from discreet.families.p_dap.contract import (
    Address,
    Choice,
    Decision,
    Deeper,
    Plan,
    Request,
    Vector,
    merge,
)
from discreet.families.p_dap.mixture import Mixture
from discreet.audit.claims import Claim, PlantedFault, Finding, Method
from discreet.audit.examine_exact import Distribution, Pair, judge_pure, judge_zcdp
from discreet.audit.prices import epsilon_charged, rho_charged
from discreet.audit.scripted_noise import ScriptedNoise, distribution
from discreet.privacy.events import Composed, PrivacyEvent, RandomisedResponse
from discreet.privacy.noise import NoiseSource

_ARMS = 3
CONTEXTS = (0.05, 0.3, 0.6, 0.95)
"""One for each cell that the lesson below leaves, two of them one level deeper than the others."""
_NOTHING = np.zeros(0, dtype=np.int64)

State = dict[Address, Vector]


class Taught:
    """A served learner after a short lesson, and what it has learned."""

    def __init__(self, *, mode: Literal["uniform", "geometric"], limit: int = 1) -> None:
        self.learner = AdaptivePartition(
            generation=b"audit",
            dimensions=1,
            arms=_ARMS,
            base=8.0,
            epsilon=0.7,
            mode=mode,
            exploration_rate=0.1,
        )
        self.state: State = {}
        self._limit = limit
        for step in range(60):
            # The left half likes the first arm or the second, the right half the third.
            context = CONTEXTS[step % 4] if step < 40 else CONTEXTS[step % 2]
            favourite = 2 if context > 0.5 else int(context > 0.2)
            for arm in range(_ARMS):
                self._teach(context, arm, float(arm == favourite))
        self.learner.survey(cells=self.state)

    def request(self, context: float) -> Request:
        """Return a question from there."""
        return Request(context=np.array([context]), available=np.arange(_ARMS), limit=self._limit)

    def plan(self, context: float) -> Plan:
        """Return the plan that finds the context's cell in what was learned."""
        request = self.request(context)
        plan: Plan = self.learner.plan(request=request)
        while isinstance(
            step := self.learner.find(state=self.reads(plan), plan=plan, request=request), Deeper
        ):
            plan = step.plan
        return plan

    def found(self, context: float) -> Found:
        """Return the context's cell and the law of its answer."""
        plan = self.plan(context)
        found = self.learner.find(state=self.reads(plan), plan=plan, request=self.request(context))
        assert isinstance(found, Found)
        return found

    def reads(self, plan: Plan) -> State:
        """Return what the store would answer."""
        return {address: self.state.get(address, _NOTHING) for address in plan.reads}

    def answer(self, context: float, noise: NoiseSource) -> Decision:
        """Return what would be served."""
        plan = self.plan(context)
        decision = self.learner.decide(
            state=self.reads(plan), plan=plan, request=self.request(context), noise=noise
        )
        assert isinstance(decision, Decision)
        return decision

    def _teach(self, context: float, arm: int, reward: float) -> None:
        decision = Decision(choices=(Choice(arm, 1.0),), address=self.found(context).address)
        update = self.learner.learn(decision=decision, choice=0, reward=reward)
        before = self.state.get(update.address, _NOTHING)
        self.state[update.address] = merge(state=before, update=update)


def scripted_law(taught: Taught, context: float) -> Distribution:
    """Return the exact distribution of a served answer, as the shipped code draws it.

    The outcome also tells which way it was drawn, exploration or shortlist. An observer is told
    less, so what holds for this outcome holds for what is served.
    """

    def draw(noise: NoiseSource) -> Hashable:
        assert isinstance(noise, ScriptedNoise)
        [choice] = taught.answer(context, noise).choices
        return tuple(noise.asked), choice.slot

    return distribution(draw)


def listed_law(mixture: Mixture, limit: int) -> Distribution:
    """Return the exact distribution of a list, from the integers of every draw."""
    lists: dict[Hashable, Fraction] = {}

    def extend(rest: Mixture, chosen: tuple[int, ...], mass: Fraction) -> None:
        if len(chosen) == limit:
            lists[chosen] = mass
            return
        for slot, share in rest.law().items():
            if share:
                extend(rest.without(slot), (*chosen, slot), mass * share)

    extend(mixture, (), Fraction(1))
    return lists


def changed(mixture: Mixture, **odds: Any) -> Mixture:
    """Return a law with other odds: how faults are planted."""
    return replace(mixture, odds=replace(mixture.odds, **odds))


def pairs_of(laws: Sequence[Distribution]) -> list[Pair]:
    """Return every two of these laws."""
    return [(one, other) for place, one in enumerate(laws) for other in laws[place + 1 :]]


def _events(taught: Taught) -> PrivacyEvent:
    """Return what answering from any of the contexts releases; it must be the same for all."""
    [events] = {taught.plan(context).events for context in CONTEXTS}
    return Composed(events)


def examine_scripted(taught: Taught, *, column: Literal["epsilon", "rho"]) -> Finding:
    """Compare the losses between answers from all contexts with the charge."""
    pairs = pairs_of([scripted_law(taught, context) for context in CONTEXTS])
    if column == "rho":
        return judge_zcdp(pairs=pairs, claimed=rho_charged(_events(taught)))
    return judge_pure(pairs=pairs, claimed=epsilon_charged(_events(taught)))


def examine_lists(taught: Taught, *, limit: int) -> Finding:
    """Compare the losses between lists from all contexts with the charge."""
    laws = [listed_law(taught.found(context).mixture, limit) for context in CONTEXTS]
    return judge_pure(pairs=pairs_of(laws), claimed=epsilon_charged(_events(taught)))


def learner_checks() -> Iterator[Claim]:
    """Yield the claims of the adaptive partition as served."""
    name = "adaptive partition"
    uniform = partial(Taught, mode="uniform")
    yield Claim(
        f"{name}, uniform: epsilon",
        Method.EXACT,
        lambda _: examine_scripted(uniform(), column="epsilon"),
    )
    yield Claim(
        f"{name}, uniform: rho", Method.EXACT, lambda _: examine_scripted(uniform(), column="rho")
    )
    yield Claim(
        f"{name}, geometric: epsilon",
        Method.EXACT,
        lambda _: examine_scripted(Taught(mode="geometric"), column="epsilon"),
    )
    yield Claim(
        f"{name}, list of 2: epsilon",
        Method.EXACT,
        lambda _: examine_lists(Taught(mode="uniform", limit=2), limit=2),
    )
    yield Claim(
        f"{name}, geometric list of 2: epsilon",
        Method.EXACT,
        lambda _: examine_lists(Taught(mode="geometric", limit=2), limit=2),
    )


def _examine_shallow_price() -> Finding:
    """Geometric answers, charged as if every context lay in a cell of the first level."""
    taught = Taught(mode="geometric")
    laws = [listed_law(taught.found(context).mixture, 1) for context in CONTEXTS]
    shallow = RandomisedResponse(taught.learner.epsilons[0])
    return judge_pure(pairs=pairs_of(laws), claimed=epsilon_charged(shallow))


def _examine_local_curiosity() -> Finding:
    """Exploration that prefers what was tried little *in the cell*, as the paper's does."""
    taught = Taught(mode="uniform")
    laws = []
    for context in CONTEXTS:
        found = taught.found(context)
        tried = taught.state.get(found.address, _NOTHING)[1::2]
        weights = np.ones(_ARMS, dtype=np.int64)
        weights[int(np.argmin(np.pad(tried, (0, _ARMS - len(tried)))))] += 10**6
        weights = np.roll(weights, found.mixture.best)
        laws.append(listed_law(changed(found.mixture, curiosity=weights), 1))
    return judge_pure(pairs=pairs_of(laws), claimed=epsilon_charged(_events(taught)))


def learner_faults() -> Iterator[PlantedFault]:
    """Yield mistakes that a learner can make with mechanisms that are right."""
    yield PlantedFault("geometric answers charged at the first level", lambda _: _examine_shallow_price())
    yield PlantedFault("exploration that looks at the cell", lambda _: _examine_local_curiosity())
