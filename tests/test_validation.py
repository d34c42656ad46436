"""Failed validations speak our words, and never the input's."""

from typing import Annotated, Any, Self

import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError, model_validator

from discreet.families.registration import read_document
from discreet.validation import explained, problems_with


def message(kind: Any, value: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(value)
    return explained(problems_with(caught.value))[0]["message"]


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (Annotated[float, Field(strict=True)], "canary", "must be a number"),
        (Annotated[int, Field(strict=True)], "canary", "must be a whole number"),
        (Annotated[str, Field(strict=True)], 7, "must be a string"),
        (Annotated[float, Field(le=1)], 2.0, "must be less than or equal to 1"),
        (Annotated[float, Field(allow_inf_nan=False)], float("nan"), "must be a finite number"),
        (Annotated[str, Field(max_length=3)], "canary", "must have at most 3 characters"),
        (Annotated[list[int], Field(max_length=1)], [1, 2], "must have at most 1 item"),
        (Annotated[str, Field(pattern="^a$")], "canary", "must match pattern '^a$'"),
        (list[int], 3, "must be a list"),
    ],
)
def test_messages_say_what_would_be_accepted(kind: Any, value: Any, said: str) -> None:
    assert message(kind, value) == said


class Inner(BaseModel, extra="forbid"):
    value: int


class Outer(BaseModel):
    inner: list[Inner]


def test_fields_are_named_from_the_outside_in() -> None:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate({"inner": [{"value": 1}, {"value": "x", "other": 1}]})
    fields = [one["field"] for one in explained(problems_with(caught.value))]
    assert fields == ["inner[1].value", "inner[1].other"]


def test_where_a_value_came_from_is_not_part_of_its_name() -> None:
    detail = {"type": "missing", "loc": ("query", "recommender"), "msg": ""}
    assert explained([detail]) == [{"field": "recommender", "message": "is required"}]
    assert explained([{**detail, "loc": ("body",)}])[0]["field"] == "body"


class Listed(BaseModel):
    items: list[str]

    @model_validator(mode="after")
    def _usable(self) -> Self:
        raise ValueError("items[0].title: not supported by p-dap")


class Holding(BaseModel):
    listed: Listed


def test_a_whole_object_may_name_the_field_that_is_wrong() -> None:
    for kind, value, field in (
        (Listed, {"items": ["a"]}, "items[0].title"),
        (Holding, {"listed": {"items": []}}, "listed.items[0].title"),
    ):
        with pytest.raises(ValidationError) as caught:
            kind.model_validate(value)
        assert explained(problems_with(caught.value)) == [
            {"field": field, "message": "not supported by p-dap"}
        ]


def test_an_unknown_algorithm_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValidationError) as caught:
        read_document({"algorithm": "canary"})
    (said,) = explained(problems_with(caught.value))
    assert said["field"] == "algorithm"
    assert said["message"].startswith("must be one of contextual, p-dap, fclub,")


def test_an_unknown_field_is_called_that() -> None:
    with pytest.raises(ValidationError) as caught:
        read_document({"algorithm": "p-dap", "context": {"dimensions": 1, "epsilom": 1}})
    assert explained(problems_with(caught.value)) == [
        {"field": "context.epsilom", "message": "unknown field"}
    ]
