"""A document that is wrong is refused, and says where."""

from typing import Any

import pytest
from pydantic import ValidationError

from discreet.families.p_dap.document import AdaptivePartitionDocument
from discreet.validation import explained, problems_with

GOOD: dict[str, Any] = {"algorithm": "p-dap", "items": ["a"], "context": {"dimensions": 2}}


def test_plain_ids_and_objects_are_items_alike() -> None:
    document = AdaptivePartitionDocument.model_validate(
        {**GOOD, "items": ["a", {"id": "b", "hidden": True}]}
    )
    assert [(item.id, item.hidden) for item in document.items] == [("a", False), ("b", True)]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"algorithm": "magic"}, "algorithm"),
        ({"context": {"dimensions": 0}}, "context.dimensions"),
        ({"context": {"dimensions": True}}, "context.dimensions"),
        ({"context": {"dimensions": 2.5}}, "context.dimensions"),
        ({"items": ["a", "a"]}, ""),
        ({"items": [""]}, "items.0.id"),
        ({"items": ["x" * 201]}, "items.0.id"),
        ({"items": ["tab\there"]}, "items.0.id"),
        ({"privacy": {"answers": {"epsilon": 0}}}, "privacy.answers.epsilon"),
        ({"privacy": {"answers": {"epsilon": -1}}}, "privacy.answers.epsilon"),
        ({"privacy": {"answers": {"epsilon": "1"}}}, "privacy.answers.epsilon"),
        ({"privacy": {"answers": {"epsilon": float("nan")}}}, "privacy.answers.epsilon"),
        ({"privacy": {"answers": {"epsilon": float("inf")}}}, "privacy.answers.epsilon"),
        ({"privacy": {"answers": {"epsilom": 1}}}, "privacy.answers.epsilom"),
        ({"privacy": {"answers": {"mode": "off"}}}, "privacy.answers.mode"),
        ({"privacy": {"answers": "off"}}, "privacy.answers"),
        ({"privacy": {"answers": {"epsilon": 2, "budget": {"epsilon": 1}}}}, "privacy.answers"),
        ({"privacy": {"feedback": {"epsilon": 2, "budget": {"epsilon": 1}}}}, "privacy.feedback"),
        ({"privacy": {"feedback": {"delta": 0.5}}}, "privacy.feedback.delta"),
        (
            {"privacy": {"feedback": {"budget": {"epsilon": 1, "delta": 1}}}},
            "privacy.feedback.budget.delta",
        ),
        (
            {"privacy": {"feedback": {"budget": {"epsilon": 1, "delta": 0}}}},
            "privacy.feedback",
        ),
        ({"partition": {"segments": 1}}, "partition.segments"),
        ({"exploration": {"rate": 1.5}}, "exploration.rate"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_each_mistake_is_named(change: dict[str, Any], where: str) -> None:
    with pytest.raises(ValidationError) as caught:
        AdaptivePartitionDocument.model_validate({**GOOD, **change})
    places = [
        ".".join(str(part) for part in error["loc"] if not str(part).startswith("("))
        for error in caught.value.errors()
    ]
    assert where in places


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"privacy": {"answers": "off"}}, "privacy.answers", "an object with an epsilon"),
        ({"privacy": {"feedback": "none"}}, "privacy.feedback", "or the word exact"),
        (
            {"context": {"dimensions": 2, "fields": {"member": {"type": "boolean"}}}},
            "context",
            "either dimensions or fields",
        ),
    ],
)
def test_a_mistake_says_what_would_be_accepted(
    change: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        AdaptivePartitionDocument.model_validate({**GOOD, **change})
    (problem,) = explained(problems_with(caught.value))
    assert problem["field"] == field
    assert words in problem["message"]
