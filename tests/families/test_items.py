"""Items: what may be written about them, and how many there may be of them."""

from typing import Any

import pytest
from pydantic import ValidationError

from discreet.families.documents import FEW_ITEMS, MOST_ITEMS, ItemDocument
from discreet.families.items import as_item
from discreet.families.registration import FAMILIES, read_document
from tests.contracts.samples import SAMPLES


@pytest.mark.parametrize(
    "attributes",
    [
        {"": 1},
        {"a\n": 1},
        {"a": float("nan")},
        {"a": {"b": float("inf")}},
        {"a": "x" * 4_090},
        {"a": "\ud800"},
        {str(number): 0 for number in range(65)},
        {"a": object()},
        [1],
    ],
)
def test_attributes_are_small_and_json(attributes: Any) -> None:
    with pytest.raises(ValidationError):
        ItemDocument(id="x", attributes=attributes)


def test_attributes_may_be_any_json() -> None:
    attributes = {"price": 3.5, "tags": ["a", None], "shop": {"open": True}}
    assert (
        ItemDocument.model_validate({"id": "x", "attributes": attributes}).attributes == attributes
    )


def test_an_id_alone_is_an_item() -> None:
    assert as_item("x") == {"id": "x"}
    assert as_item({"id": "x", "hidden": True}) == {"id": "x", "hidden": True}


@pytest.mark.parametrize("algorithm", sorted(FAMILIES))
def test_every_family_says_how_many_items_it_holds(algorithm: str) -> None:
    document = read_document({"algorithm": algorithm, **SAMPLES[algorithm].document})
    most = document.most_items()
    assert most in (FEW_ITEMS, MOST_ITEMS)
    document.require_room(most)
    with pytest.raises(ValueError, match=rf"{algorithm} holds at most {most:,} items: \S"):
        document.require_room(most + 1)


def test_exact_feedback_needs_no_noise_for_every_item() -> None:
    fields = {"algorithm": "contextual", "context": {"dimensions": 2}}
    exact = read_document({**fields, "privacy": {"feedback": "exact"}})
    assert (read_document(fields).most_items(), exact.most_items()) == (FEW_ITEMS, MOST_ITEMS)
