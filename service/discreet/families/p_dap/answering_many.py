"""Many answers at once, for people who are offered the whole catalogue and want one item each.

The order is the guarantee, as in `answering`: every ledger is debited, durably, before anything
that depends on its context leaves this process, and a row whose debit failed or was refused is
never decided upon. Rows share round trips, arithmetic and nothing else.
"""

import asyncio
import itertools
import math
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet.families.p_dap.adaptive_partition import AdaptivePartition
from discreet.families.p_dap.adaptive_partition_many import ManyPlan, decide_many, plan_many
from discreet.families.p_dap.contract import Decision, Deeper, Request
from discreet.families.questions import Ask, Recommendation
from discreet.families.observer import Answer, note_refusal
from discreet.families.p_dap.deciding import look_deeper
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.families.budgets import FREE, PrivacyReport, Terms
from discreet.decisions.tokens import Pending, new_decision_ids, seal_decisions
from discreet.errors import BudgetExhausted, DiscreetError, Underpaid
from discreet.privacy.charges import Charge
from discreet.state.stores import Account, Rows

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

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
    starts: Sequence[int]
    rows: Awaitable[Rows]


def joins(recommender: PartitionRecommender, ask: Ask) -> bool:
    """Tell whether a question can be answered together with others; other ones come alone."""
    return (
        recommender.joinable
        and ask.limit == 1
        and not ask.exclude
        and ask.candidates is None
        and ask.features is None
        and ask.category is None
        and ask.round is None
        and len(ask.context) == recommender.dimensions
        and min(ask.context) >= 0.0
        and max(ask.context) <= 1.0
        and not math.isnan(sum(ask.context))  # which the two above may overlook
    )


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
    starts = list(itertools.accumulate(map(len, plan.reads), initial=0))
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
        starts,
        runtime.store.read_rows(
            addresses=[address.key for reads in plan.reads for address in reads],
            fields=1 + 2 * learner.arms,
        ),
    )


async def finish_many(runtime: "Runtime", begun: BegunMany) -> list[Recommendation | DiscreetError]:
    """Await the debits, decide for those that were granted, and seal the answers."""
    accounts = await begun.accounts
    sums, failed = await begun.rows
    answers: list[Recommendation | DiscreetError] = []
    granted: list[int] = []
    refused: list[int] = []
    for row, account in enumerate(accounts):
        if isinstance(account, DiscreetError):
            answers.append(account)
        else:
            answers.append(_UNDECIDED)
            (granted if account.granted else refused).append(row)
    if failed:
        granted = _readable(begun, granted, failed, answers)
    decided = await _decide(runtime, begun, granted, sums, answers)
    _seal(runtime, begun, decided, accounts, answers, Answer.PERSONALISED, begun.charge)
    if refused:
        _without(runtime, begun, refused, accounts, answers)
    return answers


_UNDECIDED = Underpaid("nothing was decided for this question")
"""Stands where no answer has been written yet, so that a row forgotten here releases nothing."""


def _readable(
    begun: BegunMany,
    rows: Sequence[int],
    failed: Mapping[int, DiscreetError],
    answers: list[Recommendation | DiscreetError],
) -> list[int]:
    """Return the rows whose statistics could be read, and write why where they could not."""
    good = []
    for row in rows:
        reads = range(begun.starts[row], begun.starts[row + 1])
        error = next((failed[place] for place in reads if place in failed), None)
        if error is None:
            good.append(row)
        else:
            answers[row] = error
    return good


async def _decide(
    runtime: "Runtime",
    begun: BegunMany,
    rows: Sequence[int],
    sums: npt.NDArray[np.int64],
    answers: list[Recommendation | DiscreetError],
) -> list[tuple[int, Decision]]:
    """Return the decisions by row, and write why where there is none."""
    plan = begun.plan
    first = decide_many(
        begun.learner,
        plan=plan,
        rows=rows,
        starts=begun.starts,
        sums=sums,
        noise=runtime.noise,
    )
    deeper = {
        row: look_deeper(
            runtime, begun.learner, _request(begun, row), one, paid=begun.plan.row(row)
        )
        for row, one in zip(rows, first, strict=True)
        if isinstance(one, Deeper)
    }
    found = dict(
        zip(deeper, await asyncio.gather(*deeper.values(), return_exceptions=True), strict=True)
    )
    decided: list[tuple[int, Decision]] = []
    for row, one in zip(rows, first, strict=True):
        decision = found[row] if isinstance(one, Deeper) else one
        if isinstance(decision, DiscreetError):
            answers[row] = decision
        elif isinstance(decision, BaseException):
            raise decision
        elif decision.events != plan.events:
            raise Underpaid("a decision released something else than what was paid for")
        else:
            decided.append((row, decision))
    return decided


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
        note_refusal(
            runtime.observer,
            recommender=recommender.name,
            algorithm=recommender.algorithm,
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
    expires_at = int(runtime.clock()) + recommender.ttl
    names = new_decision_ids(len(decided))
    tokens = seal_decisions(
        runtime.sealer,
        [
            Pending(recommender.generation, name, expires_at, decision, charge.nano_epsilon)
            for name, (_, decision) in zip(names, decided, strict=True)
        ],
    )
    id_of, regret = recommender.id_of, 0.0
    # Many ledgers stand alike, and what the store answered about those is one object.
    reports: dict[int, PrivacyReport] = {}
    for token, (row, decision) in zip(tokens, decided, strict=True):
        account = accounts[row]
        assert isinstance(account, Account)
        report = reports.get(id(account.spent))
        if report is None:
            report = terms.report(spent=account.spent, charge=charge)
            reports[id(account.spent)] = report
        regret += max(decision.estimated_regret, 0.0)
        items = (id_of[decision.choices[0].slot],)
        answers[row] = Recommendation(token, items, decision.personalised, report, expires_at)
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
