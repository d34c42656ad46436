"""What a path of two coupled worlds has cost, what was charged for it, and the verdict."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.audit.claims import Finding
from discreet.audit.enclosures import float_above
from discreet.audit.scripted_noise import LaplaceScale


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
    """In rho;"""
    feedback_charged: Fraction | None = Fraction(0)
    feedback_epsilon: Fraction | None = Fraction(0)
    """and in epsilon, which Gaussian noise does not bound."""
    feedback_epsilon_charged: Fraction | None = Fraction(0)
    because: str = ""

    def add_release(self, moved: Sequence[int], scales: Sequence[float]) -> None:
        """Add what a release costs whose numbers, hidden by noise of these scales, are moved."""
        assert self.feedback is not None
        epsilon = Fraction(0)
        for steps, scale in zip(moved, scales, strict=True):
            if isinstance(scale, LaplaceScale):
                epsilon += abs(steps) / Fraction(scale)
            elif steps:
                self.feedback += Fraction(steps) ** 2 / (2 * Fraction(scale) ** 2)
                self.feedback_epsilon = None
        self.feedback += epsilon**2 / 2
        if self.feedback_epsilon is not None:
            self.feedback_epsilon += epsilon


def judge_answers(losses: Sequence[Loss]) -> Finding:
    """Compare the worst loss through answers with the epsilon that was charged for them."""
    return _judged([(each.answers, each.answers_charged) for each in losses])


def judge_feedback(losses: Sequence[Loss]) -> Finding:
    """Compare the worst rho of all releases with what was charged for feedback, and so the
    epsilon; report the rho if both hold."""
    rho = _judged([(each.feedback, each.feedback_charged) for each in losses])
    epsilon = _judged([(each.feedback_epsilon, each.feedback_epsilon_charged) for each in losses])
    return rho if epsilon.holds or not rho.holds else epsilon


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
