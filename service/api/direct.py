"""The request path: recommend and feedback, one by one and in batches, from bytes to bytes."""

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fastapi import FastAPI
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from service.api import schemas
from service.api.bodies import Reader, parse
from service.api.problems import problem_of
from service.api.routing import Answering, DirectRoute, described
from service.decisions.asking import Candidate, Sparse, Vector
from service.decisions.documents import SparseFeatures
from service.decisions.feedback import Feedback, Receipt, feedback_batch, give_feedback
from service.decisions.recommend import (
    Ask,
    PrivacyReport,
    Recommendation,
    recommend,
    recommend_batch,
)
from service.decisions.runtime import Runtime
from service.errors import DiscreetError, InvalidArgument
from service.privacy.accountants import Budget


def _strings(request: schemas.RecommendRequest) -> int:
    """Return how many strings there are in a question, names included."""
    named = len(request.model_fields_set) + len(request.exclude)
    for text in (request.recommender, request.client, request.category, request.round):
        named += text is not None
    named += request.event_id is not None
    if isinstance(request.features, SparseFeatures):
        named += 2
    for one in request.candidates or ():
        if isinstance(one, str):
            named += 1
        else:
            named += 5 if isinstance(one.features, SparseFeatures) else 3
    return named


_read_recommend = Reader(schemas.RecommendRequest, strings=_strings)
_read_feedback = Reader(schemas.FeedbackRequest)

_ACCEPTED = {
    duplicate: to_json({"accepted": True, "duplicate": duplicate}) for duplicate in (False, True)
}


async def answer_recommend(runtime: Runtime, body: bytes) -> bytes:
    """`POST /recommend`."""
    return to_json(_shown(await recommend(runtime, _ask(_read_recommend(body)))))


async def answer_feedback(runtime: Runtime, body: bytes) -> bytes:
    """`POST /feedback`."""
    receipt = await give_feedback(runtime, _feedback(_read_feedback(body)))
    return _ACCEPTED[receipt.duplicate]


async def answer_recommend_batch(runtime: Runtime, body: bytes) -> bytes:
    """`POST /recommend/batch`."""
    entries = _entries(body, "requests", schemas.RecommendRequest, _ask)
    answers = await recommend_batch(runtime, _good(entries))
    return _results(entries, [_entry(one, _shown) for one in answers])


async def answer_feedback_batch(runtime: Runtime, body: bytes) -> bytes:
    """`POST /feedback/batch`."""
    entries = _entries(body, "feedback", schemas.FeedbackRequest, _feedback)
    receipts = await feedback_batch(runtime, _good(entries))
    return _results(entries, [_entry(one, _received) for one in receipts])


# From schemas to decisions.


def _ask(request: schemas.RecommendRequest) -> Ask:
    return Ask(
        recommender=request.recommender,
        client=request.client,
        context=request.context,
        limit=request.limit,
        exclude=request.exclude,
        candidates=None
        if request.candidates is None
        else [_candidate(one) for one in request.candidates],
        event_id=request.event_id,
        features=None if request.features is None else _vector(request.features),
        category=request.category,
        round=request.round,
    )


def _candidate(one: str | schemas.CandidateRequest) -> str | Candidate:
    return one if isinstance(one, str) else Candidate(id=one.id, features=_vector(one.features))


def _vector(features: SparseFeatures | list[float]) -> Vector:
    if isinstance(features, SparseFeatures):
        return Sparse(indices=features.indices, values=features.values)
    return tuple(features)


def _feedback(request: schemas.FeedbackRequest) -> Feedback:
    if (request.recommendation_id is None) == (request.event_id is None):
        raise InvalidArgument("recommendation_id", "give either recommendation_id or event_id")
    return Feedback(
        reward=request.reward,
        recommendation_id=request.recommendation_id,
        event_id=request.event_id,
        item=request.item,
    )


# From decisions to JSON.


@functools.lru_cache(maxsize=4_096)
def moment(seconds: int) -> str:
    """Return a moment as RFC 3339; every request of a second asks for the same few."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def amount(budget: Budget | None) -> dict[str, float | None]:
    """Return a cost or limit; null where nobody is protected."""
    if budget is None:
        return {"epsilon": None, "delta": None}
    return {"epsilon": budget.epsilon, "delta": budget.delta}


def _privacy(report: PrivacyReport) -> dict[str, Any]:
    return {
        "epsilon": report.epsilon,
        "spent": amount(report.spent),
        "remaining": amount(report.remaining),
    }


def _shown(answer: Recommendation) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "recommendation_id": answer.recommendation_id,
        "items": [{"id": item} for item in answer.items]
        if answer.vendor is None
        else [{"id": item, "vendor": answer.vendor} for item in answer.items],
        "personalised": answer.personalised,
        "privacy": _privacy(answer.privacy),
        "expires_at": moment(answer.expires_at),
    }
    if answer.round is not None:
        shown["round"] = answer.round
    return shown


def _received(receipt: Receipt) -> dict[str, Any]:
    return {"accepted": True, "duplicate": receipt.duplicate}


# Batches: each entry succeeds or fails by itself, in order.

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
R = TypeVar("R")


def _entries(
    body: bytes, name: str, model: type[M], convert: Callable[[M], T]
) -> list[T | dict[str, Any]]:
    """Return each entry as decisions take it, or as the result that says why it cannot be taken."""
    content = parse(body)
    if not isinstance(content, dict):
        raise InvalidArgument("body", "must be an object")
    unknown = sorted(set(content) - {name})
    if unknown:
        raise InvalidArgument(unknown[0][:100], "is not a field that is known here")
    many = content.get(name)
    if not isinstance(many, list):
        raise InvalidArgument(name, "must be a list")
    if len(many) > schemas.MOST_BATCH:
        raise InvalidArgument(name, f"may have at most {schemas.MOST_BATCH} entries")
    validate = model.__pydantic_validator__.validate_python
    entries: list[T | dict[str, Any]] = []
    for one in many:
        try:
            entries.append(convert(validate(one)))
        except (ValidationError, InvalidArgument) as error:
            entries.append(_failed(error))
    return entries


def _good(entries: Sequence[T | dict[str, Any]]) -> list[T]:
    return [entry for entry in entries if not isinstance(entry, dict)]


def _entry(outcome: R | DiscreetError, shown: Callable[[R], dict[str, Any]]) -> dict[str, Any]:
    if isinstance(outcome, DiscreetError):
        return _failed(outcome)
    return {"status": 200, **shown(outcome)}


def _failed(error: Exception) -> dict[str, Any]:
    problem = problem_of(error)
    return {"status": problem.status, "problem": problem.content}


def _results(entries: Sequence[Any], answers: Sequence[dict[str, Any]]) -> bytes:
    remaining = iter(answers)
    return to_json(
        {"results": [entry if isinstance(entry, dict) else next(remaining) for entry in entries]}
    )


# Declarations: what the OpenAPI document says about the functions above.


def _declared(answer: Answering) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def attach(endpoint: Callable[..., Any]) -> Callable[..., Any]:
        endpoint.answer = answer  # type: ignore[attr-defined]
        return endpoint

    return attach


@_declared(answer_recommend)
async def _recommend_one(body: schemas.RecommendRequest) -> Any:
    """Choose what a client should see. Charged to the client's budget before it is answered."""


@_declared(answer_feedback)
async def _feedback_one(body: schemas.FeedbackRequest) -> Any:
    """Say how a recommendation was received. Repeating it is harmless; contradicting it is 409."""


@_declared(answer_recommend_batch)
async def _recommend_many(body: schemas.RecommendBatch) -> Any:
    """Answer up to 1,000 questions; each has its own status."""


@_declared(answer_feedback_batch)
async def _feedback_many(body: schemas.FeedbackBatch) -> Any:
    """Take up to 1,000 pieces of feedback; each has its own status."""


def declare(app: FastAPI) -> None:
    """Add the request path's routes."""
    for path, endpoint, model, statuses in (
        ("/recommend", _recommend_one, schemas.RecommendAnswer, (400, 404, 409, 413, 422)),
        ("/feedback", _feedback_one, schemas.FeedbackAnswer, (400, 404, 409, 410, 413, 422)),
        ("/recommend/batch", _recommend_many, schemas.RecommendBatchAnswer, (400, 413, 422)),
        ("/feedback/batch", _feedback_many, schemas.FeedbackBatchAnswer, (400, 413, 422)),
    ):
        app.router.add_api_route(
            path,
            endpoint,
            methods=["POST"],
            name=path.strip("/").replace("/", "_"),
            response_model=model,
            route_class_override=DirectRoute,
            tags=["decisions"],
            **described("serve", *statuses),
        )
