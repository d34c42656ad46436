from collections.abc import Callable

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.privacy.arms import check_base, check_best, check_ranking, check_utilities

REVEALING = 0.123456789


def test_usable_values_come_back() -> None:
    assert check_utilities([0, 1], 0.0, 1.0).tolist() == [0.0, 1.0]
    assert check_base([0, 3], 2, 3).tolist() == [0, 3]
    assert check_ranking(np.array([1, 0])) == [1, 0]


@pytest.mark.parametrize(
    "call",
    [
        lambda: check_utilities(np.array([REVEALING + 1]), 0.0, 1.0),
        lambda: check_utilities(np.array([str(REVEALING), "x"]), 0.0, 1.0),
        lambda: check_base([123456789], 1, 1000),
        lambda: check_best(123456789, 3),
        lambda: check_ranking([0, 123456789]),
    ],
)
def test_a_refusal_does_not_repeat_the_value(call: Callable[[], object]) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        call()
    assert "123456789" not in str(refusal.value)
    # Nor does the error that led to it, which a log might print.
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None
