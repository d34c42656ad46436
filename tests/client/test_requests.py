"""What is sent, what is read, and when it is sent again: without a server."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from discreet_client import (
    Amount,
    AnsweredItem,
    BudgetSpent,
    FeedbackCall,
    FeedbackReceipt,
    InvalidRequest,
    NotAllowedByKey,
    NotFound,
    ProblemError,
    RecommendCall,
    RequestConflict,
    Retries,
    ServerBusy,
    ServerUnavailable,
    Unreachable,
)
from discreet_client.requests import (
    _answer,
    _receipt,
    _results,
    is_worth_repeating,
    new_event_id,
    read,
)

ANSWER: dict[str, Any] = {
    "recommendation_id": "t",
    "items": [{"id": "a"}, {"id": "b", "vendor": "north"}],
    "personalised": False,
    "privacy": {
        "epsilon": None,
        "spent": {"epsilon": None, "delta": None},
        "remaining": {"epsilon": 2.0, "delta": 1e-6},
    },
    "expires_at": "2026-11-17T03:00:00Z",
    "reason": "spent",
    "newer": 1,
}


def test_questions_say_only_what_was_given() -> None:
    assert RecommendCall("films", "ada").body("e") == {
        "recommender": "films",
        "client": "ada",
        "event_id": "e",
    }
    full = RecommendCall("films", "ada", {"age": 3}, 5, ["x"], ["y"], more={"category": "c"})
    assert full.body("e") == {
        "recommender": "films",
        "client": "ada",
        "context": {"age": 3},
        "limit": 5,
        "exclude": ["x"],
        "candidates": ["y"],
        "event_id": "e",
        "category": "c",
    }
    assert RecommendCall("films", "ada", (0.1, 0.2)).body(None)["context"] == [0.1, 0.2]


def test_answers_are_values() -> None:
    answer = _answer(ANSWER, "e")
    assert answer.items == (AnsweredItem("a"), AnsweredItem("b", "north"))
    assert answer.privacy.epsilon is None
    assert answer.privacy.remaining == Amount(2.0, 1e-6)
    assert answer.expires_at == datetime(2026, 11, 17, 3, tzinfo=UTC)
    assert (answer.event_id, answer.reason, answer.raw["newer"]) == ("e", "spent", 1)
    assert FeedbackCall(1.0, answer, item="a").body() == {
        "reward": 1.0,
        "recommendation_id": "t",
        "item": "a",
    }
    assert FeedbackCall(0.0, event_id="e").body() == {"reward": 0.0, "event_id": "e"}
    receipt = {"accepted": True, "duplicate": False, "learned": True}
    assert _receipt(receipt) == FeedbackReceipt(True, False, True)


@pytest.mark.parametrize("found", [None, [], {}, {**ANSWER, "expires_at": "soon"}])
def test_what_is_no_answer_is_said(found: Any) -> None:
    with pytest.raises(Unreachable, match="cannot be read") as raised:
        _answer(found, "e")
    assert raised.value.event_id == "e"
    with pytest.raises(Unreachable):
        _receipt(found)
    with pytest.raises(Unreachable):
        _results(found, 1)


@pytest.mark.parametrize(
    ("status", "slug", "kind"),
    [
        (400, "malformed-body", InvalidRequest),
        (401, "not-authenticated", NotAllowedByKey),
        (403, "not-allowed", NotAllowedByKey),
        (403, "budget-exhausted", BudgetSpent),
        (404, "unknown-recommender", NotFound),
        (409, "reward-conflict", RequestConflict),
        (410, "expired-recommendation", NotFound),
        (413, "body-too-large", InvalidRequest),
        (422, "invalid-request", InvalidRequest),
        (429, "overloaded", ServerBusy),
        (500, "internal", ServerUnavailable),
        (503, "store-unavailable", ServerUnavailable),
    ],
)
def test_problem_documents_are_exceptions(status: int, slug: str, kind: type[ProblemError]) -> None:
    document = {
        "type": f"urn:discreet:problem:{slug}",
        "title": "T",
        "detail": "D",
        "event_id": "e",
    }
    with pytest.raises(kind, match="T: D") as raised:
        read(status, {"retry-after": "1.5"}, json.dumps(document).encode())
    problem = raised.value
    assert type(problem) is kind
    assert (problem.status, problem.type, problem.detail) == (status, document["type"], "D")
    assert (problem.retry_after, problem.event_id) == (1.5, "e")


def test_what_is_no_problem_document_is_a_problem_all_the_same() -> None:
    with pytest.raises(ServerUnavailable, match="status 502"):
        read(502, {}, b"<html>")
    with pytest.raises(Unreachable, match="not a Discreet server"):
        read(200, {}, b"<html>")
    assert read(204, {}, b"") is None


def test_entries_of_a_batch_fail_alone() -> None:
    good = {"status": 200, **ANSWER}
    bad = {"status": 404, "problem": {"title": "Unknown recommender"}}
    first, second = _results({"results": [good, bad]}, 2)
    assert first is good
    assert isinstance(second, NotFound)


def test_pauses_grow_follow_the_server_and_end() -> None:
    retries = Retries(tries=4, first=1.0, longest=3.0, total=100.0)
    for tried, longest in ((1, 1.0), (2, 2.0), (3, 3.0)):
        pause = retries.pause(tried, None, 0.0)
        assert pause is not None
        assert longest / 2 <= pause <= longest
    assert retries.pause(1, 7.0, 0.0) == 7.0
    assert retries.pause(4, None, 0.0) is None
    assert retries.pause(1, 50.0, 60.0) is None, "it would take longer than all tries may"


def test_only_what_may_succeed_later_is_repeated() -> None:
    assert is_worth_repeating(Unreachable("x"))
    assert is_worth_repeating(ServerBusy(429, {}))
    assert is_worth_repeating(ServerUnavailable(503, {}))
    assert not is_worth_repeating(ServerUnavailable(500, {}))
    assert not is_worth_repeating(InvalidRequest(422, {}))


def test_event_ids_are_never_the_same() -> None:
    assert len({new_event_id() for _ in range(1000)}) == 1000
