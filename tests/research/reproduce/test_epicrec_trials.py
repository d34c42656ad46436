"""Folds of the evaluation of profile perturbation: repeatable, and of known data sets."""

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.reproduce.epicrec_trials import FIELDS, METHODS, Fold, load


def test_a_data_set_needs_its_folder() -> None:
    with pytest.raises(InvalidArgument, match="folder"):
        load("movielens", None)


def test_a_fold_is_the_same_again_apart_from_its_time() -> None:
    fold = Fold("synthetic", None, 3, 2, 2, {"single": (0.5,), "category": (0.5,)})
    one, two = fold.run(), fold.run()
    timed = FIELDS.index("seconds")
    assert one.by_method.keys() == two.by_method.keys()
    for key, table in one.by_method.items():
        assert np.array_equal(
            np.delete(table, timed, axis=1), np.delete(two.by_method[key], timed, axis=1)
        )
        assert not np.array_equal(table[0], table[1])  # seeds differ
    assert {key[1] for key in one.by_method if key[0] == "single"} == set(METHODS)
