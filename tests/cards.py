"""The guarantee cards in docs/privacy.md, written from the code: python -m tests.cards."""

from pathlib import Path

from discreet.families.cards import GuaranteeCard, PriceCard
from tests.contracts.samples import SAMPLES, build

PAGE = Path(__file__).parent.parent / "docs" / "privacy.md"
BEGIN, END = "<!-- cards -->\n", "<!-- end of cards -->\n"


def rendered() -> str:
    """Return every family's card as Markdown, of its sample with default privacy."""
    return "\n".join(_card(build(algorithm).guarantee()) for algorithm in SAMPLES)


def _card(card: GuaranteeCard) -> str:
    rows = [
        ("protects", card.protected),
        ("against", card.against),
        ("neighbouring inputs", card.neighbours),
        ("unit", card.unit),
        ("closed loop", "yes" if card.closed_loop else "no"),
        ("answers", _price(card.answers)),
        ("feedback", _price(card.feedback)),
        ("not covered", "; ".join(card.not_covered)),
    ]
    table = "".join(f"| {name} | {text} |\n" for name, text in rows)
    return f"### `{card.algorithm}`\n\n| | |\n|---|---|\n{table}"


def _price(price: PriceCard) -> str:
    cost = "exact: epsilon null"
    if price.epsilon is not None:
        delta = f", delta {price.delta:g}" if price.delta else ""
        cost = f"epsilon {price.epsilon:.4g}{delta} for {price.unit}"
    budget = ""
    if price.budget_epsilon is not None:
        budget = f"; budget ({price.budget_epsilon:g}, {price.budget_delta or 0:g})"
    if price.window is not None:
        window = price.window
        budget += f" per {window.per}: {window.one}; {window.sliding}; {window.several}"
    if price.personal_slots is not None:
        budget += f"; personal items of a list: {price.personal_slots}"
    return f"{price.protects}. {price.mechanism}. {cost}{budget}"


def on_page() -> str:
    """Return the cards that the page shows."""
    return PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]


def main() -> None:
    """Write the cards anew."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + rendered() + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
