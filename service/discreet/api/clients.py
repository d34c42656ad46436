"""What is kept about one client: shown (scope serve) and erased (scope admin)."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request

from discreet.api import schemas
from discreet.api.routing import ScopedRoute, described, live
from discreet.api.shown import amount
from discreet.decisions.clients import budget_of, erase_client
from discreet.families.documents import Identifier

router = APIRouter(route_class=ScopedRoute, tags=["clients"])

Client = Annotated[Identifier, Path()]


@router.get(
    "/clients/{client:path}/budget",
    response_model=schemas.BudgetAnswer,
    **described("serve", 404, 422),
)
async def show_budget(
    request: Request,
    client: Client,
    recommender: Annotated[Identifier, Query()],
) -> Any:
    """Show how a client stands with a recommender; an unknown client has spent nothing."""
    report = await budget_of(live(request)["runtime"], recommender=recommender, client=client)
    return {"spent": amount(report.spent), "remaining": amount(report.remaining)}


@router.delete(
    "/clients/{client:path}", response_model=schemas.ErasedAnswer, **described("admin", 404, 422)
)
async def erase(request: Request, client: Client) -> Any:
    """Erase what is stored about a client. The ledger stays, under a keyed digest."""
    erased = await erase_client(live(request)["runtime"], client=client)
    return {"events": erased.events, "records": erased.records}
