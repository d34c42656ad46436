"""What a path of two coupled worlds has cost, what was charged for it, and the verdict."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.audit.claims import Finding
from discreet.audit.enclosures import float_above


class ToldApart(Exception):
    """The worlds can be told apart for certain, or nothing hides what differs.

    It is the fault of the person's answers (of what is charged for them), of the feedback, or of
    both.
    """

    def __init__(self, reason: str, *, answers: bool = True, feedback: bool = True) -> None:
        super().__init__(reason)
        self.answers = answers
        self.feedback = feedback


@dataclass(slots=True)
class Loss:
    """What a path has cost so far, and what was charged for it; None stands for infinity."""

    answers: Fraction | None = Fraction(0)
    answers_charged: Fraction | None = Fraction(0)
    feedback: Fraction | None = Fraction(0)
    feedback_charged: Fraction | None = Fraction(0)
    because: str = ""


def judge_answers(losses: Sequence[Loss]) -> Finding:
    """Compare the worst loss through answers with the epsilon that was charged for them."""
    return _judged([(each.answers, each.answers_charged) for each in losses])


def judge_feedback(losses: Sequence[Loss]) -> Finding:
    """Compare the worst rho of all releases with what was charged for feedback."""
    return _judged([(each.feedback, each.feedback_charged) for each in losses])


def _judged(rows: Sequence[tuple[Fraction | None, Fraction | None]]) -> Finding:
    """Report the row with the least room; an unlimited charge covers everything."""
    holds = all(charged is None or (met is not None and met <= charged) for met, charged in rows)

    def room(row: tuple[Fraction | None, Fraction | None]) -> float:
        met, charged = row
        if charged is None:
            return math.inf
        return -math.inf if met is None else float(charged - met)

    met, charged = min(rows, key=room)
    return Finding(
        math.inf if charged is None else float(charged),
        math.inf if met is None else float_above(met),
        holds,
    )
