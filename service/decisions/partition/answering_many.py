"""Many answers at once, for people who are offered the whole catalogue and want one item each.

The order is the guarantee, as in `answering`: every ledger is debited, durably, before anything
that depends on its context leaves this process, and a row whose debit failed or was refused is
never decided upon. Rows share round trips, arithmetic and nothing else.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from service.algorithms.adaptive_partition import AdaptivePartition
from service.algorithms.adaptive_partition_many import ManyPlan, decide_many, plan_many
from service.algorithms.contract import Decision, Deeper, Request, Vector
from service.decisions.asking import Ask, Recommendation
from service.decisions.observer import Answer
from service.decisions.partition.deciding import look_deeper
from service.decisions.partition.recommender import PartitionRecommender
from service.decisions.terms import FREE, Terms
from service.decisions.tokens import Pending, new_decision_id, seal_decision
from service.errors import BudgetExhausted, DiscreetError, Underpaid
from service.privacy.charges import Charge
from service.state.stores import Account

if TYPE_CHECKING:
    from service.decisions.runtime import Runtime

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class BegunMany:
    """Questions whose debits and reads are on their way."""

    recommender: PartitionRecommender
    learner: AdaptivePartition
    terms: Terms
    contexts: Floats
    plan: ManyPlan
    charge: Charge
    accounts: Awaitable[Sequence[Account | DiscreetError]]
    vectors: Awaitable[Sequence[Vector | DiscreetError]]


def alike(recommender: PartitionRecommender, asks: Sequence[Ask]) -> list[int]:
    """Return which of these can be answered together; the others are asked one by one."""
    together = (
        isinstance(recommender.learner, AdaptivePartition)
        and recommender.terms is not None
        and not recommender.vendors
        and len(recommender.visible) > 1
    )
    dimensions = recommender.document.context.dimensions
    return [
        row
        for row, ask in enumerate(asks if together else ())
        if ask.limit == 1
        and not ask.exclude
        and ask.candidates is None
        and ask.features is None
        and ask.category is None
        and ask.round is None
        and len(ask.context) == dimensions
        and min(ask.context) >= 0.0
        and max(ask.context) <= 1.0
    ]


def begin_many(
    runtime: "Runtime", recommender: PartitionRecommender, asks: Sequence[Ask]
) -> BegunMany:
    """Plan, and issue all debits and reads together. Raises before anything is spent."""
    learner, terms = recommender.learner, recommender.terms
    assert isinstance(learner, AdaptivePartition)
    assert terms is not None
    recommender.touched = True
    contexts = np.array([ask.context for ask in asks], dtype=np.float64)
    plan = plan_many(learner, contexts=contexts, available=recommender.visible)
    charge = terms.charge(plan.events)
    if charge == FREE:
        raise Underpaid("answers that depend on contexts must be paid for")
    principal_of, name = runtime.principals.client, recommender.name
    return BegunMany(
        recommender,
        learner,
        terms,
        contexts,
        plan,
        charge,
        runtime.store.spend_each(
            principals=[principal_of(name, ask.client) for ask in asks],
            charge=charge,
            limit=terms.limit,
        ),
        runtime.store.read_each(
            addresses=[address.key for reads in plan.reads for address in reads]
        ),
    )


async def finish_many(runtime: "Runtime", begun: BegunMany) -> list[Recommendation | DiscreetError]:
    """Await the debits, decide for those that were granted, and seal the answers."""
    accounts = await begun.accounts
    vectors = _by_row(begun.plan, await begun.vectors)
    granted: list[int] = []
    answers: list[Recommendation | DiscreetError] = []
    refused: list[int] = []
    for row, (account, read) in enumerate(zip(accounts, vectors, strict=True)):
        if isinstance(account, DiscreetError):
            answers.append(account)
        elif isinstance(read, DiscreetError):
            answers.append(read)
        else:
            (granted if account.granted else refused).append(row)
            answers.append(_UNDECIDED)
    decisions = await _decide(runtime, begun, granted, vectors)
    paid = [
        (row, one)
        for row, one in zip(granted, decisions, strict=True)
        if not isinstance(one, DiscreetError)
    ]
    for row, one in zip(granted, decisions, strict=True):
        if isinstance(one, DiscreetError):
            answers[row] = one
    _seal(runtime, begun, paid, accounts, answers, Answer.PERSONALISED, begun.charge)
    if refused:
        _without(runtime, begun, refused, accounts, answers)
    return answers


_UNDECIDED = Underpaid("nothing was decided for this question")
"""Stands where no answer has been written yet, so that a row forgotten here releases nothing."""


def _by_row(
    plan: ManyPlan, vectors: Sequence[Vector | DiscreetError]
) -> list[Sequence[Vector] | DiscreetError]:
    """Return each row's reads, or the first error among them."""
    sound = not any(isinstance(one, DiscreetError) for one in vectors)
    rows: list[Any] = []
    start = 0
    for reads in plan.reads:
        end = start + len(reads)
        read: Any = vectors[start:end]
        if not sound:
            read = next((one for one in read if isinstance(one, DiscreetError)), read)
        rows.append(read)
        start = end
    return rows


async def _decide(
    runtime: "Runtime",
    begun: BegunMany,
    rows: Sequence[int],
    vectors: Sequence[Sequence[Vector] | DiscreetError],
) -> list[Decision | DiscreetError]:
    plan = begun.plan
    first = decide_many(
        begun.learner,
        plan=plan,
        rows=rows,
        vectors=[vectors[row] for row in rows],  # type: ignore[misc]  # those rows have theirs
        noise=runtime.noise,
    )
    decisions: list[Decision | DiscreetError] = []
    deeper = [
        look_deeper(runtime, begun.learner, _request(begun, row), one, paid=begun.plan.row(row))
        for row, one in zip(rows, first, strict=True)
        if isinstance(one, Deeper)
    ]
    found = iter(await asyncio.gather(*deeper, return_exceptions=True))
    for one in first:
        decision = next(found) if isinstance(one, Deeper) else one
        if isinstance(decision, Decision) and decision.events != plan.events:
            raise Underpaid("a decision released something else than what was paid for")
        if isinstance(decision, BaseException) and not isinstance(decision, DiscreetError):
            raise decision
        decisions.append(decision)
    return decisions


def _request(begun: BegunMany, row: int) -> Request:
    return Request(context=begun.contexts[row], available=begun.plan.available)


def _without(
    runtime: "Runtime",
    begun: BegunMany,
    rows: Sequence[int],
    accounts: Sequence[Account | DiscreetError],
    answers: list[Recommendation | DiscreetError],
) -> None:
    """Answer those whose budget is spent without their contexts, or refuse."""
    recommender = begun.recommender
    for row in rows:
        runtime.observer.exhausted(recommender=recommender.name, algorithm=recommender.algorithm)
        if recommender.refuses:
            answers[row] = BudgetExhausted(
                "this client's privacy budget with this recommender is spent"
            )
    if recommender.refuses:
        runtime.observer.recommendation(
            recommender=recommender.name,
            algorithm=recommender.algorithm,
            outcome=Answer.REFUSED,
            charge=FREE,
            items=0,
            estimated_regret=0.0,
            answers=len(rows),
        )
        return
    free = []
    for row in rows:
        decision = begun.learner.decide_without(
            plan=begun.plan.row(row), request=_request(begun, row), noise=runtime.noise
        )
        if decision.events:
            raise Underpaid("an answer that ignores the context must release nothing")
        free.append((row, decision))
    _seal(runtime, begun, free, accounts, answers, Answer.DEGRADED, FREE)


def _seal(
    runtime: "Runtime",
    begun: BegunMany,
    decided: Sequence[tuple[int, Decision]],
    accounts: Sequence[Account | DiscreetError],
    answers: list[Recommendation | DiscreetError],
    outcome: Answer,
    charge: Charge,
) -> None:
    """Write the answers to these rows in their places, and note them."""
    recommender, terms = begun.recommender, begun.terms
    generation, id_of = recommender.generation, recommender.id_of
    expires_at = int(runtime.clock()) + recommender.ttl
    regret = 0.0
    for row, decision in decided:
        account = accounts[row]
        assert isinstance(account, Account)
        regret += max(decision.estimated_regret, 0.0)
        pending = Pending(generation, new_decision_id(), expires_at, decision, charge.nano_epsilon)
        answers[row] = Recommendation(
            seal_decision(runtime.sealer, pending),
            (id_of[decision.choices[0].slot],),
            decision.personalised,
            terms.report(spent=account.spent, charge=charge),
            expires_at,
        )
    if decided:
        runtime.observer.recommendation(
            recommender=recommender.name,
            algorithm=recommender.algorithm,
            outcome=outcome,
            charge=charge,
            items=len(decided),
            estimated_regret=regret,
            answers=len(decided),
        )
