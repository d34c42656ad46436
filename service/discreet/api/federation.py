"""What local servers of federated clusters send to the global one (scope peer)."""

from typing import Any

from fastapi import APIRouter, Request, Response

from discreet.api import federation_schemas as schemas
from discreet.api.peers import requester_of
from discreet.api.routing import ScopedRoute, described, live
from discreet.families.fclub.merging import Arrived, accept, view_of
from discreet.families.fclub.recommender import ClusterRecommender
from discreet.decisions.runtime import Runtime
from discreet.errors import UnknownRecommender

router = APIRouter(route_class=ScopedRoute, tags=["federation"])


async def _found(runtime: Runtime, name: str) -> ClusterRecommender:
    recommender = await runtime.registry.find(name)
    if not isinstance(recommender, ClusterRecommender):
        raise UnknownRecommender("no recommender of that name takes letters")
    return recommender


@router.post(
    "/peers/recommenders/{name}/letters",
    response_model=schemas.LettersAnswer,
    **described("peer", 400, 404, 409, 413, 422),
)
async def take_letters(request: Request, name: str, body: schemas.LettersRequest) -> Any:
    """Keep a local server's letters; the same one again changes nothing."""
    runtime = live(request)["runtime"]
    label = await requester_of(request)
    recommender = await _found(runtime, name)
    wanted = await accept(
        runtime,
        recommender,
        Arrived(
            label=label,
            source=body.source,
            dimensions=body.dimensions,
            baseline=body.baseline,
            epsilon=body.epsilon,
            delta=body.delta,
            letters=[(one.sequence, one.members, one.steps) for one in body.letters],
        ),
    )
    _note(runtime, recommender, label, request)
    return {"next": wanted}


@router.post(
    "/peers/recommenders/{name}/views",
    response_model=schemas.ViewAnswer | None,
    **described("peer", 400, 404, 413, 422),
)
async def give_view(request: Request, name: str, body: schemas.ViewRequest) -> Any:
    """Tell a local server what the others' letters say; null if it has heard that already."""
    runtime = live(request)["runtime"]
    label = await requester_of(request)
    recommender = await _found(runtime, name)
    view = await view_of(runtime, recommender, label=label, source=body.source, seen=body.seen)
    _note(runtime, recommender, label, request)
    # As it is stored: it may be long, and was checked when it was made.
    return Response(view if view is not None else b"null", media_type="application/json")


def _note(runtime: Runtime, recommender: ClusterRecommender, label: str, request: Request) -> None:
    runtime.observer.exchanged(
        recommender=recommender.name,
        peer=label,
        direction="received",
        outcome="answered",
        size=int(request.headers.get("content-length", 0)),
    )
