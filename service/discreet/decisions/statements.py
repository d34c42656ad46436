"""A statement for a person: what was spent of their budgets, on what, when, and what remains.

It is made of what the ledger keeps: sums for ever, sums of the current windows, and sums by day,
account and recommender for the last `ledgers.KEPT_DAYS` days. Nothing in it tells what was asked,
shown or liked.
"""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.decisions.registry import RecommenderRegistry
from discreet.errors import DiscreetError
from discreet.families.budgets import BudgetPolicy, PrivacyReport
from discreet.families.contract import Recommender
from discreet.privacy.accountants import Budget
from discreet.privacy.charges import UNLIMITED
from discreet.state.stores import Account, DaySpending, Debit, Ledger, Store


@dataclass(frozen=True, slots=True)
class AccountStatement:
    """One account with one recommender; all None where its protection is turned off."""

    budget: Budget | None
    window_seconds: int
    report: PrivacyReport
    ever: Budget | None
    """What was ever spent, in all windows together; infinite once something was exact."""


@dataclass(frozen=True, slots=True)
class DayStatement:
    """What was spent on one day with one recommender: `epsilon` None means without any limit."""

    day: datetime.date
    recommender: str
    account: Account
    uses: int
    epsilon: float | None


@dataclass(frozen=True, slots=True)
class RecommenderStatement:
    """How a person stands with a recommender; those of one `ledger` group share what is spent."""

    recommender: str
    ledger: str | None
    answers: AccountStatement
    feedback: AccountStatement
    days: tuple[DayStatement, ...]


class Statements:
    """Writes statements."""

    def __init__(self, *, store: Store, registry: RecommenderRegistry) -> None:
        self._store = store
        self._registry = registry

    async def statement(
        self, client: str, *, recommenders: frozenset[str] | None = None
    ) -> list[RecommenderStatement]:
        """Return how a client stands with every recommender, or with these, by name.

        Recommenders that keep no ledger of their clients are left out.
        """
        found = (await self._registry.current()).recommenders
        return [
            await self._with_one(found[name], client)
            for name in sorted(found)
            if found[name].debits_clients and (recommenders is None or name in recommenders)
        ]

    async def _with_one(self, recommender: Recommender[Any], client: str) -> RecommenderStatement:
        principal = recommender.principal(client)
        policies = (recommender.answers_budget, recommender.feedback_budget)
        # Debits of nothing: they tell how the ledger stands now, by the clock that windows go by.
        debiting = self._store.spend(
            [Debit(principal, window=policy.window if policy else 0) for policy in policies]
        )
        days = await self._store.days(principal)
        accounts = []
        for account, policy, debited in zip(Account, policies, await debiting, strict=True):
            if isinstance(debited, DiscreetError):
                raise debited
            accounts.append(_account(policy, debited.ledger, account))
        return RecommenderStatement(
            recommender.name,
            recommender.stored.document.ledger,
            accounts[0],
            accounts[1],
            _days(recommender, policies, days),
        )


def _account(policy: BudgetPolicy | None, ledger: Ledger, account: Account) -> AccountStatement:
    if policy is None:
        return AccountStatement(None, 0, PrivacyReport(None, None, None), None)
    report, ever = policy.report(ledger, account), policy.spent(ledger.spent(account))
    return AccountStatement(policy.budget, policy.window, report, ever)


def _days(
    recommender: Recommender[Any],
    policies: tuple[BudgetPolicy | None, BudgetPolicy | None],
    days: Sequence[DaySpending],
) -> tuple[DayStatement, ...]:
    lines = []
    for one in days:
        if one.purpose != recommender.purpose:
            continue
        policy, epsilon = policies[one.account], None
        if policy is not None and one.charge.nano_rho < UNLIMITED:
            epsilon = policy.spent(one.charge).epsilon
        day = datetime.date(1970, 1, 1) + datetime.timedelta(days=one.day)
        lines.append(DayStatement(day, recommender.name, one.account, one.uses, epsilon))
    return tuple(lines)
