"""Bodies are bounded, strict about numbers, and refuse what they do not know."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from discreet.api import items_schemas, peers_schemas, schemas
from discreet.api.items_schemas import ItemsRequest
from discreet.api.peers_schemas import ForwardRequest, PeerFeedbackRequest
from discreet.api.schemas import (
    FeedbackRequest,
    RecommendRequest,
)
from discreet.validation import explained, problems_with

ASK = {"recommender": "films", "client": "x"}


def requests() -> list[type[BaseModel]]:
    """Return every model of a request's body."""
    return [
        model
        for module in (schemas, items_schemas, peers_schemas)
        for model in vars(module).values()
        if isinstance(model, type) and issubclass(model, schemas.Body)
    ]


def test_no_body_takes_unknown_fields_or_can_be_changed() -> None:
    assert len(requests()) > 8
    for model in requests():
        assert model.model_config["extra"] == "forbid"
        assert model.model_config["frozen"] is True


def lists_and_strings(schema: dict[str, Any]) -> list[dict[str, Any]]:
    found = [schema] if schema.get("type") in ("array", "string") else []
    for value in schema.values():
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict):
                found += lists_and_strings(inner)
    return found


def test_every_list_and_every_string_of_a_body_is_bounded() -> None:
    for model in requests():
        for part in lists_and_strings(model.model_json_schema()):
            assert "maxItems" in part or "maxLength" in part or "enum" in part, (model, part)


@pytest.mark.parametrize("value", ["0.5", True, None, [], 1.5, -0.5, float("nan"), float("inf")])
def test_a_number_is_a_number_from_0_to_1(value: Any) -> None:
    for model, body in (
        (PeerFeedbackRequest, {"reward": value, "handle": "h"}),
        (RecommendRequest, {**ASK, "context": [value]}),
        (ForwardRequest, {"centre": [value], "epsilon": 1.0}),
    ):
        with pytest.raises(ValidationError):
            model.model_validate(body)


@pytest.mark.parametrize("context", ["young", 7, True, None])
def test_a_context_of_neither_form_is_refused_with_both_forms_named(context: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        RecommendRequest.model_validate({**ASK, "context": context})
    (problem,) = explained(problems_with(refused.value))
    assert problem["field"] == "context"
    assert "list of numbers" in problem["message"]
    assert "object" in problem["message"]


@pytest.mark.parametrize("value", ["0.5", True, None, [], float("nan"), float("inf")])
def test_a_reward_is_a_number_whose_range_the_document_declares(value: Any) -> None:
    with pytest.raises(ValidationError):
        FeedbackRequest.model_validate({"reward": value, "event_id": "e"})
    assert FeedbackRequest.model_validate({"reward": -7, "event_id": "e"}).reward == -7.0


def test_items_are_ids_or_objects() -> None:
    body = ItemsRequest.model_validate({"items": ["a", {"id": "b", "hidden": True}]})
    assert body.items[0] == "a"
    for items in ([], [1], [{"hidden": True}], ["x"] * 10_001):
        with pytest.raises(ValidationError):
            ItemsRequest.model_validate({"items": items})
