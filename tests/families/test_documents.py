"""A document that is wrong is refused, and says where."""

from typing import Any

import pytest
from pydantic import ValidationError

from discreet.families.p_dap.document import AdaptivePartitionDocument

GOOD: dict[str, Any] = {"algorithm": "p-dap", "items": ["a"], "context": {"dimensions": 2}}


def test_plain_ids_and_objects_are_items_alike() -> None:
    document = AdaptivePartitionDocument.model_validate(
        {**GOOD, "items": ["a", {"id": "b", "hidden": True}]}
    )
    assert [(item.id, item.hidden) for item in document.items] == [("a", False), ("b", True)]


def test_protection_is_the_default() -> None:
    privacy = AdaptivePartitionDocument.model_validate(GOOD).privacy
    assert privacy.mode == "uniform"
    assert privacy.on_exhausted == "degrade"


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
        ({"privacy": {"epsilon": 0}}, "privacy.epsilon"),
        ({"privacy": {"epsilon": -1}}, "privacy.epsilon"),
        ({"privacy": {"epsilon": "1"}}, "privacy.epsilon"),
        ({"privacy": {"epsilon": float("nan")}}, "privacy.epsilon"),
        ({"privacy": {"epsilon": float("inf")}}, "privacy.epsilon"),
        ({"privacy": {"epsilom": 1}}, "privacy.epsilom"),
        ({"privacy": {"mode": "off"}}, "privacy.mode"),
        ({"privacy": {"budget": {"epsilon": 1, "delta": 1}}}, "privacy.budget.delta"),
        ({"privacy": {"budget": {"epsilon": 1, "delta": 0}, "accounting": "zcdp"}}, "privacy"),
        ({"partition": {"segments": 1}}, "partition.segments"),
        ({"exploration": {"rate": 1.5}}, "exploration.rate"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_each_mistake_is_named(change: dict[str, Any], where: str) -> None:
    with pytest.raises(ValidationError) as caught:
        AdaptivePartitionDocument.model_validate({**GOOD, **change})
    assert where in [".".join(map(str, error["loc"])) for error in caught.value.errors()]
