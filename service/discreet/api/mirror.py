"""What nodes of sparse mirror descent ask each other (scope peer)."""

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from discreet.api.peers import requester_of
from discreet.api.routing import ScopedRoute, described, live
from discreet.api.schemas import Body
from discreet.families.mirror_descent.broadcasts import load_known
from discreet.families.mirror_descent.neighbours import letter_of
from discreet.families.mirror_descent.recommender import MirrorRecommender
from discreet.errors import UnknownRecommender

router = APIRouter(route_class=ScopedRoute, tags=["nodes"])

LETTER = "application/octet-stream"


class ModelRequest(Body):
    """A neighbour's question: what do you know?"""

    seen: Annotated[str, Field(strict=True, pattern=r"^([0-9a-f]{32})?$")] = Field(
        default="", description="The revision that the neighbour has seen, if any."
    )


def _described() -> dict[str, Any]:
    told = described("peer", 400, 404, 413, 422)
    told["responses"][200] = {
        "description": "The node's mixed, noisy sums; without them if that revision was seen.",
        "content": {LETTER: {"schema": {"type": "string", "format": "binary"}}},
    }
    return told


@router.post("/peers/recommenders/{name}/models", response_class=Response, **_described())
async def give_model(request: Request, name: str, body: ModelRequest) -> Response:
    """Tell a neighbour what this node knows. All of it was released with noise before."""
    runtime = live(request)["runtime"]
    label = await requester_of(request)
    recommender = await runtime.registry.find(name)
    if not isinstance(recommender, MirrorRecommender):
        raise UnknownRecommender("no recommender of that name has neighbours")
    known = await load_known(runtime, recommender)
    content = letter_of(recommender, known).shortened(bytes.fromhex(body.seen)).encode()
    runtime.observer.exchanged(
        recommender=recommender.name,
        peer=label,
        direction="received",
        outcome="answered",
        size=len(content),
    )
    return Response(content, media_type=LETTER)
