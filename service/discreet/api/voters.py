"""The rounds and votes of a recommender by voters' weights."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from discreet.api.bodies import Reader, read_body
from discreet.api.routing import (
    ScopedRoute,
    described,
    live,
    part_of,
    room_beside,
    slow_if_wrong,
)
from discreet.api.voters_schemas import (
    RoundAnswer,
    RoundChange,
    RoundRequest,
    RoundsAnswer,
    VotesAnswer,
    VotesRequest,
)
from discreet.errors import UnknownItem
from discreet.families.p_rec.rounds import Round
from discreet.families.p_rec.votes import Votes

router = APIRouter(route_class=ScopedRoute, tags=["votes"])

RecommenderVotes = Annotated[Votes, part_of(Votes)]


async def _find(votes: Votes, round_id: str) -> Round:
    one = await votes.rounds.by_id(round_id)
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
async def make_round(votes: RecommenderVotes, response: Response, body: RoundRequest) -> Any:
    """Make a round (201), open to votes; making the same one again changes nothing (200)."""
    one, new = await votes.rounds.make(round_id=body.id, objects=body.objects)
    response.status_code = 201 if new else 200
    return _shown(one, closed=await votes.rounds.is_closed(one))


@router.get(
    "/recommenders/{name}/rounds",
    response_model=RoundsAnswer,
    **described("admin", 404, 422),
)
async def list_rounds(votes: RecommenderVotes) -> Any:
    """List the newest 1,000 rounds, in their order."""
    return {"rounds": [_shown(one, closed=closed) for one, closed in await votes.rounds.latest()]}


@router.get(
    "/recommenders/{name}/rounds/{round_id:segment}",
    response_model=RoundAnswer,
    **described("admin", 404, 422),
)
async def show_round(votes: RecommenderVotes, round_id: str) -> Any:
    """Show a round."""
    one = await _find(votes, round_id)
    return _shown(one, closed=await votes.rounds.is_closed(one))


@router.patch(
    "/recommenders/{name}/rounds/{round_id:segment}",
    response_model=RoundAnswer,
    **described("admin", 400, 404, 413, 422),
)
async def close_round(votes: RecommenderVotes, round_id: str, body: RoundChange) -> Any:
    """End the voting of a round. Once closed, it stays closed."""
    one = await _find(votes, round_id)
    await votes.rounds.close(one)
    return _shown(one, closed=body.state == "closed")


_read = Reader(VotesRequest)


class VotesRoute(ScopedRoute):
    """Reads its body in a thread: a hundred thousand votes would hold up other requests."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        async def handler(request: Request) -> Response:
            opened, headers = live(request), request.scope["headers"]
            async with slow_if_wrong(request):
                await self.authorise(request)
            most, room = opened["most_body_bytes"], opened["body_room"]
            body = await read_body(request.receive, headers, most, room)
            async with room_beside(opened["admission"]):
                read = await asyncio.to_thread(_read, body)
                found = await opened["services"].registry.find(request.path_params["name"])
                answer = await post_votes(found.part(Votes), read)
            return Response(to_json(answer), media_type="application/json")

        return handler


async def post_votes(votes: RecommenderVotes, body: VotesRequest) -> Any:
    """Count a vote, or many. If one of them cannot be used, it is named and none is counted."""
    return {"counted": await votes.cast(await asyncio.to_thread(body.listed))}


router.add_api_route(
    "/recommenders/{name}/votes",
    post_votes,
    methods=["POST"],
    response_model=VotesAnswer,
    route_class_override=VotesRoute,
    **described("serve", 400, 404, 413, 422),
)
