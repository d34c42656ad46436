"""The hub's application: its page and its routes behind its guard, and errors in plain words."""

import mimetypes
from pathlib import Path

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from discreet.errors import DiscreetError, InvalidArgument
from discreet.hub import routes
from discreet.hub.errors import HubRefusal, ServerError
from discreet.hub.guard import Guard
from discreet.hub.push import PATH, PushEndpoint
from discreet.hub.services import HubServices

# What a platform has registered may be wrong, and browsers run no script of another type.
mimetypes.add_type("text/javascript", ".js")
mimetypes.add_type("image/svg+xml", ".svg")


def create_app(
    services: HubServices, *, folder: Path, port: int, secret: str, push_key: str
) -> ASGIApp:
    """Return everything that the hub serves; uploads pass through `folder`."""
    app = FastAPI(title="Discreet hub", docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(routes.router(services, folder))
    app.router.routes.append(Route(PATH, PushEndpoint(services, key=push_key)))
    app.mount("/", StaticFiles(packages=[("discreet.hub", "page")], html=True))
    app.add_exception_handler(DiscreetError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _failed)
    return Guard(app, port=port, secret=secret)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, HubRefusal):
        return JSONResponse({"detail": str(error)}, 409)
    if isinstance(error, ServerError):
        return JSONResponse({"detail": str(error)}, 502)
    if isinstance(error, InvalidArgument):
        return JSONResponse({"detail": f"{error.argument} {error.reason}."}, 422)
    return JSONResponse({"detail": f"That did not work: {error}."}, 500)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return JSONResponse({"detail": f"{first['loc'][-1]}: {first['msg']}."}, 422)


async def _failed(request: Request, error: Exception) -> JSONResponse:
    # What happened is printed on the owner's own terminal, by uvicorn.
    words = "Something went wrong in the hub. Your history is kept; nothing was sent."
    return JSONResponse({"detail": words}, 500)
