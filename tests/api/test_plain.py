"""Plain bodies are read as the models read them, and nothing else is."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.api import direct, schemas
from discreet.api.bodies import Reader
from discreet.api.plain import plain_ask, plain_feedback, read_many, read_one
from discreet.errors import DiscreetError

QUESTION: dict[str, Any] = {"recommender": "films", "client": "ada", "context": [0.25, 0.5]}
FEEDBACK: dict[str, Any] = {"recommendation_id": "token", "reward": 1}

BARE: dict[str, Any] = {"recommender": "films", "client": "ada"}
SPARSE: dict[str, Any] = {**BARE, "features": {"indices": [0, 7], "values": [0.5, -2.0]}}


def with_features(**changes: Any) -> dict[str, Any]:
    return {**SPARSE, "features": {**SPARSE["features"], **changes}}


PLAIN = [
    (plain_ask, QUESTION),
    (plain_ask, BARE),
    (plain_ask, {**BARE, "round": "monday"}),
    (plain_ask, SPARSE),
    (plain_ask, {**BARE, "features": {"indices": [], "values": []}}),
    (plain_ask, with_features(indices=[0, 999_999])),
    (plain_ask, {**QUESTION, "context": {"age": 31, "country": "CH", "member": True, "x": None}}),
    (plain_ask, {**QUESTION, "context": {}}),
    (plain_ask, {**QUESTION, "client": "Zoë ✓"}),
    (plain_feedback, FEEDBACK),
    (plain_feedback, {**FEEDBACK, "reward": -0.5}),
]
OTHERS = [
    (plain_ask, {**QUESTION, "limit": 2}),
    (plain_ask, {**QUESTION, "round": "monday"}),
    (plain_ask, {**BARE, "round": ""}),
    (plain_ask, {**BARE, "round": None}),
    (plain_ask, {**BARE, "limit": 1}),
    (plain_ask, {**BARE, "features": None}),
    (plain_ask, {**BARE, "features": [0.5]}),
    (plain_ask, with_features(more=1)),
    (plain_ask, with_features(indices=[0])),
    (plain_ask, with_features(indices=[7, 7])),
    (plain_ask, with_features(indices=[7, 0])),
    (plain_ask, with_features(indices=[-1, 0])),
    (plain_ask, with_features(indices=[0, 1_000_000])),
    (plain_ask, with_features(indices=[0, True])),
    (plain_ask, with_features(indices=[0, 7.0])),
    (plain_ask, with_features(values=[0.5, 2])),
    (plain_ask, with_features(values=[0.5, "2"])),
    (plain_ask, with_features(indices=[*range(1_001)], values=[0.5] * 1_001)),
    (plain_ask, {**QUESTION, "context": [1, 0.5]}),
    (plain_ask, {**QUESTION, "context": [1.5, 0.5]}),
    (plain_ask, {**QUESTION, "context": [True, 0.5]}),
    (plain_ask, {**QUESTION, "context": ["0.5", 0.5]}),
    (plain_ask, {**QUESTION, "context": []}),
    (plain_ask, {**QUESTION, "context": {"a": [1]}}),
    (plain_ask, {**QUESTION, "context": {str(n): 0.5 for n in range(2_000)}}),
    (plain_ask, {**QUESTION, "client": ""}),
    (plain_ask, {**QUESTION, "client": "x" * 201}),
    (plain_ask, {**QUESTION, "client": "\x7f"}),
    (plain_ask, {**QUESTION, "client": 7}),
    (plain_ask, {"recommender": "films", "clients": "ada", "context": [0.5]}),
    (plain_ask, []),
    (plain_feedback, {**FEEDBACK, "reward": True}),
    (plain_feedback, {**FEEDBACK, "reward": "1"}),
    (plain_feedback, {**FEEDBACK, "reward": 10**400}),
    (plain_feedback, {**FEEDBACK, "recommendation_id": ""}),
    (plain_feedback, {**FEEDBACK, "item": "a"}),
    (plain_feedback, {"event_id": "e", "reward": 1.0}),
]


def modelled(take: Any, body: bytes) -> Any:
    """Return what the models make of a body."""
    if take is plain_ask:
        ask = direct._ask(Reader(schemas.RecommendRequest)(body))
        return ask._replace(exclude=tuple(ask.exclude))
    return direct._feedback(Reader(schemas.FeedbackRequest)(body))


def encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


@pytest.mark.parametrize(("take", "value"), PLAIN)
def test_a_plain_body_is_read_as_the_models_read_it(take: Any, value: Any) -> None:
    body = encoded(value)
    found = read_one(take, body)
    assert found is not None
    assert found == modelled(take, body)
    assert [type(each) for each in found] == [type(each) for each in modelled(take, body)]


@pytest.mark.parametrize(("take", "value"), OTHERS)
def test_everything_else_is_left_to_the_models(take: Any, value: Any) -> None:
    assert read_one(take, encoded(value)) is None


@pytest.mark.parametrize(
    "body",
    [
        b'{"recommender":"films","client":"ada","context":[0.5],"client":"eve"}',
        b'{"recommender":"films","client":"ada","context":{"a":0.5,"a":0.25}}',
        b'{"recommender":"films","client":"ada","client":"eve"}',
        b'{"recommender":"films","client":"ada","features":{"indices":[0],"values":[NaN]}}',
        b'{"recommender":"films","client":"ada","features":{"indices":[0],"values":[1e999]}}',
        b'{"recommender":"films","client":"ada","features":'
        b'{"indices":[0],"values":[0.5],"values":[1.0]}}',
        b'{"recommender":"films","client":"a\\u0064a","context":[0.5]}',
        b'{"recommender":"films","client":"ada","context":[NaN]}',
        b'{"recommender":"films","client":"\xff","context":[0.5]}',
        b'{"recommender":"films","client":"ada","context":[0.5]',
        b"",
    ],
)
def test_what_has_two_readings_or_none_is_left_to_the_models(body: bytes) -> None:
    assert read_one(plain_ask, body) is None


def test_a_batch_is_plain_if_every_entry_is() -> None:
    batch = {"requests": [QUESTION, {**QUESTION, "client": "eve"}]}
    found = read_many(plain_ask, "requests", encoded(batch))
    assert found is not None
    assert [ask.client for ask in found] == ["ada", "eve"]
    assert read_many(plain_ask, "requests", encoded({"requests": []})) == []
    for other in (
        {"requests": [QUESTION, {**QUESTION, "limit": 2}]},
        {"requests": [QUESTION] * 1_001},
        {"requests": QUESTION},
        {"requests": [], "more": []},
        {"feedback": []},
        [],
    ):
        assert read_many(plain_ask, "requests", encoded(other)) is None
    twice = encoded(batch).replace(b'"client"', b'"client":"x","client"', 1)
    assert read_many(plain_ask, "requests", twice) is None


_NAMES = st.sampled_from(
    ["recommender", "client", "context", "features", "round", "reward", "recommendation_id", "x"]
)
_SCALARS = (
    st.text(max_size=3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.integers()
    | st.booleans()
    | st.none()
)
_VALUES = (
    _SCALARS
    | st.lists(st.floats(0, 1) | _SCALARS, max_size=3)
    | st.dictionaries(st.text(max_size=3), _SCALARS, max_size=3)
    | st.fixed_dictionaries(
        {
            "indices": st.lists(st.integers(0, 9) | _SCALARS, max_size=3),
            "values": st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3),
        }
    )
)


@given(st.dictionaries(_NAMES, _VALUES, max_size=3), st.sampled_from([plain_ask, plain_feedback]))
def test_nothing_is_taken_that_the_models_refuse(value: Any, take: Any) -> None:
    body = encoded(value) if "\\ud" not in json.dumps(value) else b""
    found = read_one(take, body)
    if found is not None:
        try:
            assert found == modelled(take, body)
        except (DiscreetError, ValueError) as error:
            pytest.fail(f"refused by the models: {error}")
