"""For whoever runs the service: is it alive, is it ready, what is it doing."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from discreet.api import schemas
from discreet.api.routing import ScopedRoute, described, live
from discreet.metrics import FLUSH_SECONDS

router = APIRouter(route_class=ScopedRoute, tags=["operations"])


@router.get("/health/live", response_model=schemas.HealthAnswer, **described(None))
async def alive(request: Request) -> Any:
    """Tell that the process answers. It does not ask the store."""
    return {"status": "ok"}


@router.get("/health/ready", response_model=schemas.HealthAnswer, **described(None, 503))
async def ready(request: Request) -> Any:
    """Tell that requests can be served: the store answers and the registry is loaded."""
    runtime = live(request)["runtime"]
    await runtime.store.ping()
    await runtime.registry.current()
    return {"status": "ok"}


@router.get("/metrics", response_class=PlainTextResponse, **described("metrics"))
async def metrics(request: Request) -> Response:
    """Show every worker's series in Prometheus' text format."""
    # Every worker has written what it had noted by then.
    await asyncio.sleep(2 * FLUSH_SECONDS)
    series = live(request)["metrics"]
    series.flush()
    content = await asyncio.to_thread(series.render)
    return Response(content, media_type="text/plain; version=0.0.4; charset=utf-8")
