"""What people write for contextual, and its defaults."""

import pytest
from pydantic import ValidationError

from discreet.families.contextual.document import (
    EXACT_RELEASES,
    PRIVATE_RELEASES,
    ContextualDocument,
)
from discreet.families.documents import ReleasesDocument
from discreet.families.registration import read_document


def written(**fields: object) -> ContextualDocument:
    document = read_document(
        {"algorithm": "contextual", "items": ["a", "b"], "context": {"dimensions": 3}, **fields}
    )
    assert isinstance(document, ContextualDocument)
    return document


def test_a_vector_and_a_list_of_items_are_enough() -> None:
    document = written()
    assert document.privacy.answers != "exact"
    assert document.pace() == PRIVATE_RELEASES


def test_exact_feedback_is_released_more_often_because_it_needs_no_noise() -> None:
    assert written(privacy={"feedback": "exact"}).pace() == EXACT_RELEASES
    asked = ReleasesDocument(seconds=60)
    assert written(releases={"seconds": 60}).pace() == asked


def test_a_short_half_life_is_followed_by_releases_where_they_cost_time_alone() -> None:
    for days, longest in ((30.0, 3_600.0), (0.1, 864.0), (0.0001, 0.864)):
        document = written(privacy={"feedback": "exact"}, learning={"half_life_days": days})
        assert document.pace().longest == pytest.approx(longest)
        assert document.pace().pause(1e9) == pytest.approx(longest)
    assert written(learning={"half_life_days": 0.1}).pace() == PRIVATE_RELEASES


def test_what_cannot_change_is_the_context_and_the_price_of_feedback() -> None:
    one = written().fixed()
    assert one == written(exploration={"rate": 0.5}, learning={"half_life_days": 1}).fixed()
    assert one != written(context={"dimensions": 4}).fixed()
    assert one != written(privacy={"feedback": {"epsilon": 2}}).fixed()


def test_named_fields_are_taken() -> None:
    assert written(context={"fields": {"new": {"type": "boolean"}}}).context.size >= 1


@pytest.mark.parametrize(
    "fields",
    [
        {"context": {"dimensions": 0}},
        {"exploration": {"rate": 1.5}},
        {"learning": {"half_life_days": 0}},
        {"vendors": []},
    ],
)
def test_nonsense_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        written(**fields)
