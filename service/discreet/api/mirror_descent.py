"""What nodes of sparse mirror descent ask each other (scope peer)."""

from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import Field

from discreet.api.routing import Requester, ScopedRoute, described, part_of
from discreet.api.schemas import Body
from discreet.families.mirror_descent.sync import ModelExchange

router = APIRouter(route_class=ScopedRoute, tags=["nodes"])

MESSAGE = "application/octet-stream"


class ModelRequest(Body):
    """A neighbour asks for this node's sums."""

    seen: Annotated[str, Field(strict=True, pattern=r"^([0-9a-f]{32})?$")] = Field(
        default="", description="The revision that the neighbour has seen, if any."
    )


def _described() -> dict[str, Any]:
    declared = described("peer", 400, 404, 413, 422)
    declared["responses"][200] = {
        "description": "The node's mixed, noisy sums; without them if that revision was seen.",
        "content": {MESSAGE: {"schema": {"type": "string", "format": "binary"}}},
    }
    return declared


@router.post("/peers/recommenders/{name}/models", response_class=Response, **_described())
async def give_model(
    exchange: Annotated[ModelExchange, part_of(ModelExchange)],
    requester: Requester,
    body: ModelRequest,
) -> Response:
    """Return the node's sums to a neighbour. All of them were released with noise before."""
    content = exchange.answer(peer=requester, seen=bytes.fromhex(body.seen))
    return Response(content, media_type=MESSAGE)
