"""What local servers of federated clusters ask of the global one (scope peer)."""

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from discreet.api.routing import Requester, ScopedRoute, described, part_of
from discreet.api.schemas import Body
from discreet.families.fclub.document import MOST_DIMENSIONS
from discreet.families.fclub.sync.global_server import ArrivedUpdates, UpdatesFromServers
from discreet.families.fclub.sync.local_server import MERGED_PATH, MOST_UPDATES, UPDATES_PATH
from discreet.families.fclub.sync.merged_model import MOST_NUMBER
from discreet.privacy.matrices import half_size

router = APIRouter(route_class=ScopedRoute, tags=["federation"])

MOST_MEMBERS = 50_000
MOST_STEPS = 1 + half_size(MOST_DIMENSIONS) + MOST_DIMENSIONS

Source = Annotated[str, Field(strict=True, pattern=r"^[0-9a-f]{16}$")]
Number = Annotated[int, Field(strict=True, ge=0, lt=MOST_NUMBER)]
Step = Annotated[int, Field(strict=True, ge=-(2**62), le=2**62)]
Updates = Annotated[UpdatesFromServers, part_of(UpdatesFromServers)]


class NoisyUpdateRequest(Body):
    """Noisy sums about some of a server's users, in steps of 2**-20; the first is the count."""

    number: Number = Field(description="A total that changes gets the next number.")
    members: list[Number] = Field(min_length=1, max_length=MOST_MEMBERS, fail_fast=True)
    steps: list[Step] = Field(min_length=3, max_length=MOST_STEPS, fail_fast=True)
    deviation: float = Field(
        strict=True,
        ge=0,
        le=1e12,
        allow_inf_nan=False,
        description="Of the noise on the sums of products; 0 if there is none.",
    )


class NoisyUpdatesRequest(Body):
    """A server's totals, in ascending order of their numbers. None at all asks what is wanted."""

    source: Source = Field(description="The name that the sending recommender got when created.")
    dimensions: int = Field(strict=True, ge=1, le=MOST_DIMENSIONS)
    baseline: float = Field(strict=True, ge=0, le=1, allow_inf_nan=False)
    updates: list[NoisyUpdateRequest] = Field(max_length=MOST_UPDATES)


class NoisyUpdatesAnswer(BaseModel):
    """The number of the next update that is wanted; all before are kept."""

    next: int


class MergedModelRequest(Body):
    """A server asks what the others' updates tell; `seen` is the version that it has, or -1."""

    source: Source
    seen: int = Field(strict=True, ge=-1, lt=MOST_NUMBER)


class MergedModelAnswer(BaseModel):
    """Other servers' knowledge by cluster, and the clusters of the asking server's members.

    Matrices are upper triangles, row by row, in information form.
    """

    version: int
    matrices: list[list[float]]
    vectors: list[list[float]]
    counts: list[float]
    members: list[int]
    labels: list[int]


@router.post(
    f"/peers/recommenders/{{name}}/{UPDATES_PATH}",
    response_model=NoisyUpdatesAnswer,
    **described("peer", 400, 404, 409, 413, 422),
)
async def take_updates(
    request: Request, updates: Updates, requester: Requester, body: NoisyUpdatesRequest
) -> Any:
    """Keep a local server's noisy updates; the same one again changes nothing."""
    arrived = ArrivedUpdates(
        label=requester,
        source=body.source,
        dimensions=body.dimensions,
        baseline=body.baseline,
        updates=[(one.number, one.members, one.steps, one.deviation) for one in body.updates],
    )
    wanted = await updates.accept(arrived)
    updates.note_received(label=requester, size=_size(request))
    return {"next": wanted}


@router.post(
    f"/peers/recommenders/{{name}}/{MERGED_PATH}",
    response_model=MergedModelAnswer | None,
    **described("peer", 400, 404, 413, 422),
)
async def give_merged_model(
    request: Request, updates: Updates, requester: Requester, body: MergedModelRequest
) -> Any:
    """Return what the other servers' updates say; null if the server has that already."""
    merged = updates.merged_for(label=requester, source=body.source, seen=body.seen)
    updates.note_received(label=requester, size=_size(request))
    # It may be long, and was checked when it was made.
    return Response(merged if merged is not None else b"null", media_type="application/json")


def _size(request: Request) -> int:
    return int(request.headers.get("content-length", 0))
