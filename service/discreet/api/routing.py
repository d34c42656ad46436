"""Routes that say who may call them, and read their bodies the strict way.

Every route declares its scopes in the OpenAPI document (`x-scopes`); one that does not cannot be
made. So what is documented and what is enforced are the same line.

A handler is given the one part that it needs, by its type: `Registry`, `ClientRecords`, …; what
only one family has, by `part_of`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Any, NamedTuple, TypedDict, TypeVar

from fastapi import Depends, params
from fastapi.dependencies.utils import get_flat_params
from fastapi.routing import APIRoute
from starlette.convertors import register_url_convertor
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from discreet.api.addresses import WrongKeys, network_of
from discreet.api.admission import Admission
from discreet.api.bodies import SHORT_BODY, BodyRoom, parse, read_body
from discreet.api.paths import SegmentConvertor
from discreet.api.problems import CONTENT_TYPE
from discreet.api.security import RecommenderIn, Scopes, authorise, bearer, require_reach
from discreet.decisions.batcher import Waiter
from discreet.decisions.clients import Clients
from discreet.decisions.devices import Devices
from discreet.decisions.experiments import Experiments
from discreet.decisions.explanations import Explanations
from discreet.decisions.forwards import ForwardRequests
from discreet.decisions.grants import KeyGrant
from discreet.decisions.keys import KeyRing
from discreet.decisions.registry import RecommenderRegistry, Snapshot
from discreet.decisions.rewards import Rewards
from discreet.decisions.services import DecisionServices
from discreet.decisions.statements import Statements
from discreet.errors import (
    InvalidArgument,
    NotAllowed,
    NotAuthenticated,
    Overloaded,
    UnknownCode,
)
from discreet.metrics import Metrics
from discreet.validation import UNKNOWN_FIELD

BEARER = "ApiKey"

register_url_convertor("segment", SegmentConvertor())

P = TypeVar("P")


class Live(TypedDict):
    """What the lifespan opens, and every request finds in `scope["state"]`."""

    services: DecisionServices
    metrics: Metrics
    admission: Admission
    wrong_keys: WrongKeys
    most_body_bytes: int
    body_room: BodyRoom


def live(request: Request) -> Live:
    """Return what the lifespan opened."""
    return request.scope["state"]  # type: ignore[no-any-return]


# What handlers ask for. Coroutines, because FastAPI would start a thread for a plain function.


async def _registry(request: Request) -> RecommenderRegistry:
    return live(request)["services"].registry


async def _clients(request: Request) -> Clients:
    return live(request)["services"].clients


async def _statements(request: Request) -> Statements:
    return live(request)["services"].statements


async def _explanations(request: Request) -> Explanations:
    return live(request)["services"].explanations


async def _forwards(request: Request) -> ForwardRequests:
    return live(request)["services"].forwards


async def _rewards(request: Request) -> Rewards:
    return live(request)["services"].rewards


async def _experiments(request: Request) -> Experiments:
    return live(request)["services"].experiments


async def _devices(request: Request) -> Devices:
    return live(request)["services"].devices


async def _keys(request: Request) -> KeyRing:
    return live(request)["services"].keys


async def _grant(request: Request) -> KeyGrant:
    found: KeyGrant = request.scope["state"]["grant"]
    return found


async def _metrics(request: Request) -> Metrics:
    return live(request)["metrics"]


async def _requester(request: Request) -> str:
    label = await live(request)["services"].keys.label_of(bearer(request.scope["headers"]))
    if label is None:
        raise NotAllowed("other instances need a key of their own: `discreet keys create`")
    return label


Registry = Annotated[RecommenderRegistry, Depends(_registry)]
ClientRecords = Annotated[Clients, Depends(_clients)]
ClientStatements = Annotated[Statements, Depends(_statements)]
Explained = Annotated[Explanations, Depends(_explanations)]
Forwards = Annotated[ForwardRequests, Depends(_forwards)]
AwaitedRewards = Annotated[Rewards, Depends(_rewards)]
RunningExperiments = Annotated[Experiments, Depends(_experiments)]
DeviceKeys = Annotated[Devices, Depends(_devices)]
OperatorKeys = Annotated[KeyRing, Depends(_keys)]
CallerGrant = Annotated[KeyGrant, Depends(_grant)]
"""What the caller's key allows: handlers check with it what only the body tells."""
WorkerMetrics = Annotated[Metrics, Depends(_metrics)]
Requester = Annotated[str, Depends(_requester)]
"""How the calling instance is known here: the label of its key."""


def part_of(kind: type[P]) -> Any:
    """Return a dependency: what the recommender `{name}` of the path offers beside answers.

    A recommender that has no such thing is answered 404.
    """

    async def find(request: Request, name: str) -> P:
        return (await live(request)["services"].registry.find(name)).part(kind)

    return Depends(find)


# Declarations.


def described(
    scopes: str | Scopes | None,
    *statuses: int,
    created: Any = None,
    recommender_in: RecommenderIn | None = None,
) -> dict[str, Any]:
    """Return what a route's declaration says about its scopes, its problems, and a 201.

    Any one of the `scopes` is enough; None needs no key. `created` is a model, or a union of
    several. `recommender_in` tells where the recommender is named, if not as `{name}` in the path:
    "body" promises that the handler checks it against the caller's grant.
    """
    codes = set(statuses) | {500}
    accepted = [scopes] if isinstance(scopes, str) else list(scopes or ())
    extra: dict[str, Any] = {"x-scopes": accepted}
    if recommender_in is not None:
        extra["x-recommender-in"] = recommender_in
    if accepted:
        extra["security"] = [{BEARER: []}]
        codes |= {401, 403, 422, 429, 503}
    responses = {code: _problem_response(code) for code in sorted(codes)}
    if created is not None:
        responses[201] = {"model": created, "description": "Created"}
    return {"openapi_extra": extra, "responses": responses}


def _problem_response(status: int) -> dict[str, Any]:
    descriptions = {
        400: "The body is not JSON, or the recommendation id is invalid",
        401: "No key, or an unknown one",
        403: "The key does not allow this, or the budget is spent and the recommender refuses",
        404: "Not found",
        409: "Conflicts with what is there already",
        410: "The recommendation has expired",
        412: "The document has changed since, as If-Match tells: nothing was changed",
        413: "The body is too large",
        422: "Validation failed; each field is named",
        429: "Too many requests, in all or of this key: nothing was counted, see Retry-After",
        500: "Internal error",
        503: "The store did not answer: nothing was released; a debit may have been made",
    }
    return {
        "description": descriptions[status],
        "content": {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
    }


class ScopedRoute(APIRoute):
    """A FastAPI route that authorises first and then reads a bounded body."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self.scopes: Scopes = tuple(options["openapi_extra"]["x-scopes"])
        named: RecommenderIn = "path" if "{name}" in path else "nowhere"
        self.recommender_in: RecommenderIn = options["openapi_extra"].get("x-recommender-in", named)
        self.always = path.startswith(("/health/", "/metrics"))
        """Answered however busy the worker is."""
        super().__init__(path, endpoint, **options)
        taken = get_flat_params(self.dependant)
        self._queries = {one.alias for one in taken if isinstance(one.field_info, params.Query)}

    async def authorise(self, request: Request) -> None:
        """Return if the caller's key has a scope of this route, and reaches its recommender, and
        its query has a meaning."""
        if self.scopes:
            opened, headers = live(request), request.scope["headers"]
            grant = await authorise(opened["services"].keys, headers, self.scopes)
            opened["services"].rates.take(grant)
            named = {"path": request.path_params.get("name")}
            named["query"] = request.query_params.get("recommender")
            require_reach(grant, self.recommender_in, named.get(self.recommender_in))
            request.scope["state"]["grant"] = grant
        if not self.always:  # whoever looks after a server may add what he likes
            require_known(request.query_params, self._queries)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            opened = live(request)
            async with slow_if_wrong(request):
                await self.authorise(request)
                if self.body_field is not None:
                    most = opened["most_body_bytes"]
                    most = most if self.scopes else min(SHORT_BODY, most)
                    request = await _with_checked_body(request, most, opened["body_room"])
                if self.always:
                    return await handle(request)
                async with self.room(opened["admission"]):
                    return await handle(request)

        return handler

    def room(self, admission: Admission) -> AbstractAsyncContextManager[None]:
        """Return the room in which requests to this route are answered."""
        return room_beside(admission)


def require_known(query: QueryParams, known: Collection[str] = ()) -> None:
    """Raise `InvalidArgument` for a name in a query that means nothing here, or stands twice."""
    names = [name for name, _ in query.multi_items()]
    for name in names:
        if name not in known:
            meant = ", ".join(sorted(known)) or "none"
            raise InvalidArgument(name[:100], f"{UNKNOWN_FIELD} of a query; known here: {meant}")
        if names.count(name) > 1:
            raise InvalidArgument(name, "must stand once")


@asynccontextmanager
async def slow_if_wrong(request: Request) -> AsyncIterator[None]:
    """Let a wrong key or code be answered the later, the more there were from its address."""
    try:
        yield
    except (NotAuthenticated, UnknownCode):
        network = "" if request.client is None else network_of(request.client.host)
        await asyncio.sleep(live(request)["wrong_keys"].delay(network))
        raise


@asynccontextmanager
async def room_beside(admission: Admission) -> AsyncIterator[None]:
    """Do what is not on the request path, or raise `Overloaded`."""
    if not admission.enter_beside():
        await asyncio.sleep(admission.refusal_delay())
        raise Overloaded
    try:
        yield
    finally:
        admission.leave_beside()


async def _with_checked_body(request: Request, most: int, room: BodyRoom) -> Request:
    body = await read_body(request.receive, request.scope["headers"], most, room)
    parse(body)

    async def replay() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    # It is JSON, whatever it was called: FastAPI looks at the name.
    headers = [pair for pair in request.scope["headers"] if pair[0] != b"content-type"]
    headers.append((b"content-type", b"application/json"))
    return Request({**request.scope, "headers": headers}, replay)


AnswerBody = Callable[[DecisionServices, KeyGrant, bytes], Awaitable[bytes]]


class JoinedBody(NamedTuple):
    """How a body is answered with others of its turn, without awaiting anything."""

    enter: Callable[[DecisionServices, Snapshot, KeyGrant, bytes, Waiter], bool]
    """Returns False if more than that is needed: then `AnswerBody` answers. Raises what is wrong
    with the body."""
    show: Callable[[Any], bytes]
    """Writes what the waiter is given."""


"""From what the caller may do and a body's bytes to the answer's bytes; whatever it raises becomes
a problem."""


class DirectRoute(APIRoute):
    """A route declared for the OpenAPI document and answered without FastAPI.

    Dependencies, response models and middleware cost more than the decision itself. The endpoint
    function only carries the declaration; the gateway calls `answer`.
    """

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        answer: AnswerBody,
        joined: JoinedBody | None = None,
        **options: Any,
    ) -> None:
        self.scopes: Scopes = tuple(options["openapi_extra"]["x-scopes"])
        self.answer = answer
        self.joined = joined
        self.many = joined is None
        """Whether it takes batches, which are long work."""
        super().__init__(path, endpoint, **options)
        self.app: ASGIApp = _unreachable


async def _unreachable(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("the gateway answers direct routes itself")
