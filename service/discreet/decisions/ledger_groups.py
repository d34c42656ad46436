"""Which ledgers a recommender debits: its own, or those of a group. Fixed for good with its name.

Ledgers follow the recommender's name, or the name of its group. A recommender that was removed and
created anew in another group would find everybody with a fresh budget, so the group of a name is
written once and never changed, not even by removing the recommender.

What a group promises about a person needs one window and one delta: with two windows, a member
whose budget is given anew goes on where another stops, and the total is bounded by none of the
budgets. So both are written once as well, for each account, by the first member that has it.
"""

from typing import Any

from discreet.errors import InvalidArgument
from discreet.families.budgets import BudgetPolicy
from discreet.families.contract import Recommender
from discreet.state.stores import Configurations

LEDGER = "ledger/"
"""Begins the name under which the store keeps the group of a recommender's name."""
TERMS = "ledger terms/"
"""Begins the name under which it keeps the window and delta of a group's account."""
_OWN = b"\0"
"""Stands for no group: names are printable."""
_DAY = 86_400


async def fix_ledger(store: Configurations, recommender: str, group: str | None) -> None:
    """Fix the group of a recommender's name. Raises `InvalidArgument` if it has another one."""
    proposal = _OWN if group is None else group.encode()
    fixed = await store.secret(name=LEDGER + recommender, proposal=proposal)
    if fixed == proposal:
        return
    had = "left out" if fixed == _OWN else fixed.decode()
    raise InvalidArgument(
        "ledger",
        f"must be {had}, as it was when a recommender of this name was first created: another "
        "ledger would give everybody a fresh budget. Use another name for another ledger",
    )


async def fix_terms(
    store: Configurations, new: Recommender[Any], old: Recommender[Any] | None
) -> None:
    """Fix windows and deltas of a recommender's group; raise `InvalidArgument` if it has others.

    What `old` had is not looked at again: a group may have been mixed before that was refused.
    """
    group = new.stored.document.ledger
    if group is None:
        return
    had = {} if old is None else {each: _terms(one) for each, one in old.accounts().items()}
    for account, budget in new.accounts().items():
        terms = _terms(budget)
        if had.get(account) == terms:
            continue
        fixed = await store.secret(name=f"{TERMS}{account}/{group}", proposal=terms.encode())
        if fixed.decode() != terms:
            raise InvalidArgument(
                _field(account),
                f"must have {fixed.decode()}, like every recommender of the ledger group {group}: "
                f"with {terms} nothing would bound what they spend together. Another window or "
                "delta needs another group",
            )


def _terms(budget: BudgetPolicy) -> str:
    days, rest = divmod(budget.window, _DAY)
    length = f"{days}d" if not rest else f"{budget.window // 3_600}h"
    per = f"per {length}" if budget.window else "no per (for ever)"
    return f"{per} and delta {budget.budget.delta!r}"


def _field(account: str) -> str:
    return "privacy.budget" if account == "voters" else f"privacy.{account}.budget"
