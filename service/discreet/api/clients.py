"""What is kept about one client: shown (scope serve) and erased (scope admin)."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from discreet.api import schemas
from discreet.api.routing import ClientRecords, ScopedRoute, described
from discreet.api.shown import account
from discreet.families.documents import Identifier

router = APIRouter(route_class=ScopedRoute, tags=["clients"])

ClientId = Annotated[Identifier, Path()]


@router.get(
    "/clients/{client:segment}/budget",
    response_model=schemas.BudgetAnswer,
    response_model_exclude_unset=True,
    **described("serve", 404, 422, recommender_in="query"),
)
async def show_budget(
    clients: ClientRecords, client: ClientId, recommender: Annotated[Identifier, Query()]
) -> Any:
    """Show a client's two accounts with a recommender; an unknown client has spent nothing."""
    report = await clients.budget(recommender=recommender, client=client)
    return {"answers": account(report.answers), "feedback": account(report.feedback)}


@router.delete(
    "/clients/{client:segment}", response_model=schemas.ErasedAnswer, **described("admin", 404, 422)
)
async def erase(clients: ClientRecords, client: ClientId) -> Any:
    """Erase what is stored about a client; the certificate says what remains and why."""
    erased = await clients.erase(client)
    certificate = erased.certificate
    return {
        "events": certificate.events,
        "records": sum(certificate.records.values()),
        "certificate": certificate.content(),
        "seal": erased.seal,
    }


@router.post(
    "/erasures/verify",
    response_model=schemas.VerifiedAnswer,
    **described("serve", 400, 413, 422),
)
async def verify_erasure(clients: ClientRecords, body: schemas.ErasureProof) -> Any:
    """Tell whether this service made a certificate of erasure, and nobody changed it since."""
    return {"valid": clients.verify(certificate=body.certificate, seal=body.seal)}
