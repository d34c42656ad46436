"""Nested features: which of them are the same, how they are crossed, and who is named."""

import math
from typing import Any

import pytest

from discreet.errors import InvalidArgument
from discreet.families.nested import DEEPEST, NestedReader, PersonalizerDocument
from discreet.families.questions import Candidate, Sparse

DIMENSION = 2**20


def reader(most: int = 200, dimension: int = DIMENSION, **changes: Any) -> NestedReader:
    document = PersonalizerDocument.model_validate(changes)
    return NestedReader(document, dimension=dimension, most=most)


def positions(
    context: list[Any], features: list[Any], action: str = "tea", **changes: Any
) -> set[int]:
    (candidate,) = reader(**changes).candidates(context, [(action, features)])
    assert isinstance(candidate, Candidate)
    assert isinstance(candidate.features, Sparse)
    assert all(value == 1.0 for value in candidate.features.values), "two features met"
    assert list(candidate.features.indices) == sorted(candidate.features.indices)
    return set(candidate.features.indices)


MORNING, EVENING = [{"timeOfDay": "morning"}], [{"timeOfDay": "evening"}]
SWEET = [{"taste": "sweet", "nested": {"spice": "none"}}]


def test_an_action_has_its_features_its_id_and_their_products_with_the_context() -> None:
    own = positions([], SWEET)
    assert len(own) == 3
    morning, evening = positions(MORNING, SWEET), positions(EVENING, SWEET)
    assert morning & evening == own
    assert len(morning - own) == len(evening - own) == 3
    other = positions(MORNING, SWEET, action="cake")
    assert len(morning & other) == 4, "all but the id, and the id's product"


def test_positions_are_the_same_in_every_version() -> None:
    """What was learned under them would be lost otherwise."""
    assert positions(MORNING, [{"taste": "sweet"}]) == {551094, 831788, 836122, 839566}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([{"user": {"device": "phone"}}], [{"user.device": "phone"}]),
        ([{"a": 1}, {"b": True}], [{"b": True, "a": 1}]),
        ([{"likes": ["jazz", "rock"]}], [{"likes": "rock"}, {"likes": "jazz"}]),
        ([{"age": 34}], [{"age": 21.5}]),
        ([{"price": 0.003}], [{"price": 0.0049}]),
        ([{"hour": 8}], [{"hour": 8.0}]),
        ([{"gone": None}], []),
        ([{"deep": [[{"x": "y"}]]}], [{"deep": {"x": "y"}}]),
        ([{"userId": "ada", "user": {"id": 7, "age": 40}}], [{"user": {"age": 40}}]),
    ],
)
def test_what_says_the_same_is_the_same(one: list[Any], other: list[Any]) -> None:
    assert positions(one, SWEET) == positions(other, SWEET)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([{"hour": 8}], [{"hour": 9}]),
        ([{"age": 34}], [{"age": 51}]),
        ([{"age": 34}], [{"age": -34}]),
        ([{"price": 0.003}], [{"price": 0.3}]),
        ([{"member": True}], [{"member": False}]),
        ([{"member": True}], [{"member": 1}]),
        ([{"a": "x"}], [{"b": "x"}]),
        ([{"userid": "ada"}], [{"userid": "bob"}]),
    ],
)
def test_what_says_something_else_is_something_else(one: list[Any], other: list[Any]) -> None:
    assert positions(one, SWEET) != positions(other, SWEET)


def test_only_what_the_document_crosses_is_multiplied() -> None:
    context = [*MORNING, {"user": {"age": 40, "device": "phone"}}]
    own = positions([], SWEET)
    assert positions(context, SWEET, cross=[]) == own
    timed = positions(context, SWEET, cross=[["timeOfDay", "action"]])
    assert timed == positions(MORNING, SWEET)
    tastes = positions(context, SWEET, cross=[["timeOfDay", "taste"], ["user", "nested"]])
    assert len(tastes - own) == 1 + 2
    assert positions(context, SWEET, cross=[["nowhere", "action"]]) == own


def test_features_that_meet_count_together() -> None:
    (candidate,) = reader(dimension=1).candidates(MORNING, [("tea", SWEET)])
    assert candidate.features == Sparse([0], [6.0])


@pytest.mark.parametrize(
    ("context", "client"),
    [
        ([{"userId": "ada"}], "ada"),
        ([{"user": {"id": "ada", "age": 3}}], "ada"),
        ([{"user": {"id": 17}}], "17"),
        ([{"user": {"id": "second"}}, {"userId": "first"}], "first"),
        ([{"userId": None}, {"user": {"id": "ada"}}], "ada"),
        ([{"user": {"name": "ada"}}], None),
        ([], None),
    ],
)
def test_a_feature_names_the_client(context: list[Any], client: str | None) -> None:
    assert reader().client(context) == client


def test_a_client_is_named_by_a_text() -> None:
    for value in (True, 1.5):
        with pytest.raises(InvalidArgument, match="userId"):
            reader().client([{"userId": value}])


def test_what_is_too_much_is_refused() -> None:
    many = [{f"f{n}": "x" for n in range(20)}]
    assert len(positions(many, SWEET, most=63)) == 63
    with pytest.raises(InvalidArgument, match="at most 62"):
        positions(many, SWEET, most=62)
    with pytest.raises(InvalidArgument, match="contextFeatures"):
        positions(many, [], most=19)
    with pytest.raises(InvalidArgument, match=r"actions\[0\].features"):
        positions([], many, most=19)
    deep: Any = "x"
    for _ in range(DEEPEST + 1):
        deep = [deep]
    with pytest.raises(InvalidArgument, match="deep"):
        positions(deep, SWEET)


@pytest.mark.parametrize("value", [math.nan, math.inf, 10**400, object()])
def test_a_value_is_finite(value: Any) -> None:
    with pytest.raises(InvalidArgument, match="finite"):
        positions([{"x": value}], SWEET)
