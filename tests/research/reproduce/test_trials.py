"""Trials: results in order, progress by rounds, and as many processes as one likes."""

from dataclasses import dataclass

import pytest

from discreet.errors import InvalidArgument
from discreet.research.reproduce.trials import run_all


@dataclass(frozen=True)
class Squared:
    rounds: int

    @property
    def label(self) -> str:
        return f"square of {self.rounds}"

    def run(self) -> int:
        return self.rounds**2


def test_results_come_in_order_and_progress_counts_rounds() -> None:
    seen: list[tuple[int, int, str]] = []
    found = run_all(
        [Squared(3), Squared(1), Squared(2)],
        watch=lambda done, total, what: seen.append((done, total, what)),
        processes=1,
    )
    assert found == [9, 1, 4]
    assert seen == [
        (0, 6, "starting"),
        (3, 6, "square of 3"),
        (4, 6, "square of 1"),
        (6, 6, "square of 2"),
    ]


def test_nothing_to_run_is_nothing() -> None:
    assert run_all([]) == []


def test_no_processes_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="processes"):
        run_all([], processes=0)
