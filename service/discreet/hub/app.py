"""The hub's application: its routes behind its guard, and refusals in plain words."""

from pathlib import Path

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from discreet.errors import DiscreetError, InvalidArgument
from discreet.hub import routes
from discreet.hub.guard import Guard
from discreet.hub.hub import Hub
from discreet.hub.refusals import Refused, ServerTrouble


def create_app(hub: Hub, *, folder: Path, port: int, secret: str) -> ASGIApp:
    """Return everything that the hub serves."""
    app = FastAPI(title="Discreet hub", docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(routes.pages())
    app.include_router(routes.router(hub, folder))
    app.add_exception_handler(DiscreetError, _refuse)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _trouble)
    return Guard(app, port=port, secret=secret)


async def _refuse(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, Refused):
        return JSONResponse({"detail": str(error)}, 409)
    if isinstance(error, ServerTrouble):
        return JSONResponse({"detail": str(error)}, 502)
    if isinstance(error, InvalidArgument):
        return JSONResponse({"detail": f"{error.argument} {error.reason}."}, 422)
    return JSONResponse({"detail": f"That did not work: {error}."}, 500)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return JSONResponse({"detail": f"{first['loc'][-1]}: {first['msg']}."}, 422)


async def _trouble(request: Request, error: Exception) -> JSONResponse:
    # What happened is printed on the owner's own terminal, by uvicorn.
    words = "Something went wrong in the hub. Your history is kept; nothing was sent."
    return JSONResponse({"detail": words}, 500)
