"""Every error becomes a problem document, and none repeats what was sent."""

import inspect
import json

import pytest
from pydantic import BaseModel, Field, ValidationError

from discreet import errors
from discreet.api.problems import KINDS, PREFIX, ProblemKind, Refused, problem_of

ERRORS = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value)
    and issubclass(value, errors.DiscreetError)
    and value is not errors.DiscreetError
]


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_of_the_tree_has_a_row(kind: type[errors.DiscreetError]) -> None:
    assert kind in KINDS


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.InvalidArgument("context", "must be shorter"), 422),
        (errors.StoreUnavailable(), 503),
        (errors.UnknownRecommender("none"), 404),
        (errors.UnknownItem("none"), 404),
        (errors.UnknownDecision("none"), 404),
        (errors.BudgetExhausted("spent"), 403),
        (errors.NothingToRecommend("nothing"), 409),
        (errors.TokenForged("forged"), 400),
        (errors.TokenExpired("expired"), 410),
        (errors.RewardConflict("conflict"), 409),
        (errors.EventReused("reused"), 409),
        (errors.NotAuthenticated("who"), 401),
        (errors.NotAllowed("no"), 403),
        (errors.Underpaid("withheld"), 500),
    ],
)
def test_statuses_are_those_that_the_tree_of_errors_promises(
    error: errors.DiscreetError, status: int
) -> None:
    problem = problem_of(error)
    assert problem.status == problem.content["status"] == status
    assert problem.content["type"].startswith(PREFIX)
    assert problem.content["title"]
    assert problem.content["detail"]


def test_types_tell_problems_apart() -> None:
    by_slug: dict[str, set[tuple[int, str]]] = {}
    for kind in KINDS.values():
        by_slug.setdefault(kind.slug, set()).add((kind.status, kind.title))
    assert all(len(meanings) == 1 for meanings in by_slug.values())


def test_what_is_not_ours_says_nothing_about_itself() -> None:
    problem = problem_of(KeyError("client-canary"))
    assert problem.status == 500
    assert b"canary" not in problem.body()
    assert b"KeyError" not in problem.body()


def test_what_went_wrong_inside_says_nothing_either() -> None:
    assert b"canary" not in problem_of(errors.UnknownEvent("canary")).body()


def test_a_subclass_that_nobody_listed_is_its_parent() -> None:
    class Narrower(errors.TokenForged):
        pass

    assert problem_of(Narrower("no")).status == 400


def test_an_invalid_argument_names_its_field() -> None:
    content = problem_of(errors.InvalidArgument("limit", "must be smaller")).content
    assert content["errors"] == [{"field": "limit", "message": "must be smaller"}]


def test_an_absent_store_says_when_to_try_again() -> None:
    problem = problem_of(errors.StoreUnavailable("the store at 10.0.0.1 is gone", retry_after=7))
    assert problem.headers["Retry-After"] == "7"
    assert problem.content["retry_after"] == 7
    assert b"10.0.0.1" not in problem.body()


def test_a_store_that_was_only_to_be_read_is_said_to_have_counted_nothing() -> None:
    problem = problem_of(errors.StoreUnread("the store at 10.0.0.1 is gone", retry_after=7))
    assert (problem.status, problem.headers["Retry-After"]) == (503, "7")
    assert "nothing was released, counted or changed" in problem.content["detail"]
    assert b"10.0.0.1" not in problem.body()


def test_an_unknown_caller_is_told_how_to_authenticate() -> None:
    assert problem_of(errors.NotAuthenticated("who")).headers["WWW-Authenticate"] == "Bearer"


def test_a_problem_of_http_keeps_its_headers() -> None:
    problem = problem_of(Refused(ProblemKind("x", 405, "X"), "no", headers={"Allow": "GET"}))
    assert (problem.status, problem.headers) == (405, {"Allow": "GET"})


def test_the_instance_is_the_requests_own() -> None:
    body = json.loads(problem_of(errors.TokenForged("no")).body(request_id="abc"))
    assert body["instance"] == "urn:discreet:request:abc"


class Nested(BaseModel, extra="forbid"):
    number: float = Field(strict=True)


class Outer(BaseModel, extra="forbid"):
    inner: Nested
    many: list[int] = []


def test_validation_names_fields_and_never_repeats_the_input() -> None:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate({"inner": {"number": "canary"}, "many": ["canary"] * 100})
    problem = problem_of(caught.value)
    assert problem.status == 422
    assert {"field": "inner.number", "message": "must be a number"} in problem.content["errors"]
    assert len(problem.content["errors"]) <= 20
    assert b"canary" not in problem.body()


def test_a_body_that_is_not_json_is_malformed() -> None:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate_json(b'{"inner": canary')
    problem = problem_of(caught.value)
    assert problem.status == 400
    assert problem.content["type"] == PREFIX + "malformed-body"
    assert b"canary" not in problem.body()


def test_an_unknown_field_is_named_within_bounds() -> None:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate({"inner": {"number": 1.0}, "x\x00" * 1_000: 1})
    (error,) = problem_of(caught.value).content["errors"]
    assert len(error["field"]) == 120
    assert "\x00" not in error["field"]
