"""Every error that a caller can see, as RFC 9457 problem documents: one table, one renderer.

A problem's `type` is stable and documented in docs/api.md. Its `detail` says what to change, in
words that are ours: it never repeats a client, a context, a reward, or anything else that was
sent, except the name of a field.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json

from discreet import errors
from discreet.validation import explained, problems_with

CONTENT_TYPE = "application/problem+json"
PREFIX = "urn:discreet:problem:"


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the table: what never changes about a type of problem."""

    slug: str
    status: int
    title: str


INVALID = Kind("invalid-request", 422, "The request has fields that cannot be used")
MALFORMED = Kind("malformed-body", 400, "The body is not a JSON object that can be read")
TOO_LARGE = Kind("body-too-large", 413, "The body is larger than this server accepts")
NOT_FOUND = Kind("not-found", 404, "There is nothing at this address")
NOT_ALLOWED_METHOD = Kind("method-not-allowed", 405, "This address does not answer that method")
INTERNAL = Kind("internal", 500, "Something went wrong on our side")
STORE_UNAVAILABLE = Kind("store-unavailable", 503, "The store did not answer; nothing was released")

KINDS: Mapping[type[errors.DiscreetError], Kind] = {
    errors.InvalidArgument: INVALID,
    errors.SeededNoiseRefused: INTERNAL,
    errors.UnknownEvent: INTERNAL,
    errors.Unpayable: INTERNAL,
    errors.Underpaid: INTERNAL,
    errors.StateOverflow: Kind("statistics-full", 409, "A statistic cannot grow any further"),
    errors.StoreUnavailable: STORE_UNAVAILABLE,
    errors.StoreUnsuitable: STORE_UNAVAILABLE,
    errors.UnknownRecommender: Kind("unknown-recommender", 404, "There is no such recommender"),
    errors.UnknownItem: Kind("unknown-item", 404, "There is no such item"),
    errors.UnknownDecision: Kind("unknown-decision", 404, "There is no such recommendation"),
    errors.BudgetExhausted: Kind("budget-exhausted", 403, "The privacy budget is spent"),
    errors.NothingToRecommend: Kind("nothing-to-recommend", 409, "No item is left to recommend"),
    errors.TokenForged: Kind("forged-recommendation", 400, "That recommendation is not ours"),
    errors.TokenExpired: Kind("expired-recommendation", 410, "That recommendation has expired"),
    errors.RewardConflict: Kind("reward-conflict", 409, "Another reward was counted already"),
    errors.EventReused: Kind("event-reused", 409, "That event id names another request"),
    errors.PeerUnavailable: INTERNAL,
    errors.NotAuthenticated: Kind("not-authenticated", 401, "An API key is needed"),
    errors.NotAllowed: Kind("not-allowed", 403, "The API key lacks a scope"),
}


class Refused(Exception):
    """A problem that only HTTP knows: a body that cannot be read, an address that is not there."""

    def __init__(self, kind: Kind, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.kind = kind
        self.headers = dict(headers or {})


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem document that is ready to be sent."""

    status: int
    content: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self, *, request_id: str | None = None) -> bytes:
        """Return the document's bytes; `instance` joins it to the request's line in the log."""
        if request_id is None:
            return to_json(self.content)
        return to_json({**self.content, "instance": f"urn:discreet:request:{request_id}"})


def _problem(
    kind: Kind,
    detail: str,
    *,
    headers: Mapping[str, str] | None = None,
    fields: Sequence[Mapping[str, str]] | None = None,
    retry_after: int | None = None,
) -> Problem:
    content: dict[str, Any] = {
        "type": PREFIX + kind.slug,
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
    }
    if fields is not None:
        content["errors"] = list(fields)
    if retry_after is not None:
        # Beside the header, because an entry of a batch has no headers of its own.
        content["retry_after"] = retry_after
    return Problem(kind.status, content, headers or {})


def problem_of(error: Exception) -> Problem:
    """Return the problem document of any exception. What is not ours says nothing about itself."""
    if isinstance(error, ValidationError):
        return invalid(problems_with(error))
    if isinstance(error, Refused):
        return _problem(error.kind, str(error), headers=error.headers)
    kind = _kind_of(error)
    if kind is INTERNAL:
        return _problem(INTERNAL, "the request was not carried out; our log says why")
    if isinstance(error, errors.InvalidArgument):
        field_error = {"field": error.argument, "message": error.reason}
        return _problem(INVALID, f"{error.argument}: {error.reason}", fields=[field_error])
    headers: dict[str, str] = {}
    if kind is STORE_UNAVAILABLE:
        seconds = getattr(error, "retry_after", 1)
        return _problem(
            kind,
            "nothing was released or counted; try again in a moment",
            headers={"Retry-After": str(seconds)},
            retry_after=seconds,
        )
    if isinstance(error, errors.NotAuthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    return _problem(kind, str(error), headers=headers)


def _kind_of(error: Exception) -> Kind:
    # Walking the class's own ancestry finds the closest row, also for subclasses yet to come.
    for ancestor in type(error).__mro__:
        if ancestor in KINDS:
            return KINDS[ancestor]
    return INTERNAL


def invalid(details: Sequence[Mapping[str, Any]]) -> Problem:
    """Return the 422 of a validation that failed, or the 400 of a body that is not JSON.

    Only the place and our own words about it are taken from each error, never the input.
    """
    for detail in details:
        if detail["type"] == "json_invalid":
            return malformed(_where(detail))
    fields = explained(details)
    first = fields[0]
    return _problem(INVALID, f"{first['field']}: {first['message']}", fields=fields)


def malformed(where: str) -> Problem:
    """Return the 400 of a body that is not JSON."""
    return _problem(MALFORMED, f"send a JSON object (Content-Type: application/json); {where}")


def _where(detail: Mapping[str, Any]) -> str:
    message = str(detail["msg"])
    return message.removeprefix("Invalid JSON: ") or "this is not JSON"
