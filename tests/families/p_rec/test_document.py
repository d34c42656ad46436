"""What can be written, and what cannot change while a run that was charged for it goes on."""

import pytest

from discreet.families.documents import ItemDocument, UnusableItem
from discreet.families.p_rec.document import VotersDocument
from tests.families.p_rec.conftest import document


@pytest.mark.parametrize(
    "changes",
    [
        {"items": [{"id": "a", "hidden": True}]},
        {"items": [{"id": "a", "features": [1.0]}]},
        {"objects": 1},
        {"horizon": 0},
        {"horizon": 1_000_001},
        {"radius": -1},
        {"voters": 1.0},
        {"privacy": {"budget": {"epsilon": 20.0, "delta": 0.0}}},
        {"privacy": {"budget": {"epsilon": 20.0, "delta": 1.9e-9}}},
        {"privacy": {"run_delta": 0.1}},
        {"privacy": {"accounting": "zcdp"}},
    ],
)
def test_unusable_fields_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        document(**changes)


def test_items_describe_objects_and_hide_none() -> None:
    document().require_usable(ItemDocument(id="a", title="A"))
    with pytest.raises(UnusableItem, match="rounds say what is shown"):
        document().require_usable(ItemDocument(id="a", hidden=True))


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("objects", {"objects": 3}),
        ("most_shown", {"most_shown": 2}),
        ("peers", {"peers": 160}),
        ("radius", {"radius": 1}),
        ("diversity", {"diversity": 1}),
        ("horizon", {"horizon": 70}),
        ("voters", {"voters": 2000}),
        ("privacy.run_delta", {"privacy": {"run_delta": 1e-8}}),
    ],
)
def test_what_a_run_was_charged_for_cannot_change(field: str, changes: dict[str, object]) -> None:
    before, after = document().fixed(), document(**changes).fixed()
    assert [name for name in before if before[name] != after[name]] == [field]


def test_the_budget_can() -> None:
    wider = document(privacy={"budget": {"epsilon": 30.0, "delta": 1e-6}})
    assert wider.fixed() == document().fixed()


def test_a_document_survives_being_stored() -> None:
    one = document(radius=1, voting_ends="when_closed")
    assert VotersDocument.model_validate(one.model_dump()) == one
