"""The tree of errors: drawn in the docstring as it is in the code."""

import inspect
import pickle
import re

import pytest

from discreet import errors
from discreet.errors import StoreFenced, StoreUnavailable, StoreUnread, only_reading


def test_the_drawing_names_every_error_and_nothing_else() -> None:
    assert errors.__doc__ is not None
    drawn = set(re.findall(r"[├└]── (\w+)", errors.__doc__)) | {"DiscreetError"}
    defined = {
        name
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, errors.DiscreetError)
    }
    assert drawn == defined


def test_an_invalid_argument_names_itself() -> None:
    error = errors.InvalidArgument("limit", "must be at least 1")
    assert (error.argument, error.reason) == ("limit", "must be at least 1")
    assert str(error) == "limit: must be at least 1"


def test_an_error_of_another_process_arrives_as_it_was() -> None:
    for sent in (
        errors.InvalidArgument("--data", "is not there"),
        errors.SeededNoiseRefused(),
        errors.StoreUnavailable(retry_after=7, event_id="e"),
        errors.StoreFenced("went back in time"),
    ):
        arrived = pickle.loads(pickle.dumps(sent))
        assert type(arrived) is type(sent)
        assert (str(arrived), vars(arrived)) == (str(sent), vars(sent))


def test_a_store_that_is_gone_while_only_reading_is_told_apart() -> None:
    for error, kind in (
        (StoreUnavailable("gone", 4), StoreUnread),
        (StoreFenced("x"), StoreFenced),
    ):
        with pytest.raises(kind) as caught, only_reading():
            raise error
        assert caught.value.retry_after == error.retry_after
