"""From a plan and what the store said to a decision, reading deeper as far as it takes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet.families.p_dap.contract import Decision, Deeper, Learner, Plan, Request, Vector
from discreet.errors import StoreUnavailable, Underpaid

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

_MOST_LEVELS = 128


async def decide(
    runtime: "Runtime", learner: Learner, request: Request, plan: Plan, vectors: Sequence[Vector]
) -> Decision:
    """Decide; a decision that released something else than its plan said is withheld."""
    state = dict(zip(plan.reads, vectors, strict=True))
    for _ in range(_MOST_LEVELS):
        decision = learner.decide(state=state, plan=plan, request=request, noise=runtime.noise)
        if isinstance(decision, Decision):
            if decision.events and decision.events != plan.events:
                raise Underpaid("a decision released something else than what was paid for")
            return decision
        plan = _deeper(decision, paid=plan)
        missing = [address for address in plan.reads if address not in state]
        found = await runtime.store.read(addresses=[address.key for address in missing])
        state.update(zip(missing, found, strict=True))
    raise StoreUnavailable("the learned partition is deeper than it can be")


async def look_deeper(
    runtime: "Runtime", learner: Learner, request: Request, step: Deeper, *, paid: Plan
) -> Decision:
    """Read what a first look has asked for, and decide."""
    plan = _deeper(step, paid=paid)
    vectors = await runtime.store.read(addresses=[address.key for address in plan.reads])
    return await decide(runtime, learner, request, plan, vectors)


def _deeper(step: Deeper, *, paid: Plan) -> Plan:
    if step.plan.events != paid.events:
        raise Underpaid("looking deeper must not change what is released")
    return step.plan
