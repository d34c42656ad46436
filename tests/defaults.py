"""What the default budgets buy, for docs/privacy.md: python -m tests.defaults."""

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

from discreet.families.budgets import BudgetPolicy
from discreet.families.contract import Recommender
from discreet.privacy.charges import UNLIMITED, Charge
from discreet.research.noise import SeededNoise
from discreet.state.stores import NO_CHARGE
from tests.contracts.samples import SAMPLES, asks, build, play, release

PAGE = Path(__file__).parent.parent / "docs" / "privacy.md"
BEGIN, END = "<!-- defaults -->\n", "<!-- end of defaults -->\n"
RECORDS = (1, 10, 100)
PAGE_LENGTH = 10


class Bought(NamedTuple):
    """What a month's budgets buy with one family, under its defaults."""

    pages: int | None
    """Pages of ten with something personal; None if answers have no budget."""
    apart: int
    together: int
    """Pieces of feedback in as many releases, and in one."""
    prices: dict[int, tuple[float, float]]
    """Epsilon of so many records, in as many releases and in one."""


def admitted(policy: BudgetPolicy, charge: Charge, *, shared: bool = False) -> int:
    """Return how many charges a budget pays for; `shared`: records that share one noise."""
    total, count = NO_CHARGE, 0
    while True:
        times = 2 * count + 1 if shared else 1
        total = total + Charge(charge.nano_epsilon, times * charge.nano_rho, charge.pico_delta)
        if not policy.limit.admits(total):
            return count
        count += 1


async def first_record(recommender: Recommender[Any], algorithm: str) -> Charge:
    """Return what a client's first record in a release is charged: read off the ledger."""
    await play(recommender, algorithm, rounds=1, seed=0)
    (ledger,) = await recommender.store.ledgers([recommender.principal("person 0")])
    if ledger.feedback != NO_CHARGE:
        return ledger.feedback
    # Taking part in a release is what is charged here, when it is made.
    charge: Charge = recommender.reading._charge  # type: ignore[attr-defined]
    return charge


async def bought(algorithm: str) -> Bought:
    """Return what the default budgets of a family buy in one window."""
    recommender = build(algorithm, noise=SeededNoise(1))
    await SAMPLES[algorithm].prepare(recommender)
    record = await first_record(recommender, algorithm)
    await release(recommender, SeededNoise(1))
    feedback, answers = recommender.feedback_budget, recommender.answers_budget
    assert feedback is not None
    pages = None
    if answers is not None:
        ask = asks(algorithm)[0]._replace(limit=PAGE_LENGTH)
        page = recommender.price(recommender.question(ask))
        assert page.nano_epsilon < UNLIMITED
        pages = admitted(answers, page)
    return Bought(
        pages,
        admitted(feedback, record),
        admitted(feedback, record, shared=True),
        {
            count: tuple(
                feedback.spent(Charge(UNLIMITED, min(times * record.nano_rho, UNLIMITED))).epsilon
                for times in (count, count**2)
            )  # type: ignore[misc]
            for count in RECORDS
        },
    )


def families() -> list[str]:
    """Return the families whose clients pay for feedback by default."""
    return [name for name in SAMPLES if build(name).feedback_budget is not None]


def rendered() -> str:
    """Return the table as Markdown."""
    lines = [
        "| family | pages of ten a month | feedback a month: each in a release of its own, all in "
        "one | 1 record costs ε | 10 records | 100 records |",
        "|---|---|---|---|---|---|",
    ]
    for name in families():
        found = asyncio.run(bought(name))
        pages = "exact: no budget" if found.pages is None else str(found.pages)
        prices = " | ".join(
            f"{apart:.2f}" if count == 1 else f"{apart:.1f} apart, {together:.0f} together"
            for count, (apart, together) in found.prices.items()
        )
        lines.append(f"| `{name}` | {pages} | {found.apart}, {found.together} | {prices} |")
    return "\n".join(lines) + "\n"


def on_page() -> str:
    """Return the table that the page shows."""
    return PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]


def main() -> None:
    """Write the table anew."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + rendered() + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
