"""The request path: recommend and feedback, one by one and in batches, from bytes to bytes."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from fastapi import FastAPI
from pydantic import BaseModel

from discreet.api import schemas
from discreet.api.batches import BatchReader, FailedEntry, permitted, results_json, usable
from discreet.api.bodies import Reader
from discreet.api.plain import Take, plain_ask, plain_feedback, read_many, read_one
from discreet.api.routing import AnswerBody, DirectRoute, JoinedBody, described
from discreet.api.shown import receipt_json, recommendation_json
from discreet.decisions.batcher import Waiter
from discreet.decisions.grants import KeyGrant
from discreet.decisions.registry import Snapshot
from discreet.decisions.services import DecisionServices
from discreet.errors import DiscreetError, InvalidArgument
from discreet.families.documents import SparseFeatures
from discreet.families.questions import (
    Ask,
    Candidate,
    Feedback,
    Receipt,
    Recommendation,
    Sparse,
    Vector,
)

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
R = TypeVar("R")

_ENTRY = '{"status":200,'


@dataclass(frozen=True)
class DirectOperation(Generic[M, T, R]):
    """One thing that can be asked for, alone or in a batch.

    A body is read as it stands if it is `plain`, else as `model`, which `convert` turns into what
    decisions take; `one` and `many` carry it out, `enter` with others of its turn if that is all it
    needs, and `show` writes what came of it, beginning with the text it is given. `within` returns
    it as far as a bound key reaches, or raises `NotAllowed`.
    """

    model: type[M]
    batch: type[BaseModel]
    entries: str
    plain: Take[T]
    convert: Callable[[M], T]
    one: Callable[[DecisionServices, T], Awaitable[R]]
    enter: Callable[[DecisionServices, Snapshot, T, Waiter], bool]
    many: Callable[[DecisionServices, Sequence[T]], Awaitable[Sequence[R | DiscreetError]]]
    show: Callable[[R, str], str]
    within: Callable[[KeyGrant, T], T]

    def answer_one(self) -> AnswerBody:
        """Return what answers a body that holds one."""
        read, convert, one, show = Reader(self.model), self.convert, self.one, self.show
        plain, within = self.plain, self.within

        async def answer(services: DecisionServices, grant: KeyGrant, body: bytes) -> bytes:
            wanted = read_one(plain, body)
            if wanted is None:
                wanted = convert(read(body))
            if grant.bound:
                wanted = within(grant, wanted)
            return show(await one(services, wanted), "{").encode()

        return answer

    def join_one(self) -> JoinedBody:
        """Return how a body that holds one is answered with others of its turn."""
        read, convert, show = Reader(self.model), self.convert, self.show
        plain, within, enter = self.plain, self.within, self.enter

        def join(
            services: DecisionServices,
            snapshot: Snapshot,
            grant: KeyGrant,
            body: bytes,
            waiter: Waiter,
        ) -> bool:
            wanted = read_one(plain, body)
            if wanted is None:
                wanted = convert(read(body))
            if grant.bound:
                wanted = within(grant, wanted)
            return enter(services, snapshot, wanted, waiter)

        return JoinedBody(join, lambda outcome: show(outcome, "{").encode())

    def answer_many(self) -> AnswerBody:
        """Return what answers a body that holds a batch."""
        read = BatchReader(self.batch, self.entries, self.model, self.convert)
        name, plain = self.entries, self.plain
        many, show, within = self.many, self.show, self.within

        async def answer(services: DecisionServices, grant: KeyGrant, body: bytes) -> bytes:
            entries: Sequence[T | FailedEntry] | None = read_many(plain, name, body)
            if entries is None:
                entries = read(body)
            services.rates.take(grant, len(entries))
            if grant.bound:
                entries = [permitted(entry, partial(within, grant)) for entry in entries]
            outcomes = await many(services, usable(entries))
            return await results_json(entries, outcomes, lambda outcome: show(outcome, _ENTRY))

        return answer


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
        None if features is None else sparse_or_dense(features),
        request.category,
        request.round,
        request.activate,
        full=request.items == "full",
    )


def _candidate(one: str | schemas.CandidateRequest) -> str | Candidate:
    return (
        one
        if isinstance(one, str)
        else Candidate(id=one.id, features=sparse_or_dense(one.features))
    )


def sparse_or_dense(features: SparseFeatures | list[float]) -> Vector:
    """Return features as families take them."""
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


def _ask_within(grant: KeyGrant, ask: Ask) -> Ask:
    grant.require_recommender(ask.recommender)
    grant.require_client(ask.client)
    return ask if grant.client is None else ask._replace(personal=True)


RECOMMEND: DirectOperation[schemas.RecommendRequest, Ask, Recommendation] = DirectOperation(
    model=schemas.RecommendRequest,
    batch=schemas.RecommendBatch,
    entries="requests",
    plain=plain_ask,
    convert=_ask,
    one=lambda services, ask: services.recommend.recommend(ask),
    enter=lambda services, snapshot, ask, waiter: services.recommend.enter(snapshot, ask, waiter),
    many=lambda services, asks: services.recommend.recommend_many(asks),
    show=recommendation_json,
    within=_ask_within,
)
FEEDBACK: DirectOperation[schemas.FeedbackRequest, Feedback, Receipt] = DirectOperation(
    model=schemas.FeedbackRequest,
    batch=schemas.FeedbackBatch,
    entries="feedback",
    plain=plain_feedback,
    convert=_feedback,
    one=lambda services, feedback: services.feedback.record(feedback),
    enter=lambda services, _, feedback, waiter: services.feedback.enter(feedback, waiter),
    many=lambda services, many: services.feedback.record_many(many),
    show=receipt_json,
    # Which recommender it is about, only the opened token tells.
    within=lambda grant, feedback: feedback._replace(recommenders=grant.recommenders),
)


# Declarations: what the OpenAPI document says about them.


async def _recommend(body: schemas.RecommendRequest) -> Any:
    """Choose what a client should see. Charged to the client's budget before it is answered."""


async def _feedback_on(body: schemas.FeedbackRequest) -> Any:
    """Report how a recommendation was received. Repeating it is harmless; a different reward for
    the same item is 409."""


async def _recommend_batch(body: schemas.RecommendBatch) -> Any:
    """Answer up to 1,000 requests; each has its own status."""


async def _feedback_batch(body: schemas.FeedbackBatch) -> Any:
    """Take up to 1,000 pieces of feedback; each has its own status."""


def declare(app: FastAPI) -> None:
    """Add the request path's routes."""

    def add(
        path: str,
        endpoint: Any,
        answer: AnswerBody,
        model: Any,
        *statuses: int,
        joined: JoinedBody | None = None,
        scopes: tuple[str, ...] = ("serve",),
    ) -> None:
        name = path.strip("/").replace("/", "_")
        app.router.routes.append(
            DirectRoute(
                path,
                endpoint,
                answer=answer,
                joined=joined,
                methods=["POST"],
                name=name,
                operation_id=name,
                response_model=model,
                tags=["decisions"],
                **described(scopes, 400, 413, 422, *statuses, recommender_in="body"),
            )
        )

    one, many, joined = RECOMMEND.answer_one(), RECOMMEND.answer_many(), RECOMMEND.join_one()
    model, reading = schemas.RecommendAnswer, ("serve", "profile")
    add("/recommend", _recommend, one, model, 404, 409, joined=joined, scopes=reading)
    add("/recommend/batch", _recommend_batch, many, schemas.RecommendBatchAnswer, scopes=reading)
    one, many, joined = FEEDBACK.answer_one(), FEEDBACK.answer_many(), FEEDBACK.join_one()
    add("/feedback", _feedback_on, one, schemas.FeedbackAnswer, 404, 409, 410, joined=joined)
    add("/feedback/batch", _feedback_batch, many, schemas.FeedbackBatchAnswer)
