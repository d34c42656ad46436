"""What a paper claims, what we find, and whether it holds: the first table of a reproduction."""

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


def bound_claim(
    paper_says: str, where: str, *, bound: float, ours: float, why: str, digits: int = 3
) -> PaperClaim:
    """Return the claim of a theorem that bounds a number from above."""
    return PaperClaim(
        paper_says,
        where,
        published=f"at most {bound:,.{digits}g}",
        ours=f"{ours:,.{digits}g}",
        verdict="holds" if ours <= bound else "fails",
        why=why,
    )


def held(outcome: bool) -> Verdict:
    """Return the verdict of a comparison that was made."""
    return "holds" if outcome else "fails"
