"""What a collaborative recommender's document may say."""

import pytest
from pydantic import ValidationError

from discreet.families.collaborative.document import CollaborativeDocument
from tests.families.collaborative.library import document

PLAIN = {"algorithm": "collaborative", "items": ["a", "b"]}


def test_without_a_word_answers_are_exact_and_feedback_is_private() -> None:
    privacy = CollaborativeDocument.model_validate(PLAIN).model_dump()["privacy"]
    assert privacy["answers"] == "exact"
    assert privacy["feedback"]["epsilon"] == 1.0


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"privacy": {"answers": "private"}}, ("privacy", "answers")),
        ({"privacy": {"mode": "none"}}, ("privacy", "mode")),
        (
            {"privacy": {"feedback": {"epsilon": 0}}},
            ("privacy", "feedback", "(private)", "epsilon"),
        ),
        ({"privacy": {"feedback": "none"}}, ("privacy", "feedback")),
        ({"training": {"neighbours": 501}}, ("training", "neighbours")),
        ({"training": {"seconds": 60}}, ("training", "seconds")),
        ({"items": [{"id": "a", "features": [1.0]}]}, ()),
    ],
)
def test_what_cannot_be_used_is_named(changes: dict[str, object], place: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError) as refused:
        CollaborativeDocument.model_validate({**PLAIN, **changes})
    assert place in {error["loc"] for error in refused.value.errors()}


def test_the_price_of_waiting_feedback_cannot_change() -> None:
    def fixed(**feedback: object) -> object:
        return document(privacy={"feedback": feedback}).fixed()

    assert fixed(epsilon=1.0) != fixed(epsilon=2.0)
    assert fixed(delta=1e-6) != fixed(delta=1e-7)
    assert fixed(epsilon=1.0) != document(privacy={"feedback": "exact"}).fixed()
    assert fixed(budget={"epsilon": 4.0}) == fixed(budget={"epsilon": 9.0})
    assert document(privacy={"answers": "exact"}).fixed() == (
        document(privacy={"answers": "on-device"}).fixed()
    )
