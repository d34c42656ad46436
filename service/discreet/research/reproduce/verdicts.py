"""What a paper claims, what we find, and whether it holds: the first table of a reproduction."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

Verdict = Literal["holds", "fails", "not testable"]


@dataclass(frozen=True, slots=True)
class PaperClaim:
    """One sentence, table, figure or theorem of a paper, beside what was measured or computed.

    `published` is the paper's own number or bound, `ours` the value that stands against it, and
    `why` what the verdict rests on, in a sentence.
    """

    paper_says: str
    where: str
    published: str
    ours: str
    verdict: Verdict
    why: str

    def row(self) -> dict[str, str]:
        """Return the row that programs read."""
        return asdict(self)


def bound_claim(paper_says: str, where: str, *, bound: float, ours: float, why: str) -> PaperClaim:
    """Return the claim of a theorem that bounds a number from above."""
    return PaperClaim(
        paper_says,
        where,
        published=f"at most {number(bound)}",
        ours=number(ours),
        verdict="holds" if ours <= bound else "fails",
        why=why,
    )


def held(outcome: bool) -> Verdict:
    """Return the verdict of a comparison that was made."""
    return "holds" if outcome else "fails"


def number(value: float) -> str:
    """Return a number with as many digits as anybody reads."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}"


def span(values: Iterable[float]) -> str:
    """Return the least and the largest of some numbers."""
    many = sorted(values)
    low, high = number(many[0]), number(many[-1])
    return low if low == high else f"{low} to {high}"
