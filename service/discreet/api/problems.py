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
TOO_MANY = 429


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """One row of the table: what never changes about a type of problem."""

    slug: str
    status: int
    title: str


INVALID = ProblemKind("invalid-request", 422, "Validation failed")
MALFORMED = ProblemKind("malformed-body", 400, "Malformed JSON")
TOO_LARGE = ProblemKind("body-too-large", 413, "Body too large")
BAD_REQUEST = ProblemKind("bad-request", 400, "Bad request")
REQUEST_TIMEOUT = ProblemKind("request-timeout", 408, "Request timeout")
HEADERS_TOO_LARGE = ProblemKind("headers-too-large", 431, "Headers too large")
TOO_MANY_CONNECTIONS = ProblemKind("too-many-connections", 429, "Too many connections")
OVERLOADED = ProblemKind("overloaded", 429, "Too many requests")
NOT_FOUND = ProblemKind("not-found", 404, "Not found; see /docs")
NOT_ALLOWED_METHOD = ProblemKind("method-not-allowed", 405, "Method not allowed")
INTERNAL = ProblemKind("internal", 500, "Internal error")
STORE_UNAVAILABLE = ProblemKind("store-unavailable", 503, "Store unavailable")

KINDS: Mapping[type[errors.DiscreetError], ProblemKind] = {
    errors.InvalidArgument: INVALID,
    errors.SeededNoiseRefused: INTERNAL,
    errors.UnknownEvent: INTERNAL,
    errors.Unpayable: INTERNAL,
    errors.Underpaid: INTERNAL,
    errors.StateOverflow: ProblemKind("statistics-full", 409, "Statistics overflow"),
    errors.StoreUnavailable: STORE_UNAVAILABLE,
    errors.StoreUnread: STORE_UNAVAILABLE,
    errors.StoreDamaged: STORE_UNAVAILABLE,
    errors.StoreFenced: ProblemKind("store-fenced", 503, "Store lost data; answering is stopped"),
    errors.StoreUnsuitable: STORE_UNAVAILABLE,
    errors.StoreEmpty: STORE_UNAVAILABLE,
    errors.UnknownRecommender: ProblemKind("unknown-recommender", 404, "Unknown recommender"),
    errors.RecommenderUnreadable: ProblemKind(
        "unreadable-recommender", 503, "Recommender not readable by this version"
    ),
    errors.DocumentChanged: ProblemKind("document-changed", 412, "Document changed meanwhile"),
    errors.UnknownItem: ProblemKind("unknown-item", 404, "Unknown item"),
    errors.UnknownDecision: ProblemKind("unknown-decision", 404, "Unknown recommendation"),
    errors.BudgetExhausted: ProblemKind("budget-exhausted", 403, "Privacy budget spent"),
    errors.NothingToRecommend: ProblemKind("nothing-to-recommend", 409, "Nothing to recommend"),
    errors.TokenForged: ProblemKind("invalid-recommendation-id", 400, "Invalid recommendation_id"),
    errors.TokenExpired: ProblemKind("expired-recommendation", 410, "Recommendation expired"),
    errors.RewardConflict: ProblemKind("reward-conflict", 409, "Conflicting reward"),
    errors.EventReused: ProblemKind("event-reused", 409, "event_id already used"),
    errors.ClientErased: ProblemKind("client-erased", 409, "Client erased meanwhile"),
    errors.UnknownCode: ProblemKind("unknown-code", 404, "Unknown code"),
    errors.TooManyDevices: ProblemKind("too-many-devices", 409, "Too many devices"),
    errors.Overloaded: OVERLOADED,
    errors.RateExceeded: ProblemKind("rate-exceeded", 429, "Too many requests of this key"),
    errors.PeerUnavailable: INTERNAL,
    errors.NotAuthenticated: ProblemKind("not-authenticated", 401, "API key required"),
    errors.NotAllowed: ProblemKind("not-allowed", 403, "Key does not allow this"),
}


class Refused(Exception):
    """A problem that only HTTP knows: a body that cannot be read, a route that does not exist."""

    def __init__(
        self, kind: ProblemKind, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.headers = dict(headers or {})


_IN_DOUBT = (
    "the store did not answer; nothing was released, but what was sent may have been counted or "
    "changed: send it again in a moment (feedback counts once)"
)
_UNTOUCHED = (
    "the store cannot be used at the moment; nothing was released, counted or changed: send it "
    "again in a moment"
)
_PAID_PERHAPS = (
    "the store did not answer; nothing was released, but the debit may have been made: retry in a "
    "moment with this event_id, and it is made once"
)


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem document that is ready to be sent."""

    status: int
    content: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def slug(self) -> str:
        """The last part of its type."""
        return str(self.content["type"]).removeprefix(PREFIX)

    def body(self, *, request_id: str | None = None) -> bytes:
        """Return the document's bytes; `instance` joins it to the request's line in the log."""
        if request_id is None:
            return to_json(self.content)
        return to_json({**self.content, "instance": f"urn:discreet:request:{request_id}"})


def _problem(
    kind: ProblemKind,
    detail: str,
    *,
    headers: Mapping[str, str] | None = None,
    fields: Sequence[Mapping[str, str]] | None = None,
    retry_after: int | None = None,
    event_id: str | None = None,
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
    if event_id is not None:
        content["event_id"] = event_id
    return Problem(kind.status, content, headers or {})


def problem_of(error: Exception) -> Problem:
    """Return the problem document of any exception; an unexpected one shows nothing of itself."""
    if isinstance(error, ValidationError):
        return invalid(problems_with(error))
    if isinstance(error, Refused):
        return _problem(error.kind, str(error), headers=error.headers)
    kind = _kind_of(error)
    if kind is INTERNAL:
        return _problem(INTERNAL, "the request failed; the server's log has the details")
    if isinstance(error, errors.InvalidArgument):
        field_error = {"field": error.argument, "message": error.reason}
        return _problem(INVALID, f"{error.argument}: {error.reason}", fields=[field_error])
    headers: dict[str, str] = {}
    if kind is STORE_UNAVAILABLE:
        seconds = getattr(error, "retry_after", 1)
        event_id = getattr(error, "event_id", None)
        in_doubt = _IN_DOUBT if event_id is None else _PAID_PERHAPS
        return _problem(
            kind,
            _UNTOUCHED if isinstance(error, errors.StoreUnread) else in_doubt,
            headers={"Retry-After": str(seconds)},
            retry_after=seconds,
            event_id=event_id,
        )
    if isinstance(error, errors.StoreFenced):
        return _problem(
            kind,
            "nothing is answered until the operator has decided; the server's log has the cause",
            headers={"Retry-After": str(error.retry_after)},
            retry_after=error.retry_after,
        )
    if isinstance(error, errors.RecommenderUnreadable | errors.Overloaded | errors.RateExceeded):
        headers["Retry-After"] = str(error.retry_after)
        return _problem(kind, str(error), headers=headers, retry_after=error.retry_after)
    if isinstance(error, errors.NotAuthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    return _problem(kind, str(error), headers=headers)


def _kind_of(error: Exception) -> ProblemKind:
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
            return problem_of(malformed(_where(detail)))
    fields = explained(details)
    first = fields[0]
    return _problem(INVALID, f"{first['field']}: {first['message']}", fields=fields)


def malformed(where: str) -> Refused:
    """Return the 400 of a body that is not JSON, or can be read in more than one way."""
    return Refused(MALFORMED, f"send a JSON object (Content-Type: application/json); {where}")


def _where(detail: Mapping[str, Any]) -> str:
    message = str(detail["msg"])
    return message.removeprefix("Invalid JSON: ") or "this is not JSON"
