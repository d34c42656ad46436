"""Named fields become numbers in [0, 1], whatever is missing or new; the wrong type is refused."""

import json
import math
import random
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from discreet.errors import InvalidArgument
from discreet.families.contexts import (
    DEFAULT_BUCKETS,
    ContextDocument,
    NamedContextDocument,
    VectorContextDocument,
)
from discreet.validation import explained, problems_with

READ: TypeAdapter[Any] = TypeAdapter(ContextDocument)
FIELDS: dict[str, Any] = {
    "age": {"type": "number", "range": [0, 120]},
    "country": {"type": "category", "values": ["FR", "CH", "DE"]},
    "member": {"type": "boolean"},
    "shop": {"type": "category", "buckets": 8},
}


def named(**fields: Any) -> NamedContextDocument:
    found = READ.validate_python({"fields": fields or FIELDS})
    assert isinstance(found, NamedContextDocument)
    return found


def features(context: Any, **fields: Any) -> tuple[float, ...]:
    return named(**fields).reader()(context)


def test_a_plain_vector_stays_what_it_is() -> None:
    document = READ.validate_python({"dimensions": 2})
    assert isinstance(document, VectorContextDocument)
    assert document.size == 2
    assert document.reader()([0.25, 1]) == (0.25, 1)
    for wrong in ([], [0.5], [0.5, 1.5], [0.5, math.nan], {"age": 3}):
        with pytest.raises(InvalidArgument) as caught:
            document.reader()(wrong)
        assert caught.value.argument == "context"


def test_every_field_has_its_numbers_in_the_order_of_names() -> None:
    assert named().size == 2 + 4 + 1 + 8
    said = features({"age": 30, "country": "DE", "member": True, "shop": "Basel"})
    assert said[:2] == (0.25, 0.0)
    assert said[2:6] == (0.0, 1.0, 0.0, 0.0)  # CH, DE, FR, others
    assert said[6] == 1.0
    assert sorted(said[7:]) == [0.0] * 7 + [1.0]


def test_what_is_missing_or_null_is_unknown_and_works() -> None:
    nothing = (0.5, 1.0, *(0.0,) * 4, 0.5, *(0.0,) * 8)
    assert features({}) == nothing
    assert features([]) == nothing  # a request without a context
    assert features(dict.fromkeys(FIELDS)) == nothing


def test_words_that_nobody_listed_share_a_place() -> None:
    strange = {features({"country": word}) for word in ("Atlantis", "", "ch", "\ud800", "é" * 200)}
    assert len(strange) == 1
    assert strange.pop()[2:6] == (0.0, 0.0, 0.0, 1.0)


def test_hashed_words_use_every_bucket_and_are_the_same_everywhere() -> None:
    shop = {"shop": {"type": "category"}}
    places = [features({"shop": f"shop {number}"}, **shop).index(1.0) for number in range(1_000)]
    counts = [places.count(bucket) for bucket in range(DEFAULT_BUCKETS)]
    # Binomial(1000, 1/16): 62.5 +- 7.7; six deviations, and a hash that misses a bucket fails.
    assert all(16 < count < 109 for count in counts)
    # Kept: what was learned would otherwise belong to other words after an update.
    assert places[:8] == [9, 7, 5, 10, 4, 11, 10, 8]
    other = {"branch": {"type": "category"}}
    assert [features({"branch": f"shop {n}"}, **other).index(1.0) for n in range(50)] != places[:50]


def test_numbers_outside_of_the_range_count_as_its_ends() -> None:
    age = {"age": {"type": "number", "range": [-10.0, 10.0], "required": True}}
    for value, place in ((-11, 0.0), (-10, 0.0), (0, 0.5), (5, 0.75), (10.5, 1.0), (10**400, 1.0)):
        assert features({"age": value}, **age) == (place,)


@pytest.mark.parametrize(
    ("said", "field", "reason"),
    [
        ({"age": "31"}, "context.age", "must be a number"),
        ({"age": True}, "context.age", "must be a number"),
        ({"age": [31]}, "context.age", "must be a number"),
        ({"age": math.nan}, "context.age", "must be a finite number"),
        ({"age": -math.inf}, "context.age", "must be a finite number"),
        ({"country": 41}, "context.country", "must be a string"),
        ({"country": "x" * 201}, "context.country", "must have at most 200 characters"),
        ({"shop": {"id": 1}}, "context.shop", "must be a string"),
        ({"member": 1}, "context.member", "must be true or false"),
        ({"member": "yes"}, "context.member", "must be true or false"),
        ({"aeg": 31}, "context.aeg", "unknown field; there are: age, country, member, shop"),
        ({"a\nb": 31}, "context.a?b", "unknown field; there are: age, country, member, shop"),
        ([0.5, 0.5], "context", "must be an object with the fields age, country, member, shop"),
    ],
)
def test_the_wrong_type_is_named_with_what_would_be_accepted(
    said: Any, field: str, reason: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        features(said)
    assert (caught.value.argument, caught.value.reason) == (field, reason)


def test_required_fields_are_required() -> None:
    fields = {name: {**field, "required": True} for name, field in FIELDS.items()}
    assert named(**fields).size == named().size - 1  # a number that is never missing
    whole = {"age": 1, "country": "CH", "member": False, "shop": "x"}
    features(whole, **fields)
    for name in fields:
        for said in ({**whole, name: None}, {k: v for k, v in whole.items() if k != name}):
            with pytest.raises(InvalidArgument) as caught:
                features(said, **fields)
            assert (caught.value.argument, caught.value.reason) == (
                f"context.{name}",
                "is required",
            )


def test_features_lie_in_the_cube_whatever_is_said() -> None:
    read, size = named().reader(), named().size
    rng = random.Random(0)
    for _ in range(2_000):
        said = {
            "age": rng.choice([None, rng.uniform(-1e9, 1e9), rng.randint(-(10**30), 10**30), 60]),
            "country": rng.choice([None, "CH", "XX"]),
            "shop": rng.choice([None, str(rng.random())]),
            "member": rng.choice([None, True, False]),
        }
        kept = {name: value for name, value in said.items() if rng.random() < 0.7}
        found = read(kept)
        assert len(found) == size
        assert all(0.0 <= value <= 1.0 for value in found)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({}, "dimensions"),
        ({"fields": {}}, "fields"),
        ({"dimensions": 2, "fields": FIELDS}, "body"),
        ({"fields": {"a b": {"type": "boolean"}}}, "fields.a b"),
        ({"fields": {"größe": {"type": "boolean"}}}, "fields.größe"),
        ({"fields": {"a\n": {"type": "boolean"}}}, "fields.a"),
        ({"fields": {"a": {"type": "colour"}}}, "fields.a"),
        ({"fields": {"a": {}}}, "fields.a"),
        ({"fields": {"a": {"type": "number"}}}, "fields.a.range"),
        ({"fields": {"a": {"type": "number", "range": [1, 1]}}}, "fields.a.range"),
        ({"fields": {"a": {"type": "number", "range": [-1e308, 1e308]}}}, "fields.a.range"),
        ({"fields": {"a": {"type": "number", "range": [0]}}}, "fields.a.range"),
        ({"fields": {"a": {"type": "number", "range": ["0", 1]}}}, "fields.a.range"),
        ({"fields": {"a": {"type": "category", "values": []}}}, "fields.a.values"),
        ({"fields": {"a": {"type": "category", "values": ["x", "x"]}}}, "fields.a.values"),
        ({"fields": {"a": {"type": "category", "values": ["\xe9", "e\u0301"]}}}, "fields.a.values"),
        ({"fields": {"a": {"type": "category", "values": [False]}}}, "fields.a.values"),
        ({"fields": {"a": {"type": "category", "values": ["x"], "buckets": 4}}}, "fields.a.bucket"),
        ({"fields": {"a": {"type": "category", "buckets": 1}}}, "fields.a.buckets"),
        ({"fields": {"a": {"type": "boolean", "range": [0, 1]}}}, "fields.a.range"),
        (
            {"fields": {f"f{n}": {"type": "category", "buckets": 4_096} for n in range(30)}},
            "fields",
        ),
    ],
)
def test_a_document_that_makes_no_sense_is_refused(document: Any, field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        READ.validate_python(document)
    first = explained(problems_with(caught.value))[0]
    assert first["field"].startswith(field), first


def test_what_is_wrong_with_a_field_is_said_in_words() -> None:
    for field, words in (
        ({"größe": {"type": "boolean"}}, "begins with a letter or _"),
        ({"a": {"type": "number", "range": {"low": 0}}}, "must be a list"),
        ({"a": {"type": "number", "range": [9, 1]}}, "the lowest first"),
    ):
        with pytest.raises(ValidationError) as caught:
            READ.validate_python({"fields": field})
        assert words in explained(problems_with(caught.value))[0]["message"]


def test_an_accent_of_its_own_makes_no_other_word() -> None:
    """Z\xfcrich with one character for its second letter, or with two, is one place."""
    composed, apart = "Z\xfcrich", "Zu\u0308rich"
    for written in (composed, apart):
        city = {"city": {"type": "category", "values": ["Aarau", written]}}
        assert features({"city": composed}, **city) == (0.0, 1.0, 0.0)
        assert features({"city": apart}, **city) == (0.0, 1.0, 0.0)
    anywhere = {"city": {"type": "category", "buckets": 4_096}}
    assert features({"city": composed}, **anywhere) == features({"city": apart}, **anywhere)


def test_the_order_in_a_document_means_nothing_and_the_rest_cannot_change() -> None:
    turned = dict(reversed(FIELDS.items()))
    turned["country"] = {"type": "category", "values": ["DE", "CH", "FR"], "required": True}
    assert named(**turned).fixed() == named().fixed()
    said = {"age": 77, "country": "FR", "shop": "x", "member": False}
    assert features(said, **turned) == features(said)
    for name, changed in (
        ("age", {"type": "number", "range": [0, 100]}),
        ("age", {"type": "number", "range": [0, 120], "required": True}),
        ("country", {"type": "category", "values": ["FR", "CH", "DE", "IT"]}),
        ("shop", {"type": "category", "buckets": 16}),
        ("member", {"type": "category", "values": ["yes"]}),
    ):
        before, after = named().fixed(), named(**{**FIELDS, name: changed}).fixed()
        different = [field for field in before if before[field] != after.get(field)]
        assert different == [f"context.fields.{name}"]
    fewer = {name: field for name, field in FIELDS.items() if name != "shop"}
    more = {**FIELDS, "new": {"type": "boolean"}}
    for fields in (fewer, more):
        assert named(**fields).fixed()["context.fields"] != named().fixed()["context.fields"]
    vector = READ.validate_python({"dimensions": named().size})
    assert vector.fixed() != named().fixed()


def test_what_is_shown_can_be_written_again() -> None:
    shown = json.loads(named().model_dump_json(exclude_none=True))
    assert READ.validate_python(shown) == named()
