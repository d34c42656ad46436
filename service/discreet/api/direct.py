"""The request path: recommend and feedback, one by one and in batches, from bytes to bytes."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI

from discreet.api import schemas
from discreet.api.batches import BatchReader, good, results_json
from discreet.api.bodies import Reader
from discreet.api.routing import Answering, DirectRoute, described
from discreet.api.shown import recommendation_json
from discreet.families.questions import Candidate, Sparse, Vector
from discreet.families.documents import SparseFeatures
from discreet.decisions.feedback import Feedback, Receipt, feedback_batch, give_feedback
from discreet.decisions.recommend import Ask, Recommendation, recommend, recommend_batch
from discreet.decisions.runtime import Runtime
from discreet.errors import InvalidArgument


def _strings(request: schemas.RecommendRequest) -> int:
    """Return how many strings there are in a question, names included."""
    # The two names, which are always there, and as many values.
    named = len(request.model_fields_set) + 2 + len(request.exclude)
    for text in (request.category, request.round, request.event_id):
        named += text is not None
    if isinstance(request.features, SparseFeatures):
        named += 2
    for one in request.candidates or ():
        if isinstance(one, str):
            named += 1
        else:
            named += 5 if isinstance(one.features, SparseFeatures) else 3
    return named


def _strings_told(request: schemas.FeedbackRequest) -> int:
    """Return how many strings there are in a piece of feedback, names included."""
    named = len(request.model_fields_set)
    for text in (request.recommendation_id, request.event_id, request.item):
        named += text is not None
    return named


# From schemas to decisions.


def _ask(request: schemas.RecommendRequest) -> Ask:
    candidates, features = request.candidates, request.features
    return Ask(
        request.recommender,
        request.client,
        request.context,
        request.limit,
        request.exclude,
        None if candidates is None else [_candidate(one) for one in candidates],
        request.event_id,
        None if features is None else _vector(features),
        request.category,
        request.round,
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


_read_recommend = Reader(schemas.RecommendRequest, strings=_strings)
_read_feedback = Reader(schemas.FeedbackRequest, strings=_strings_told)
_read_recommend_batch = BatchReader(
    schemas.RecommendBatch,
    "requests",
    schemas.RecommendRequest,
    strings=_strings,
    convert=_ask,
)
_read_feedback_batch = BatchReader(
    schemas.FeedbackBatch,
    "feedback",
    schemas.FeedbackRequest,
    strings=_strings_told,
    convert=_feedback,
)

_ACCEPTED = {
    duplicate: f'"accepted":true,"duplicate":{"true" if duplicate else "false"}}}'
    for duplicate in (False, True)
}
_ACCEPTED_ALONE = {duplicate: ("{" + shown).encode() for duplicate, shown in _ACCEPTED.items()}
_GOOD = '{"status":200,'


async def answer_recommend(runtime: Runtime, body: bytes) -> bytes:
    """`POST /recommend`."""
    answer = await recommend(runtime, _ask(_read_recommend(body)))
    return recommendation_json(answer).encode()


async def answer_feedback(runtime: Runtime, body: bytes) -> bytes:
    """`POST /feedback`."""
    receipt = await give_feedback(runtime, _feedback(_read_feedback(body)))
    return _ACCEPTED_ALONE[receipt.duplicate]


async def answer_recommend_batch(runtime: Runtime, body: bytes) -> bytes:
    """`POST /recommend/batch`."""
    entries = _read_recommend_batch(body)
    answers = await recommend_batch(runtime, good(entries))
    return results_json(entries, answers, _recommended_entry)


async def answer_feedback_batch(runtime: Runtime, body: bytes) -> bytes:
    """`POST /feedback/batch`."""
    entries = _read_feedback_batch(body)
    receipts = await feedback_batch(runtime, good(entries))
    return results_json(entries, receipts, _received_entry)


def _recommended_entry(answer: Recommendation) -> str:
    return recommendation_json(answer, _GOOD)


def _received_entry(receipt: Receipt) -> str:
    return _GOOD + _ACCEPTED[receipt.duplicate]


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
