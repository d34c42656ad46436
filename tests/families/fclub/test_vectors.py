"""Features in steps: never longer than they were, and with exact products."""

import numpy as np
import pytest
from discreet.families.fclub.letters import STEPS as GRID
from discreet.families.fclub.letters import Privatizer
from discreet.families.fclub.vectors import STEPS, coordinates, decoded, filled
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidArgument

NUMBER = st.floats(-1e300, 1e300)


@given(st.lists(NUMBER, min_size=1, max_size=8))
def test_cutting_shortens_and_products_are_exact(features: list[float]) -> None:
    size = len(features)
    steps = coordinates(tuple(features), dimensions=size, scale=True, field="f")
    x = decoded(steps)
    norm = float(np.linalg.norm(np.array(features) / max(1e-300, np.abs(features).max())))
    if norm > 0:
        assert np.linalg.norm(x) <= 1 + 1e-12
        assert all(a * b >= 0 for a, b in zip(x, np.sign(features), strict=True))
    half = size * (size + 1) // 2
    rows, columns = np.triu_indices(size)
    learned = Privatizer(dimensions=size).observation(x=x, reward=1.0)[1 : 1 + half]
    whole = steps.astype(np.int64)
    assert learned.tolist() == (whole[rows] * whole[columns] * (GRID // STEPS**2)).tolist()


@pytest.mark.parametrize("features", [(1.0, 0.0), (0.6, 0.8), (-1.0, 0.0), (0.0, 0.0)])
def test_a_norm_of_one_is_no_excess(features: tuple[float, float]) -> None:
    found = coordinates(features, dimensions=2, scale=False, field="f")
    assert np.abs(decoded(found) - features).max() <= 1 / STEPS


def test_more_than_one_is() -> None:
    with pytest.raises(InvalidArgument, match="norm of at most 1"):
        coordinates((0.8, 0.8), dimensions=2, scale=False, field="f")
    with pytest.raises(InvalidArgument, match="norm of at most 1"):
        coordinates((1e200, 1e200), dimensions=2, scale=False, field="f")


def test_what_was_never_written_is_zero() -> None:
    assert filled(np.array([1, 2], dtype=np.int64), 4).tolist() == [1, 2, 0, 0]
