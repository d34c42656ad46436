"""The guarantee card: what a recommender promises, as data.

There is no second place where a promise is worded. The API answers with it, the page and the hub
show it, docs/privacy.md is checked against it, and the audit examines it.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from discreet.families.documents import WindowedBudgetDocument


@dataclass(frozen=True, slots=True)
class WindowCard:
    """What holds where a budget is for windows of time: in one, in any span as long, in several."""

    per: str
    one: str
    sliding: str
    several: str


@dataclass(frozen=True, slots=True)
class PriceCard:
    """One dial: what is protected by it, how, and what one use costs.

    `epsilon` None means exact: nothing is protected by this dial, and `mechanism` says why.
    `personal_slots` is how many items of a list are paid for, at most; None if all are. `window`
    is None where the budget is for ever.
    """

    protects: str
    mechanism: str
    epsilon: float | None
    delta: float = 0.0
    budget_epsilon: float | None = None
    budget_delta: float | None = None
    unit: str = "one use"
    personal_slots: int | None = None
    window: WindowCard | None = None

    def within(self, budget: WindowedBudgetDocument, *, covers: str) -> Self:
        """Return the card with its budget; `covers` is what a window's budget bounds."""
        return replace(
            self,
            budget_epsilon=budget.epsilon,
            budget_delta=budget.delta,
            window=window_card(budget, covers),
        )


def window_card(budget: WindowedBudgetDocument, covers: str) -> WindowCard | None:
    """Return what a budget with windows promises; None if it is for ever."""
    if budget.per is None:
        return None
    return WindowCard(
        per=budget.per,
        one=f"({budget.epsilon:g}, {budget.delta:g}) for {covers} in one window; windows begin at "
        "whole multiples of their length since 1970, by the store's clock, for everybody alike",
        sliding=f"({2 * budget.epsilon:g}, {2 * budget.delta:g}) in any {budget.per}, which touch "
        "at most two windows",
        several=f"k times ({budget.epsilon:g}, {budget.delta:g}) in k windows: nothing bounds all "
        "of them together",
    )


def unit_of(group: str | None, *budgets: WindowedBudgetDocument | None) -> str:
    """Return whose ledger it is, and for how long its budgets are."""
    who = "one client id"
    if group is not None:
        who += (
            f" with all recommenders of the ledger group {group}, each by its own budget (the "
            "largest bounds them together if all have the same delta and windows, else their sum; "
            "the callers of each see what all have spent)"
        )
    if any(budget is not None and budget.per is not None for budget in budgets):
        return f"{who}, in one window; answers and feedback say what holds in several"
    return f"{who}, for ever"


@dataclass(frozen=True, slots=True)
class GuaranteeCard:
    """Who is protected against whom, between which neighbouring inputs, at what price.

    `closed_loop` says whether the promise covers everything that follows from a person's data with
    feedback on (True), or one release with all else held fixed (False). `release` is the number
    of the released model that answers are made from at this moment.
    """

    algorithm: str
    protected: str
    against: str
    neighbours: str
    unit: str
    closed_loop: bool
    answers: PriceCard
    feedback: PriceCard
    not_covered: tuple[str, ...]
    release: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the card as the API answers it."""
        return asdict(self)
