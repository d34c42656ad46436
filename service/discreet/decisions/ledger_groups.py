"""Which ledgers a recommender debits: its own, or those of a group. Fixed for good with its name.

Ledgers follow the recommender's name, or the name of its group. A recommender that was removed and
created anew in another group would find everybody with a fresh budget, so the group of a name is
written once and never changed, not even by removing the recommender.

What a group promises about a person needs one window and one delta: with two windows, a member
whose budget is given anew goes on where another stops, and the total is bounded by none of the
budgets. So both are written once as well, for each account, by the first member that has it.

Feedback also needs one way of counting, in epsilon or in rho: see `families.budgets.BudgetPolicy`.
That is written with them, and for a ledger of a recommender's own too, because another recommender
of the same name would find what was spent there. A recommender from before there were two ways has
not written it: it is asked when somebody joins its group, and writes it when it is removed.
"""

from collections.abc import Mapping
from typing import Any

from discreet.errors import InvalidArgument
from discreet.families.budgets import BudgetPolicy
from discreet.families.contract import Recommender
from discreet.state.stores import Configurations

LEDGER = "ledger/"
"""Begins the name under which the store keeps the group of a recommender's name."""
TERMS = "ledger terms/"
"""Begins the name under which it keeps the window and delta of a group's account."""
COUNTED = "ledger counted/"
"""Begins the name under which it keeps how feedback in a recommender's own ledger is counted."""
_OWN = b"\0"
"""Stands for no group: names are printable."""
_DAY = 86_400


async def fix_ledger(store: Configurations, recommender: str, group: str | None) -> None:
    """Fix the group of a recommender's name. Raises `InvalidArgument` if it has another one.

    Called after `fix_terms`: a name whose terms are refused may still try another group.
    """
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
    store: Configurations, new: Recommender[Any], standing: Mapping[str, Recommender[Any]]
) -> None:
    """Fix windows, deltas and ways of counting; raise `InvalidArgument` if there are others.

    Of those that are `standing`, one of the same name may go on as it was: a group may have been
    mixed before that was refused.
    """
    group = new.stored.document.ledger
    had = standing[new.name].accounts() if new.name in standing else {}
    for account, budget in new.accounts().items():
        if group is not None:
            name, terms, one = f"{TERMS}{account}/{group}", _terms, f"ledger group {group}"
        elif account == "feedback":
            name, terms, one = COUNTED + new.name, _counted, f"ledger of {new.name}"
        else:
            continue
        otherwise = [
            terms(theirs)
            for other in standing.values()
            if group is not None and other.stored.document.ledger == group
            for theirs in (other.accounts().get(account, budget),)
            if theirs.pure != budget.pure
        ]
        proposal = terms(budget).encode()
        fixed = (otherwise or [(await store.secret(name=name, proposal=proposal)).decode()])[0]
        unchanged = account in had and terms(had[account]) == terms(budget)
        if fixed != terms(budget) and not unchanged:
            raise InvalidArgument(
                _field(account),
                f"must have {fixed}, like everything that was ever in the {one}: with "
                f"{terms(budget)} nothing would bound what is spent together. Use another "
                f"{'ledger group' if group else 'name'}. Feedback of contextual with at most three "
                "numbers is counted in epsilon, all other feedback in rho",
            )


def _terms(budget: BudgetPolicy) -> str:
    days, rest = divmod(budget.window, _DAY)
    length = f"{days}d" if not rest else f"{budget.window // 3_600}h"
    per = f"per {length}" if budget.window else "no per (for ever)"
    # Groups that are counted in rho were written before there was another way.
    counted = f", {_counted(budget)}" if budget.pure else ""
    return f"{per} and delta {budget.budget.delta!r}{counted}"


def _counted(budget: BudgetPolicy) -> str:
    return "privacy counted in epsilon" if budget.pure else "privacy counted in rho"


def _field(account: str) -> str:
    return "privacy.budget" if account == "voters" else f"privacy.{account}.budget"
