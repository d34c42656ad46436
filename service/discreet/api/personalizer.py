"""Personalizer's calls, for applications that were written for it: rank, reward, activate.

    POST /personalizer/v1.0/rank                        201
    POST /personalizer/v1.0/events/{eventId}/reward     204
    POST /personalizer/v1.0/events/{eventId}/activate   204

The recommender whose document has `personalizer` answers. A rank is a question under an event id,
paid for by its client like any other; a reward is feedback on it. Errors have Personalizer's shape.

The protocol has no client, and without one there is nobody whose budget could pay: a request that
names none is refused. All nameless users as one client would spend one budget among them, and a
client for each request would promise nothing to a person who comes twice.

A ranking is one private draw, which stands first; the rest stand in the order of the request. The
probabilities of a draw are what it hides: they are given only where nobody was looked at.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from http import HTTPStatus
from time import perf_counter
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response
from fastapi.exceptions import RequestValidationError
from pydantic_core import to_json
from starlette.requests import Request

from discreet.api.admission import Admission
from discreet.api.bodies import Disconnected
from discreet.api.personalizer_schemas import (
    ErrorResponse,
    PersonalizerId,
    RankAnswer,
    RankRequest,
    RewardRequest,
)
from discreet.api.problems import (
    INTERNAL,
    INVALID,
    NOT_FOUND,
    TOO_MANY,
    Problem,
    ProblemKind,
    Refused,
    invalid,
    problem_of,
)
from discreet.api.routing import BEARER, CallerGrant, ScopedRoute, live
from discreet.decisions.services import DecisionServices
from discreet.errors import (
    EventReused,
    InvalidArgument,
    NotAllowed,
    Overloaded,
    UnknownDecision,
    UnknownRecommender,
)
from discreet.families.contract import Recommender
from discreet.families.nested import LONGEST_CLIENT, NestedReader
from discreet.families.questions import Activation, Ask, Feedback

log = logging.getLogger(__name__)

SUBSCRIPTION = "SubscriptionKey"
KEY_HEADER = "Ocp-Apim-Subscription-Key"
CLIENT_HEADER = "X-Discreet-Client"
ROOT = "/personalizer/v1.0"

NOT_SUPPORTED = ProblemKind("not-supported", 501, "Not supported")
_ELSEWHERE = {
    "configurations": "a recommender is configured by its document: PUT /recommenders/{name}",
    "model": "models are released by the clock, and are not handed out",
    "evaluations": "a log is evaluated by `discreet evaluate`",
    "logs": "decisions are logged where a document says `log:`, for `discreet evaluate`",
    "status": "GET /health/ready tells whether the service can answer",
    "multislot": "one call chooses one action; ask once for each slot, without those already shown",
}
"""Calls of Personalizer's that have no counterpart below this address, and what does it instead."""


class PersonalizerRoute(ScopedRoute):
    """A route with Personalizer's header for the key, and its errors; on the request path."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            try:
                return await handle(_with_bearer(request))
            except Disconnected:
                raise
            except Exception as error:
                return _refusal(request, error)

        return handler

    def room(self, admission: Admission) -> AbstractAsyncContextManager[None]:
        """Return the room of /recommend and /feedback: these calls are as urgent."""
        return _room_among(admission)


@asynccontextmanager
async def _room_among(admission: Admission) -> AsyncIterator[None]:
    if not admission.enter():
        await asyncio.sleep(admission.refusal_delay())
        raise Overloaded
    began, seconds = perf_counter(), None
    try:
        yield
        seconds = perf_counter() - began
    finally:
        admission.leave(seconds)


def _with_bearer(request: Request) -> Request:
    """Return the request with the subscription key as the bearer, unless it has one."""
    key = _header(request, KEY_HEADER)
    if key is None or "authorization" in request.headers:
        return request
    bearer = (b"authorization", b"Bearer " + key.encode("latin-1"))
    return Request(
        {**request.scope, "headers": [bearer, *request.scope["headers"]]}, request.receive
    )


def _header(request: Request, name: str) -> str | None:
    """Return a header; two of them might mean two keys, or two people."""
    found = request.headers.getlist(name)
    if len(found) > 1:
        raise InvalidArgument(name, "must be sent once")
    return found[0] if found else None


def _refusal(request: Request, error: Exception) -> Response:
    """Return what went wrong, in Personalizer's shape."""
    if isinstance(error, RequestValidationError):
        problem = invalid(error.errors())
    else:
        problem = problem_of(error)
    if problem.status == INTERNAL.status:
        log.exception("a request failed", extra={"request_id": live(request).get("request_id")})
    if problem.status == TOO_MANY:
        live(request)["metrics"].refused(problem.slug)
    status = 400 if problem.status == INVALID.status else problem.status
    return Response(
        to_json(_error(problem, _code(status))),
        status_code=status,
        headers=dict(problem.headers),
        media_type="application/json",
    )


_CODES = {404: "ResourceNotFound"}


def _code(status: int) -> str:
    return _CODES.get(status) or HTTPStatus(status).phrase.title().replace(" ", "")


def _error(problem: Problem, code: str) -> dict[str, Any]:
    wrong = problem.content.get("errors", ())
    error: dict[str, Any] = {"code": code, "message": problem.content["detail"]}
    if wrong:
        error["target"] = wrong[0]["field"]
    error["details"] = [
        {"code": code, "message": one["message"], "target": one["field"]} for one in wrong
    ]
    return {"error": {**error, "innerError": {"code": problem.slug}}}


def _described(*statuses: int) -> dict[str, Any]:
    """Return what a route's declaration says about its scopes and errors."""
    codes = sorted({400, 401, 403, 404, 409, 413, 429, 500, 503, *statuses})
    return {
        "openapi_extra": {
            "x-scopes": ["serve"],
            "x-recommender-in": "body",
            "security": [{SUBSCRIPTION: []}, {BEARER: []}],
        },
        "responses": {
            **{code: {"model": ErrorResponse, "description": _code(code)} for code in codes},
            # Said in Personalizer's words: a form that is wrong is a bad request.
            422: {"model": ErrorResponse, "description": "Not used: answered as 400"},
        },
    }


router = APIRouter(route_class=PersonalizerRoute, tags=["personalizer"])


async def _services(request: Request) -> DecisionServices:
    return live(request)["services"]


Services = Annotated[DecisionServices, Depends(_services)]


async def _answering(services: DecisionServices) -> tuple[Recommender[Any], NestedReader]:
    """Return the recommender that answers here, and how it reads requests."""
    recommenders = (await services.registry.current()).recommenders.values()
    found = [one for one in recommenders if one.offers(NestedReader)]
    if len(found) != 1:
        how_many = "several recommenders have" if found else "no recommender has"
        raise UnknownRecommender(f"{how_many} `personalizer` in its document: one must")
    return found[0], found[0].part(NestedReader)


def _client(request: Request, reader: NestedReader, context: list[Any]) -> str:
    """Return whose request it is, or say how to tell."""
    named = _header(request, CLIENT_HEADER)
    try:
        client = reader.client(context) if named is None else named.encode("latin-1").decode()
    except UnicodeDecodeError:
        raise InvalidArgument(CLIENT_HEADER, "must be UTF-8") from None
    if client is None:
        features = ", ".join(reader.client_names) or "none"
        raise InvalidArgument(
            "contextFeatures",
            f"name the user whose privacy budget pays: by the header {CLIENT_HEADER}, or by a "
            f"context feature that the document lists ({features})",
        )
    if not (0 < len(client) <= LONGEST_CLIENT and client.isprintable()):
        reason = f"must be 1 to {LONGEST_CLIENT} printable characters"
        raise InvalidArgument(CLIENT_HEADER if named is not None else "contextFeatures", reason)
    return client


@contextmanager
def _own_events() -> Iterator[None]:
    """Say of another recommender's event what is said of one that never was."""
    try:
        yield
    except NotAllowed:
        raise UnknownDecision("nothing was ranked under that eventId, or it has expired") from None


@router.post(
    f"{ROOT}/rank",
    status_code=201,
    response_model=RankAnswer,
    name="personalizer_rank",
    **_described(),
)
async def rank(request: Request, services: Services, grant: CallerGrant, body: RankRequest) -> Any:
    """Choose one of the actions for a user. Charged to the user's budget before it is answered."""
    recommender, reader = await _answering(services)
    context = body.context_features or []
    client = _client(request, reader, context)
    grant.require_recommender(recommender.name)
    grant.require_client(client)
    excluded = frozenset(body.excluded_actions or ())
    event = body.event_id or str(uuid.uuid4())
    actions = [(action.id, action.features) for action in body.actions]
    answer = await services.recommend.recommend(
        Ask(
            recommender.name,
            client,
            exclude=sorted(excluded),
            candidates=reader.candidates(context, actions),
            event_id=event,
            activate=not (body.defer_activation and recommender.awaits),
        )
    )
    ids = [action.id for action in body.actions]
    (chosen,) = answer.items
    if chosen not in ids or chosen in excluded:
        raise EventReused("eventId already names a request with other actions; use a new one")
    left = [action for action in ids if action not in excluded]
    alike = None if answer.personalised else 1 / len(left)
    order = iter([chosen, *(action for action in left if action != chosen)])
    ranking = [action if action in excluded else next(order) for action in ids]
    return {
        "ranking": [
            {"id": action, "probability": 0.0 if action in excluded else alike}
            for action in ranking
        ],
        "eventId": event,
        "rewardActionId": chosen,
    }


@router.post(
    f"{ROOT}/events/{{event:segment}}/reward",
    status_code=204,
    name="personalizer_reward",
    **_described(410),
)
async def reward(
    services: Services, grant: CallerGrant, event: PersonalizerId, body: RewardRequest
) -> None:
    """Report how good the chosen action was. Repeating it is harmless; another value is 409."""
    recommender, _ = await _answering(services)
    grant.require_recommender(recommender.name)
    low, high = recommender.reward.range
    value = body.value
    if -1 <= value <= 1:
        value = min(max(value, low), high)
    with _own_events():
        await services.feedback.record(
            Feedback(reward=value, event_id=event, recommenders=frozenset({recommender.name}))
        )


@router.post(
    f"{ROOT}/events/{{event:segment}}/activate",
    status_code=204,
    name="personalizer_activate",
    **_described(410),
)
async def activate(services: Services, grant: CallerGrant, event: PersonalizerId) -> None:
    """Report that the chosen action was shown: the wait for its reward begins. Repeatable."""
    recommender, _ = await _answering(services)
    grant.require_recommender(recommender.name)
    with _own_events():
        await services.rewards.activate(
            Activation(event_id=event, recommenders=frozenset({recommender.name}))
        )


@router.api_route(
    "/personalizer/{rest:path}",
    methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
    include_in_schema=False,
    openapi_extra={"x-scopes": ["serve"], "x-recommender-in": "body"},
)
async def nothing_else(rest: str) -> None:
    """Say of any other call of Personalizer's what does it here, if anything does."""
    for part in rest.split("/")[1:]:
        if part in _ELSEWHERE:
            raise Refused(NOT_SUPPORTED, _ELSEWHERE[part])
    raise Refused(NOT_FOUND, f"there are {ROOT}/rank, /events/{{eventId}}/reward and /activate")
