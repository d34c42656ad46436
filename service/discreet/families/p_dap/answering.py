"""One answer: spend and read in one round trip, decide, seal.

The order is the guarantee. The ledger is debited, durably, before anything that depends on the
context leaves this process; a debit that fails, or whose fate is unknown, releases nothing. What
the learner says it released is compared with what was paid for, and an answer that was underpaid
is withheld.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from discreet.families.p_dap.contract import Address, Decision, Learner, Plan, Request, Vector
from discreet.families.questions import Ask, Recommendation
from discreet.families.observer import Answer, note_refusal
from discreet.families.p_dap.deciding import decide
from discreet.families.p_dap.notes import Asked
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.families.p_dap.vendors import Item, ask_vendor, open_arms
from discreet.families.budgets import FREE, UNPROTECTED
from discreet.decisions.tokens import ADDRESS_BYTES, Pending, new_decision_id, seal_decision
from discreet.errors import BudgetExhausted, DiscreetError, Underpaid
from discreet.privacy.charges import Charge
from discreet.privacy.events import PrivacyEvent
from discreet.state.stores import Account

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

_NOTHING = Decision(choices=(), address=Address(bytes(ADDRESS_BYTES)), personalised=False)


@dataclass(frozen=True, slots=True)
class Begun:
    """A question whose debit and reads are on their way.

    `request` offers our own items, and `offer` what may be drawn: our items, and perhaps vendors.
    """

    recommender: PartitionRecommender
    learner: Learner
    request: Request
    offer: Request
    plan: Plan | None
    charge: Charge
    account: Awaitable[Account] | Awaitable[Charge]
    vectors: Awaitable[Sequence[Vector]] | None


def begin(
    runtime: "Runtime", recommender: PartitionRecommender, ask: Ask, marker: bytes | None = None
) -> Begun:
    """Plan, and issue the debit and the reads together. Raises before anything is spent."""
    request = recommender.request(ask)
    recommender.touched = True
    account: Awaitable[Account] | Awaitable[Charge]
    principal = runtime.principals.client(recommender.name, ask.client)
    learner, offer = recommender.learner, request
    if not len(request.available):
        account = runtime.store.balance(principal=principal)
        return Begun(recommender, learner, request, request, None, FREE, account, None)
    released: tuple[PrivacyEvent, ...] = ()
    # A vendor cannot be told which of its items to leave out, nor give several that differ.
    if recommender.vendors and ask.limit == 1 and ask.candidates is None:
        vendors = open_arms(runtime, recommender)
        if vendors:
            learner, offer = recommender.joint_learner, recommender.joined(request, vendors)
            released = (recommender.vendor_event,)
    plan = learner.plan(request=offer)
    # Only a recommender that says `mode: none` aloud may release without paying.
    terms = recommender.terms
    charge = FREE if terms is None else terms.charge(plan.events + released)
    if terms is None or charge == FREE:
        account = runtime.store.balance(principal=principal)
    else:
        account = runtime.store.spend(
            principal=principal,
            charge=charge,
            limit=terms.limit,
            marker=marker,
            marker_ttl=recommender.ttl,
        )
    vectors = runtime.store.read(addresses=[address.key for address in plan.reads])
    return Begun(recommender, learner, request, offer, plan, charge, account, vectors)


async def finish(runtime: "Runtime", begun: Begun) -> Recommendation:
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
        decision = await decide(runtime, begun.learner, begun.offer, plan, vectors)
        outcome = Answer.PERSONALISED if recommender.protected else Answer.UNPROTECTED
        item = None
        if begun.offer is not begun.request and decision.choices[0].slot in recommender.vendor_of:
            item = await ask_vendor(runtime, recommender, begun.request, decision)
            if item is None:
                # It was paid for, and that a vendor had been drawn may show: not free, and not
                # independent of the context, though what is drawn instead is.
                decision = replace(
                    _draw_without(runtime, begun), address=decision.address, personalised=True
                )
        return _answer(runtime, begun, decision, outcome, begun.charge, spent, item)
    runtime.observer.exhausted(recommender=recommender.name, algorithm=recommender.algorithm)
    if recommender.refuses:
        note_refusal(
            runtime.observer, recommender=recommender.name, algorithm=recommender.algorithm
        )
        raise BudgetExhausted("this client's privacy budget with this recommender is spent")
    return _answer(runtime, begun, _draw_without(runtime, begun), Answer.DEGRADED, FREE, spent)


def _draw_without(runtime: "Runtime", begun: Begun) -> Decision:
    """Draw one of our own items without looking at the context, hence for nothing.

    Never a vendor: what a vendor answers depends on the cell that it is told.
    """
    assert begun.plan is not None
    plan = begun.plan
    if begun.offer is not begun.request:
        plan = begun.learner.plan(request=begun.request)
    decision = begun.learner.decide_without(plan=plan, request=begun.request, noise=runtime.noise)
    if decision.events:
        raise Underpaid("an answer that ignores the context must release nothing")
    return decision


def _answer(
    runtime: "Runtime",
    begun: Begun,
    decision: Decision,
    outcome: Answer,
    charge: Charge,
    spent: Charge,
    item: Item | None = None,
) -> Recommendation:
    recommender = begun.recommender
    expires_at = int(runtime.clock()) + recommender.ttl
    if item is None:
        items, note = tuple(recommender.id_of[one.slot] for one in decision.choices), b""
    else:
        items, note = (item.handle,), Asked(item.training, item.books, item.handle).encode()
        expires_at = min(expires_at, item.expires_at)
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
                note=note,
            ),
        ),
        items=items,
        personalised=decision.personalised,
        privacy=UNPROTECTED
        if recommender.terms is None
        else recommender.terms.report(spent=spent, charge=charge),
        expires_at=expires_at,
        vendor=None if item is None else item.vendor,
    )
