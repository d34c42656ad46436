"""Fields that mean nothing to a family are refused, not ignored."""

import pytest

from discreet.errors import InvalidArgument
from discreet.families.questions import Ask, Candidate, Sparse, plain_ids, refuse_unused


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("context", [0.5]),
        ("features", Sparse(indices=[1], values=[0.5])),
        ("category", "drama"),
        ("round", "first"),
    ],
)
def test_a_field_that_means_nothing_is_refused_by_name(field: str, value: object) -> None:
    ask = Ask(recommender="films", client="ada", **{field: value})  # type: ignore[arg-type]
    refuse_unused(ask, uses=(field,))
    with pytest.raises(InvalidArgument) as caught:
        refuse_unused(ask)
    assert caught.value.argument == field


def test_what_was_not_given_is_never_refused() -> None:
    refuse_unused(Ask(recommender="films", client="ada"))


def test_candidates_with_features_are_refused_where_only_ids_count() -> None:
    ask = Ask(recommender="films", client="ada", candidates=["a", Candidate("b", (0.1, 0.2))])
    with pytest.raises(InvalidArgument, match="ids"):
        plain_ids(ask)
    assert plain_ids(Ask(recommender="films", client="ada", candidates=["a"])) == ["a"]
    assert plain_ids(Ask(recommender="films", client="ada")) is None
