"""Failed validations speak our words, and never the input's."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

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
    assert fields == ["inner.1.value", "inner.1.other"]


def test_where_a_value_came_from_is_not_part_of_its_name() -> None:
    detail = {"type": "missing", "loc": ("query", "recommender"), "msg": ""}
    assert explained([detail]) == [{"field": "recommender", "message": "is required"}]
    assert explained([{**detail, "loc": ("body",)}])[0]["field"] == "body"
