"""Linear equations in rationals, against numpy and by hand."""

from fractions import Fraction

import numpy as np

from discreet.audit.rationals import solve


def _matrix(rows: list[list[int]]) -> list[list[Fraction]]:
    return [[Fraction(entry) for entry in row] for row in rows]


def test_a_regular_system_is_solved_exactly() -> None:
    rows = [[0, 2, 1], [3, -1, 4], [5, 5, 5]]
    found = solve(_matrix(rows), [Fraction(1), Fraction(2), Fraction(3)])
    assert found is not None
    assert np.allclose([float(x) for x in found], np.linalg.solve(np.array(rows), [1, 2, 3]))
    for row, right in zip(rows, (1, 2, 3), strict=True):
        assert sum(a * x for a, x in zip(row, found, strict=True)) == right


def test_a_consistent_singular_system_has_some_solution() -> None:
    found = solve(_matrix([[1, 1], [2, 2]]), [Fraction(3), Fraction(6)])
    assert found is not None
    assert sum(found) == 3


def test_a_contradiction_has_none() -> None:
    assert solve(_matrix([[1, 1], [2, 2]]), [Fraction(3), Fraction(7)]) is None
