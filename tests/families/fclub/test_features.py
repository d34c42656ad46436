"""Features in steps: never longer than they were, and with exact products."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.families.fclub.features import FEATURE_STEPS, coordinates, decoded
from discreet.families.fclub.sums import STEPS, SumsEncoding
from discreet.families.questions import Sparse

NUMBER = st.floats(-1e300, 1e300)


@given(st.lists(NUMBER, min_size=1, max_size=8))
def test_cutting_shortens_and_products_are_exact(features: list[float]) -> None:
    size = len(features)
    steps = coordinates(tuple(features), dimensions=size, scale=True, field="f")
    x = decoded(steps)
    assert np.linalg.norm(x) <= 1 + 1e-12
    assert all(a * b >= 0 for a, b in zip(x, np.sign(features), strict=True))
    half = size * (size + 1) // 2
    rows, columns = np.triu_indices(size)
    learned = SumsEncoding(dimensions=size).observation(x=x, reward=1.0)[1 : 1 + half]
    whole = steps.astype(np.int64)
    step = STEPS // FEATURE_STEPS**2
    assert learned.tolist() == (whole[rows] * whole[columns] * step).tolist()


@pytest.mark.parametrize("features", [(1.0, 0.0), (0.6, 0.8), (-1.0, 0.0), (0.0, 0.0)])
def test_a_norm_of_one_is_no_excess(features: tuple[float, float]) -> None:
    found = coordinates(features, dimensions=2, scale=False, field="f")
    assert np.abs(decoded(found) - features).max() <= 1 / FEATURE_STEPS


@pytest.mark.parametrize(
    ("features", "reason"),
    [
        ((0.8, 0.8), "norm of at most 1"),
        ((1e200, 1e200), "norm of at most 1"),
        ((0.5,), "2 numbers"),
        ((math.nan, 0.0), "finite"),
        ((math.inf, 0.0), "finite"),
        (Sparse((0,), (1.0,)), "list of numbers"),
    ],
)
def test_features_that_cannot_be_used_are_named(features: object, reason: str) -> None:
    with pytest.raises(InvalidArgument, match=reason) as caught:
        coordinates(features, dimensions=2, scale=False, field="f")  # type: ignore[arg-type]
    assert caught.value.argument == "f"


def test_long_features_are_scaled_where_that_is_asked_for() -> None:
    found = coordinates((3.0, -4.0), dimensions=2, scale=True, field="f")
    assert np.abs(decoded(found) - [0.6, -0.8]).max() <= 1 / FEATURE_STEPS
