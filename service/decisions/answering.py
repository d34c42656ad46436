"""One answer: spend and read in one round trip, decide, seal.

The order is the guarantee. The ledger is debited, durably, before anything that depends on the
context leaves this process; a debit that fails, or whose fate is unknown, releases nothing. What
the learner says it released is compared with what was paid for, and an answer that was underpaid
is withheld.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from service.algorithms.contract import Address, Decision, Deeper, Plan, Request, Vector
from service.decisions.observer import Answer
from service.decisions.recommender import Recommender
from service.decisions.runtime import Runtime
from service.decisions.tokens import ADDRESS_BYTES, Pending, new_decision_id, seal_decision
from service.errors import BudgetExhausted, DiscreetError, StoreUnavailable, Underpaid
from service.privacy.accountants import Budget
from service.privacy.charges import NANO, Charge
from service.state.stores import Account

FREE = Charge()
_MOST_LEVELS = 128
_NOTHING = Decision(choices=(), address=Address(bytes(ADDRESS_BYTES)), personalised=False)


@dataclass(frozen=True, slots=True)
class Ask:
    """A caller's question, already checked for form."""

    recommender: str
    client: str
    context: Sequence[float]
    limit: int = 1
    exclude: Sequence[str] = ()
    candidates: Sequence[str] | None = None
    event_id: str | None = None


@dataclass(frozen=True, slots=True)
class PrivacyReport:
    """What this answer cost the client, and where the client's ledger stands after it.

    All None when the recommender protects nobody (`mode: none`).
    """

    epsilon: float | None
    spent: Budget | None
    remaining: Budget | None


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The answer. `expires_at` is in seconds since the epoch."""

    recommendation_id: str
    items: tuple[str, ...]
    personalised: bool
    privacy: PrivacyReport
    expires_at: int


@dataclass(frozen=True, slots=True)
class Begun:
    """A question whose debit and reads are on their way."""

    recommender: Recommender
    request: Request
    plan: Plan | None
    charge: Charge
    account: Awaitable[Account] | Awaitable[Charge]
    vectors: Awaitable[Sequence[Vector]] | None


def begin(
    runtime: Runtime, recommender: Recommender, ask: Ask, marker: bytes | None = None
) -> Begun:
    """Plan, and issue the debit and the reads together. Raises before anything is spent."""
    request = recommender.request(
        context=ask.context, limit=ask.limit, exclude=ask.exclude, candidates=ask.candidates
    )
    recommender.touched = True
    principal = runtime.principals.client(recommender.name, ask.client)
    if not len(request.available):
        return Begun(
            recommender, request, None, FREE, runtime.store.balance(principal=principal), None
        )
    plan = recommender.learner.plan(request=request)
    # Only a recommender that says `mode: none` aloud may release without paying.
    charge = recommender.charge(plan.events) if recommender.protected else FREE
    account: Awaitable[Account] | Awaitable[Charge]
    if charge == FREE:
        account = runtime.store.balance(principal=principal)
    else:
        account = runtime.store.spend(
            principal=principal,
            charge=charge,
            limit=recommender.limit,
            marker=marker,
            marker_ttl=recommender.ttl,
        )
    vectors = runtime.store.read(addresses=[address.key for address in plan.reads])
    return Begun(recommender, request, plan, charge, account, vectors)


async def finish(runtime: Runtime, begun: Begun) -> Recommendation:
    """Await the debit, decide, and seal the answer."""
    recommender, plan = begun.recommender, begun.plan
    try:
        standing = await begun.account
    except DiscreetError:
        if begun.vectors is not None:
            await asyncio.gather(begun.vectors, return_exceptions=True)
        raise
    granted, spent = (
        (standing.granted, standing.spent) if isinstance(standing, Account) else (True, standing)
    )
    if plan is None or begun.vectors is None:
        return _answer(runtime, begun, _NOTHING, Answer.EMPTY, FREE, spent)
    vectors = await begun.vectors
    if granted:
        decision = await _decide(runtime, begun, plan, vectors)
        outcome = Answer.PERSONALISED if recommender.protected else Answer.UNPROTECTED
        return _answer(runtime, begun, decision, outcome, begun.charge, spent)
    runtime.observer.exhausted(recommender=recommender.name, algorithm=recommender.algorithm)
    if recommender.refuses:
        runtime.observer.recommendation(
            recommender=recommender.name,
            algorithm=recommender.algorithm,
            outcome=Answer.REFUSED,
            charge=FREE,
            items=0,
            estimated_regret=0.0,
        )
        raise BudgetExhausted("this client's privacy budget with this recommender is spent")
    decision = recommender.learner.decide_without(
        plan=plan, request=begun.request, noise=runtime.noise
    )
    if decision.events:
        raise Underpaid("a degraded answer must release nothing")
    return _answer(runtime, begun, decision, Answer.DEGRADED, FREE, spent)


async def _decide(
    runtime: Runtime, begun: Begun, plan: Plan, vectors: Sequence[Vector]
) -> Decision:
    learner = begun.recommender.learner
    state = dict(zip(plan.reads, vectors, strict=True))
    for _ in range(_MOST_LEVELS):
        decision = learner.decide(
            state=state, plan=plan, request=begun.request, noise=runtime.noise
        )
        if isinstance(decision, Decision):
            if decision.events and decision.events != plan.events:
                raise Underpaid("a decision released something else than what was paid for")
            return decision
        plan = _deeper(decision, paid=plan)
        missing = [address for address in plan.reads if address not in state]
        found = await runtime.store.read(addresses=[address.key for address in missing])
        state.update(zip(missing, found, strict=True))
    raise StoreUnavailable("the learned partition is deeper than it can be")


def _deeper(step: Deeper, *, paid: Plan) -> Plan:
    if step.plan.events != paid.events:
        raise Underpaid("looking deeper must not change what is released")
    return step.plan


def _answer(
    runtime: Runtime,
    begun: Begun,
    decision: Decision,
    outcome: Answer,
    charge: Charge,
    spent: Charge,
) -> Recommendation:
    recommender = begun.recommender
    expires_at = int(runtime.clock()) + recommender.ttl
    runtime.observer.recommendation(
        recommender=recommender.name,
        algorithm=recommender.algorithm,
        outcome=outcome,
        charge=charge,
        items=len(decision.choices),
        estimated_regret=decision.estimated_regret,
    )
    return Recommendation(
        recommendation_id=seal_decision(
            runtime.sealer,
            Pending(
                generation=recommender.generation,
                decision_id=new_decision_id(),
                expires_at=expires_at,
                decision=decision,
                nano_epsilon=charge.nano_epsilon,
            ),
        ),
        items=tuple(recommender.id_of[choice.slot] for choice in decision.choices),
        personalised=decision.personalised,
        privacy=report(recommender, spent=spent, charge=charge),
        expires_at=expires_at,
    )


def report(recommender: Recommender, *, spent: Charge, charge: Charge = FREE) -> PrivacyReport:
    """Return how a client stands with a recommender, having just been charged `charge`."""
    if not recommender.protected:
        return PrivacyReport(None, None, None)
    return PrivacyReport(
        epsilon=charge.nano_epsilon / NANO,
        spent=recommender.accountant.spent(spent, recommender.budget),
        remaining=recommender.accountant.remaining(spent, recommender.budget),
    )
