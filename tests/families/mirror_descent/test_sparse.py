"""Sparse rows: what is refused and how it is named, clipping, the grid, and crossing."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.families.mirror_descent.sparse import (
    MOST_NONZEROS,
    STEPS,
    Crossing,
    SparseRows,
    joined,
    norms,
    on_grid,
    read_row,
    read_rows,
)


def rows_of(*features: tuple[list[int], list[float]], dimension: int = 100) -> SparseRows:
    return read_rows(features, dimension=dimension)


def dense(rows: SparseRows, dimension: int) -> np.ndarray[Any, Any]:
    table = np.zeros((len(rows), dimension))
    table[rows.row_of, rows.indices] = rows.values
    return table


def test_rows_lie_side_by_side() -> None:
    rows = rows_of(([1, 5], [0.5, -2.0]), ([], []), ([0], [3]))
    assert rows.offsets.tolist() == [0, 2, 2, 3]
    assert rows.sums(rows.values).tolist() == [-1.5, 0.0, 3.0]
    assert rows.take([2, 0, 0]).offsets.tolist() == [0, 1, 3, 5]
    assert rows.take([2, 0]).indices.tolist() == [0, 1, 5]
    assert rows.between(1, 3).offsets.tolist() == [0, 0, 1]
    assert rows.between(0, 1).values.tolist() == [0.5, -2.0]
    assert len(rows_of()) == 0


@pytest.mark.parametrize(
    ("indices", "values", "argument", "reason"),
    [
        ([5, 3], [1, 1], "indices", "ascend"),
        ([3, 3], [1, 1], "indices", "repeat"),
        ([-1, 3], [1, 1], "indices", "from 0 to 99"),
        ([3, 100], [1, 1], "indices", "from 0 to 99"),
        ([2**70], [1], "indices", "whole numbers"),
        ([1.5], [1], "indices", "whole numbers"),
        ([1, 2], [1, math.nan], "values", "finite"),
        ([1, 2], [math.inf, 1], "values", "finite"),
        ([1], [1.1e6], "values", "1e+06"),
        ([1, 2], [1], "values", "as many"),
        ([1, 2, 3, 4, 5], [1, 1, 1, 1, 1], "indices", "at most 4"),
        ([1], ["x"], "values", "numbers"),
    ],
)
def test_what_is_wrong_is_named(indices: Any, values: Any, argument: str, reason: str) -> None:
    fine = ([0, 99], [1.0, 2.0])
    with pytest.raises(InvalidArgument) as caught:
        read_rows(
            [fine, (indices, values)],
            dimension=100,
            most=4,
            name=lambda row: f"candidates[{row}].features",
        )
    assert reason in caught.value.reason
    assert caught.value.argument == f"candidates[1].features.{argument}"


def test_clipping_shortens_only_what_is_too_long() -> None:
    rows = rows_of(([1, 2], [3.0, 4.0]), ([1], [0.5]))
    assert norms(rows).tolist() == [5.0, 0.5]
    assert on_grid(rows, bound=1.0).values.tolist() == pytest.approx([0.6, 0.8, 0.5], abs=1e-6)
    with pytest.raises(InvalidArgument, match="bound"):
        on_grid(rows, bound=0.0)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.floats(-1e6, 1e6, allow_nan=False) | st.floats(-1e-5, 1e-5), min_size=1, max_size=60
    ),
    st.sampled_from([2.0**-10, 0.1, 1.0, 3.7, 64.0]),
)
def test_integers_never_leave_the_ball_and_stay_where_they_are(
    values: list[float], bound: float
) -> None:
    rows = SparseRows(np.array([0, len(values)]), np.arange(len(values)), np.array(values))
    grid = on_grid(rows, bound=bound)
    assert (grid.steps / STEPS == grid.values).all()
    assert sum(int(step) ** 2 for step in grid.steps) <= (bound * STEPS) ** 2
    assert (np.abs(grid.values) <= np.abs(rows.values)).all()
    assert (grid.values * rows.values >= 0).all()
    again = on_grid(grid, bound=bound)
    assert (again.values == grid.values).all()
    shortest = min(1.0, bound / max(float(norms(rows)[0]), 1e-300))
    assert np.abs(grid.values - rows.values * shortest).max() <= 2 / STEPS


def test_a_row_too_long_for_the_proof_is_refused() -> None:
    long = MOST_NONZEROS + 1
    rows = SparseRows(np.array([0, long]), np.arange(long), np.ones(long))
    with pytest.raises(InvalidArgument, match="at most"):
        on_grid(rows, bound=1.0)


def test_crossing_multiplies_every_pair() -> None:
    crossing = Crossing(clients=3, items=4)
    assert crossing.dimension == 3 + 4 + 12
    client = rows_of(([0, 2], [1.0, 0.5]), dimension=3)
    items = rows_of(([1, 3], [2.0, -1.0]), ([], []), ([0], [1.0]), dimension=4)
    crossed = crossing.crossed(client, items)
    assert crossed.lengths.tolist() == [2 + 2 + 4, 2, 2 + 1 + 2]
    for row, (own, item) in enumerate(zip([dense(client, 3)[0]] * 3, dense(items, 4), strict=True)):
        expected = np.concatenate([own, item, np.outer(own, item).reshape(-1)])
        assert dense(crossed, 19)[row].tolist() == expected.tolist()
        part = crossed.take([row]).indices
        assert (np.diff(part) > 0).all()


def test_every_item_is_crossed_with_its_own_client() -> None:
    crossing = Crossing(clients=3, items=4)
    clients = rows_of(([0, 2], [1.0, 0.5]), ([], []), ([1], [2.0]), ([0], [3.0]), dimension=3)
    items = rows_of(([1, 3], [2.0, -1.0]), ([0], [1.0]), ([], []), ([2], [0.5]), dimension=4)
    together = crossing.crossed(clients, items)
    for row in range(4):
        alone = crossing.crossed(clients.take([row]), items.take([row]))
        assert together.take([row]).indices.tolist() == alone.indices.tolist()
        assert together.take([row]).values.tolist() == alone.values.tolist()
    assert dense(together, 19)[2].tolist() == [0, 2.0, *[0] * 17]


def test_rows_that_were_alone_are_joined() -> None:
    rows = rows_of(([1, 3], [2.0, -1.0]), ([], []), ([0], [1.0]))
    again = joined([rows.row(at) for at in range(3)])
    assert again.offsets.tolist() == rows.offsets.tolist()
    assert again.indices.tolist() == rows.indices.tolist()
    assert again.values.tolist() == rows.values.tolist()
    assert len(joined([])) == 0


@pytest.mark.parametrize(
    ("indices", "values"),
    [
        ([1, 2], [1.0]),
        ([1, 2, 3, 4], [1.0] * 4),
        ([2, 1], [1.0, 1.0]),
        ([1, 1], [1.0, 1.0]),
        ([-1], [1.0]),
        ([6], [1.0]),
        ([1.5], [1.0]),
        ([2**70], [1.0]),
        ([1], ["a"]),
        ([1], [1e7]),
        ([1], [math.nan]),
        ([1, 2], [math.inf, -math.inf]),
    ],
)
def test_a_row_by_itself_is_refused_as_among_others(indices: list[Any], values: list[Any]) -> None:
    with pytest.raises(InvalidArgument) as alone:
        read_row(indices, values, dimension=6, most=3, name="features[0]")
    with pytest.raises(InvalidArgument) as among:
        read_rows([(indices, values)], dimension=6, most=3)
    assert str(alone.value) == str(among.value)


def test_a_row_by_itself_is_read_as_among_others() -> None:
    for indices, values in (([], []), ([5], [-1e6]), ([0, 2, 5], [1, 2.5, 0.0])):
        alone = read_row(indices, values, dimension=6, most=3, name="features")
        among = read_rows([(indices, values)], dimension=6, most=3)
        assert [*alone.indices] == among.indices.tolist()
        assert [*alone.values] == among.values.tolist()


def test_crossing_without_a_client_is_the_item() -> None:
    crossing = Crossing(clients=0, items=4)
    items = rows_of(([1, 3], [2.0, -1.0]), dimension=4)
    nobody = read_rows([([], [])], dimension=1)
    assert crossing.crossed(nobody, items).indices.tolist() == [1, 3]
    with pytest.raises(InvalidArgument):
        Crossing(clients=2, items=0)
    with pytest.raises(InvalidArgument):
        Crossing(clients=10_000, items=10_000)
    with pytest.raises(InvalidArgument):
        crossing.crossed(items.take([0, 0]), items)
