"""Who may talk to the hub's own server: the page that the hub opened, and nobody else.

A server on loopback can be reached by every program and every web page on the device. Against that:

- **Host**: only the hub's own address is answered. A hostile site that lets its name point to
  127.0.0.1 (DNS rebinding) still says its own name.
- **Secret**: everything under `/api/` needs a secret that is made at every start and handed to the
  page in the address's fragment, which browsers never send. It travels in a header. A cookie would
  not do: cookies do not know ports, so every other server on this device would be sent it.
- **Origin**: a request that a browser says comes from elsewhere is refused, whatever it knows.
- **Pushing**: `/push` takes a key of its own instead of the secret, and may be called by a
  browser's extension, whose origin is not a web page's.
- **Policy**: the page may load nothing from, and send nothing to, any other address; nobody may
  frame it; no script is inside the page.
"""

import hmac
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from discreet.hub.push import PATH

EXTENSIONS = ("chrome-extension://", "moz-extension://", "safari-web-extension://")
SECRET_HEADER = "X-Discreet-Hub"  # noqa: S105 - the header's name, not a secret
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # What is shown here is private; a shared cache or the next user must not find it.
    "Cache-Control": "no-store",
}


class Guard:
    """The middleware around everything the hub serves."""

    def __init__(self, app: ASGIApp, *, port: int, secret: str) -> None:
        self._app = app
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._origins = {f"http://{host}" for host in self._hosts}
        self._secret = secret.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on with the policy's headers."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # nothing here speaks anything else
        reason = self._refusal(scope["path"], Headers(scope=scope))
        if reason:
            await JSONResponse({"detail": reason}, 403, headers=HEADERS)(scope, receive, send)
            return

        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self._app(scope, receive, with_policy)

    def _refusal(self, path: str, headers: Mapping[str, str]) -> str:
        if headers.get("host") not in self._hosts:
            return "Open the hub at the address that it printed."
        origin = headers.get("origin", "")
        if path == PATH and (origin == "" or origin.startswith(EXTENSIONS)):
            return ""  # the endpoint asks for its own key
        if origin not in self._origins | {""}:
            return "Only the hub's own page may do this."
        # Following a link from elsewhere to the page itself shows nothing without the secret.
        followed = headers.get("sec-fetch-mode") == "navigate" and not path.startswith("/api/")
        foreign = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
        if foreign and not followed:
            return "Only the hub's own page may do this."
        if path.startswith("/api/"):
            given = headers.get(SECRET_HEADER, "").encode()
            if not hmac.compare_digest(given, self._secret):
                return "Open the page with the address that the hub printed when it started."
        return ""
