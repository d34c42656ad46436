"""For whoever runs the service: is it alive, is it ready, what is it doing."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from discreet.api import schemas
from discreet.api.routing import ScopedRoute, WorkerMetrics, described, live
from discreet.errors import only_reading
from discreet.metrics import FLUSH_SECONDS

router = APIRouter(route_class=ScopedRoute, tags=["operations"])


@router.get(
    "/health/live",
    response_model=schemas.HealthAnswer,
    response_model_exclude_none=True,
    **described(None),
)
async def alive() -> Any:
    """Tell that the process answers. It does not ask the store."""
    return {"status": "ok"}


@router.get(
    "/health/ready",
    response_model=schemas.HealthAnswer,
    response_model_exclude_none=True,
    **described(None, 503),
)
async def ready(request: Request) -> Any:
    """Tell that requests can be served: the store answers and the registry is loaded.

    Recommenders that this version cannot read are counted; the others are served.
    """
    services = live(request)["services"]
    with only_reading():
        await services.store.ping()
        unreadable = await services.registry.unreadable()
    return {"status": "ok", "unreadable": len(unreadable) or None}


@router.get("/metrics", response_class=PlainTextResponse, **described(("metrics", "admin")))
async def metrics(series: WorkerMetrics) -> Response:
    """Show every worker's series in Prometheus' text format."""
    # By then every worker has written what it had counted.
    await asyncio.sleep(2 * FLUSH_SECONDS)
    series.flush()
    content = await asyncio.to_thread(series.render)
    return Response(content, media_type="text/plain; version=0.0.4; charset=utf-8")
