"""The live page at `/`: what the service is doing now, drawn in the browser from `/metrics`.

Plain files, no build step, and nothing from any other host: the policy sent with each of them
would not allow it. The page itself needs no key because it shows nothing by itself; the browser
asks for `/metrics` with the key that the person has. So it is with the page at `/statement`, which
shows one person what was spent of their budgets.
"""

from collections.abc import Awaitable, Callable
from importlib.resources import files

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

INDEX = "index.html"
STATEMENT = "statement.html"
MEDIA_TYPES = {
    INDEX: "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "measures.js": "text/javascript; charset=utf-8",
    "chart.js": "text/javascript; charset=utf-8",
    "trial.js": "text/javascript; charset=utf-8",
    "guarantee.js": "text/javascript; charset=utf-8",
    "context.js": "text/javascript; charset=utf-8",
    "map.js": "text/javascript; charset=utf-8",
    STATEMENT: "text/html; charset=utf-8",
    "statement.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    # The key may stand in the address for a moment, as a fragment; no address is passed on.
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    # A new version must not be drawn by an old script.
    "Cache-Control": "no-cache",
}


def mount(app: FastAPI) -> None:
    """Serve the page at `/`, the statement's at `/statement`, and their parts under `/page/`."""
    app.add_route("/", _serve(INDEX), methods=["GET"], include_in_schema=False)
    app.add_route("/statement", _serve(STATEMENT), methods=["GET"], include_in_schema=False)
    for name in MEDIA_TYPES:
        if name not in (INDEX, STATEMENT):
            app.add_route(f"/page/{name}", _serve(name), methods=["GET"], include_in_schema=False)


def _serve(name: str) -> Callable[[Request], Awaitable[Response]]:
    body = (files(__name__) / name).read_bytes()

    async def part(request: Request) -> Response:
        return Response(body, media_type=MEDIA_TYPES[name], headers=HEADERS)

    return part
