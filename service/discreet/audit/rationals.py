"""Linear equations in rationals."""

from fractions import Fraction

Matrix = list[list[Fraction]]


def solve(matrix: Matrix, right: list[Fraction]) -> list[Fraction] | None:
    """Return one x with matrix x = right, or None if there is none. Nothing is rounded."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    width = len(matrix[0])
    pivots: list[int] = []
    for column in range(width):
        top = len(pivots)
        found = next((r for r in range(top, len(rows)) if rows[r][column]), None)
        if found is None:
            continue
        rows[top], rows[found] = rows[found], rows[top]
        lead = rows[top][column]
        rows[top] = [entry / lead for entry in rows[top]]
        for r, row in enumerate(rows):
            if r != top and row[column]:
                factor = row[column]
                rows[r] = [a - factor * b for a, b in zip(row, rows[top], strict=True)]
        pivots.append(column)
    if any(row[-1] for row in rows[len(pivots) :]):
        return None
    solution = [Fraction(0)] * width
    for row, column in zip(rows, pivots, strict=False):
        solution[column] = row[-1]
    return solution
