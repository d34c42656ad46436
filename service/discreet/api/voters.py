"""The rounds and votes of a recommender by voters' weights."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from discreet.api.bodies import Reader, read_body
from discreet.api.routing import ScopedRoute, described, live
from discreet.api.security import authorise
from discreet.api.voters_schemas import (
    RoundAnswer,
    RoundChange,
    RoundRequest,
    RoundsAnswer,
    VotesAnswer,
    VotesRequest,
)
from discreet.decisions.runtime import Runtime
from discreet.families.p_rec.ballots import cast
from discreet.families.p_rec.desk import Desk
from discreet.families.p_rec.family import VotersFamily
from discreet.families.p_rec.recommender import VotersRecommender
from discreet.families.p_rec.rounds import Round
from discreet.errors import UnknownItem, UnknownRecommender

router = APIRouter(route_class=ScopedRoute, tags=["votes"])


async def _find(request: Request, name: str) -> tuple[Runtime, VotersRecommender, Desk]:
    runtime = live(request)["runtime"]
    found = await runtime.registry.find(name)
    family = runtime.families[found.algorithm]
    if not isinstance(found, VotersRecommender) or not isinstance(family, VotersFamily):
        raise UnknownRecommender("that recommender takes no votes: its algorithm is not p-rec")
    return runtime, found, family.desk(found)


async def _round(
    runtime: Runtime, recommender: VotersRecommender, desk: Desk, round_id: str
) -> Round:
    one = await desk.rounds.called(runtime, recommender, round_id)
    if one is None:
        raise UnknownItem("no such round in this recommender; GET …/rounds lists them")
    return one


def _shown(one: Round, *, closed: bool) -> dict[str, Any]:
    return {"id": one.id, "objects": list(one.objects), "state": "closed" if closed else "open"}


@router.post(
    "/recommenders/{name}/rounds",
    response_model=RoundAnswer,
    **described("admin", 400, 404, 413, 422, created=RoundAnswer),
)
async def make_round(request: Request, response: Response, name: str, body: RoundRequest) -> Any:
    """Make a round (201), open to votes; making the same one again is no mistake (200)."""
    runtime, recommender, desk = await _find(request, name)
    one, new = await desk.rounds.make(runtime, recommender, round_id=body.id, objects=body.objects)
    response.status_code = 201 if new else 200
    return _shown(one, closed=await desk.rounds.is_closed(runtime, recommender, one))


@router.get(
    "/recommenders/{name}/rounds",
    response_model=RoundsAnswer,
    **described("admin", 404, 422),
)
async def list_rounds(request: Request, name: str) -> Any:
    """List the newest 1,000 rounds, in their order."""
    runtime, recommender, desk = await _find(request, name)
    rounds = await desk.rounds.latest(runtime, recommender)
    return {"rounds": [_shown(one, closed=closed) for one, closed in rounds]}


@router.get(
    "/recommenders/{name}/rounds/{round_id:path}",
    response_model=RoundAnswer,
    **described("admin", 404, 422),
)
async def show_round(request: Request, name: str, round_id: str) -> Any:
    """Show a round."""
    runtime, recommender, desk = await _find(request, name)
    one = await _round(runtime, recommender, desk, round_id)
    return _shown(one, closed=await desk.rounds.is_closed(runtime, recommender, one))


@router.patch(
    "/recommenders/{name}/rounds/{round_id:path}",
    response_model=RoundAnswer,
    **described("admin", 400, 404, 413, 422),
)
async def close_round(request: Request, name: str, round_id: str, body: RoundChange) -> Any:
    """End the voting of a round. Once closed, it stays closed."""
    runtime, recommender, desk = await _find(request, name)
    one = await _round(runtime, recommender, desk, round_id)
    await desk.rounds.close(runtime, recommender, one)
    return _shown(one, closed=body.state == "closed")


_read = Reader(VotesRequest)


class VotesRoute(ScopedRoute):
    """Reads its body aside: a hundred thousand votes would hold up everybody else's requests."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        required = self.scope
        assert required is not None

        async def handler(request: Request) -> Response:
            opened, headers = live(request), request.scope["headers"]
            await authorise(opened["runtime"], headers, required)
            body = await read_body(request.receive, headers, opened["most_body_bytes"])
            votes = await asyncio.to_thread(_read, body)
            answer = await post_votes(request, request.path_params["name"], votes)
            return Response(to_json(answer), media_type="application/json")

        return handler


async def post_votes(request: Request, name: str, body: VotesRequest) -> Any:
    """Count a vote, or many. If one of them cannot be used, it is named and none is counted."""
    runtime, recommender, desk = await _find(request, name)
    votes = await asyncio.to_thread(body.cast)
    return {"counted": await cast(runtime, recommender, desk.rounds, votes)}


router.add_api_route(
    "/recommenders/{name}/votes",
    post_votes,
    methods=["POST"],
    response_model=VotesAnswer,
    route_class_override=VotesRoute,
    **described("serve", 400, 404, 413, 422),
)
