"""The quick way to read a batch and the slow one give the same entries."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.api.batches import BatchReader, FailedEntry
from discreet.api.bodies import parse
from discreet.api.problems import Refused
from tests.api.readers import read_feedback, read_recommend


def shown(entry: Any) -> Any:
    return json.loads(entry.result) if isinstance(entry, FailedEntry) else entry


def slowly(reader: BatchReader[Any, Any], body: bytes) -> list[Any]:
    return [shown(reader._read_entry(one)) for one in reader._listed(body)]


WORDS = st.sampled_from(
    ["a", "client", "id", "{", 'q"t', "b\\s", "é", "", "\u2028", "\x07", "x" * 201]
)
NUMBERS = st.sampled_from([0, 1, 0.5, -1, 2, 1e300, True, None, "0.5"])
FEATURES = st.one_of(
    st.lists(NUMBERS, max_size=3),
    st.fixed_dictionaries(
        {},
        optional={
            "indices": st.lists(st.integers(-1, 3), max_size=2),
            "values": st.lists(NUMBERS, max_size=2),
        },
    ),
)
CANDIDATES = st.lists(
    WORDS | st.fixed_dictionaries({}, optional={"id": WORDS, "features": FEATURES}), max_size=3
)
GOOD = st.fixed_dictionaries(
    {
        "recommender": st.sampled_from(["films", "limit"]),
        "client": st.sampled_from(["ada", "id", "{"]),
    },
    optional={
        "context": st.lists(st.sampled_from([0, 0.5, 1]), min_size=1, max_size=2),
        "limit": st.integers(1, 100),
        "exclude": st.lists(st.sampled_from(["a", "exclude"]), max_size=2),
        "candidates": st.none() | st.lists(st.sampled_from(["a", {"id": "id", "features": [1]}])),
        "features": st.none() | st.just({"indices": [0], "values": [0.5]}) | st.just([0.5]),
        "category": st.none() | st.just("c"),
        "round": st.none() | st.just("round"),
        "event_id": st.none() | st.just("e"),
    },
)
ANY = st.fixed_dictionaries(
    {},
    optional={
        "recommender": WORDS,
        "client": WORDS,
        "context": st.lists(NUMBERS, max_size=2),
        "limit": NUMBERS,
        "exclude": st.lists(WORDS, max_size=2),
        "candidates": CANDIDATES,
        "features": FEATURES,
        "category": WORDS,
        "unheard of": NUMBERS,
    },
)
FEEDBACK = st.fixed_dictionaries(
    {"reward": st.sampled_from([0, 0.5, 1])},
    optional={
        "recommendation_id": st.none() | st.sampled_from(["t", "item"]),
        "event_id": st.none() | st.sampled_from(["e", "reward"]),
        "item": st.none() | WORDS,
    },
)


@given(st.lists(GOOD, max_size=4) | st.lists(GOOD | ANY | NUMBERS, max_size=4), st.booleans())
def test_both_ways_read_the_same_questions(entries: list[Any], ascii: bool) -> None:
    body = json.dumps({"requests": entries}, ensure_ascii=ascii).encode()
    read = [shown(each) for each in read_recommend(body)]
    assert read == slowly(read_recommend, body)
    assert len(read) == len(entries)


@given(st.lists(FEEDBACK, max_size=4), st.booleans())
def test_both_ways_read_the_same_feedback(entries: list[Any], ascii: bool) -> None:
    body = json.dumps({"feedback": entries}, ensure_ascii=ascii).encode()
    read = [shown(each) for each in read_feedback(body)]
    assert read == slowly(read_feedback, body)


PAIRS = st.lists(
    st.tuples(
        st.sampled_from(["recommender", "client", "limit", "features", "category"]),
        st.sampled_from(
            ['"ada"', '"client"', "1", "[1]", '{"indices":[],"values":[]}', '"{"', "null"]
        ),
    ),
    max_size=4,
)


@given(st.lists(PAIRS, min_size=1, max_size=3))
def test_the_quick_way_accepts_nothing_that_has_two_readings(
    entries: list[list[tuple[str, str]]],
) -> None:
    known = [("recommender", '"films"'), ("client", '"ada"')]
    texts = [",".join(f'"{name}":{value}' for name, value in [*known, *one]) for one in entries]
    body = ('{"requests":[' + ",".join("{" + text + "}" for text in texts) + "]}").encode()
    try:
        read_recommend(body)
    except Refused:
        with pytest.raises(Refused):
            parse(body)
    else:
        parse(body)
