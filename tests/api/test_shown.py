"""Answers put together from parts read exactly as a serialiser would have written them."""

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from discreet.api.shown import moment, receipt_json, recommendation_json
from discreet.families.budgets import UNPROTECTED, PrivacyReport
from discreet.families.questions import Receipt, Recommendation
from discreet.privacy.accountants import Budget

TEXT = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\/\b\f\n\r\t\0\x1f\x7f\u2028é😀'),
    min_size=1,
    max_size=20,
)
AMOUNTS = st.floats(0, 1e12, allow_nan=False)
BUDGETS = st.builds(Budget, AMOUNTS, st.floats(0, 0.5))
DESCRIBED = st.fixed_dictionaries(
    {}, optional={"title": TEXT, "attributes": st.dictionaries(TEXT, TEXT | st.none(), max_size=2)}
)
ANSWERS = st.builds(
    Recommendation,
    st.text("ABCxyz019-_", min_size=1, max_size=40),
    st.lists(TEXT, max_size=4).map(tuple),
    st.booleans(),
    st.just(UNPROTECTED) | st.builds(PrivacyReport, AMOUNTS, BUDGETS, BUDGETS),
    st.integers(0, 2**33),
    st.just(()),
    st.none() | TEXT,
    st.none() | TEXT,
    st.none() | st.booleans(),
    st.just(()),
).flatmap(
    lambda answer: (
        st.just(answer)
        | st.lists(st.none() | TEXT, min_size=len(answer.items), max_size=len(answer.items)).map(
            lambda vendors: answer._replace(vendors=tuple(vendors))
        )
        | st.lists(DESCRIBED, min_size=len(answer.items), max_size=len(answer.items)).map(
            lambda described: answer._replace(described=tuple(described))
        )
    )
)


def amount(budget: Budget | None) -> dict[str, float | None]:
    if budget is None:
        return {"epsilon": None, "delta": None}
    return {"epsilon": budget.epsilon, "delta": budget.delta}


def fields(answer: Recommendation) -> dict[str, Any]:
    vendors = answer.vendors or (None,) * len(answer.items)
    described = answer.described or ({},) * len(answer.items)
    named = {} if answer.round is None else {"round": answer.round}
    why = {} if answer.reason is None else {"reason": answer.reason}
    awaited = {} if answer.awaiting is None else {"awaiting": answer.awaiting}
    return {
        "recommendation_id": answer.recommendation_id,
        "items": [
            {"id": item, **({} if vendor is None else {"vendor": vendor}), **more}
            for item, vendor, more in zip(answer.items, vendors, described, strict=True)
        ],
        "personalised": answer.personalised,
        "privacy": {
            "epsilon": answer.privacy.epsilon,
            "spent": amount(answer.privacy.spent),
            "remaining": amount(answer.privacy.remaining),
        },
        "expires_at": datetime.fromtimestamp(answer.expires_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        **named,
        **why,
        **awaited,
    }


@given(ANSWERS)
def test_an_answer_reads_as_its_fields(answer: Recommendation) -> None:
    shown = recommendation_json(answer, "{")
    shown.encode()
    assert list(json.loads(shown).items()) == list(json.loads(json.dumps(fields(answer))).items())


@given(ANSWERS)
def test_fields_that_come_before_its_own_stay_there(answer: Recommendation) -> None:
    shown = json.loads(recommendation_json(answer, '{"status":200,'))
    assert shown == {"status": 200, **fields(answer)}
    assert next(iter(shown)) == "status"


@given(ANSWERS, ANSWERS)
def test_what_is_kept_of_one_answer_does_not_show_in_another(
    one: Recommendation, other: Recommendation
) -> None:
    for each in (
        one,
        other._replace(items=one.items, vendors=one.vendors, described=one.described),
        one._replace(privacy=other.privacy),
        one,
    ):
        assert json.loads(recommendation_json(each, "{")) == fields(each)


@given(st.booleans(), st.booleans())
def test_a_receipt_reads_as_its_fields(duplicate: bool, learned: bool) -> None:
    receipt = Receipt(duplicate=duplicate, learned=learned)
    expected = {"accepted": True, "duplicate": duplicate, "learned": learned}
    assert json.loads(receipt_json(receipt, "{")) == expected
    assert json.loads(receipt_json(receipt, '{"status":200,')) == {"status": 200, **expected}


def test_a_moment_is_in_utc_to_the_second() -> None:
    assert moment(0) == "1970-01-01T00:00:00Z"
    assert moment(1_800_000_001) == "2027-01-15T08:00:01Z"
