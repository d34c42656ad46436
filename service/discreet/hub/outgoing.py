"""The one place from which bytes leave this device: a request, its limits, and what may go wrong.

Redirections are not followed: a list goes where its owner sent it, or nowhere. Anything but HTTPS
stays on this device.
"""

import ipaddress
import json
import socket
import ssl
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import httpx

from discreet.errors import InvalidArgument
from discreet.hub.errors import ServerError

MOST_BYTES = 64 << 20
KEPT = "Your history and your list are kept on this device."


def require_safe(url: str, argument: str) -> None:
    """Raise `InvalidArgument` for an address that others on the way could read."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidArgument(argument, "must look like https://recommend.example")
    if parts.username or parts.password:
        raise InvalidArgument(argument, "must not hold a password; use --key-file")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise InvalidArgument(
            argument, "must be https:// unless it runs on this device: others could read it"
        )


def call(
    method: str, url: str, body: Any, *, headers: Mapping[str, str], seconds: float
) -> tuple[int, Any]:
    """Send a request and return its status and its JSON; the JSON is None unless it succeeded.

    A refusal comes back as its status, with the server's reason where it gives one.
    """
    address = "{0.scheme}://{0.netloc}".format(urlsplit(url))
    try:
        with (
            httpx.Client(
                timeout=seconds,
                follow_redirects=False,
                verify=_authorities(),
                # Plain HTTP stays on this device, so that no proxy may be used for it.
                trust_env=url.startswith("https://"),
            ) as session,
            session.stream(
                method, url, json=body, headers={"User-Agent": "discreet-hub", **headers}
            ) as answer,
        ):
            data = _read(answer)
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise ServerError(
            f"The server at {address} does not answer ({_short(error)}). {KEPT} Try again later."
        ) from error
    if not answer.is_success:
        return answer.status_code, _detail(data)
    if not data:
        return answer.status_code, None
    try:
        return answer.status_code, json.loads(data)
    except ValueError as error:
        raise ServerError(
            f"What answers at {address} is not a recommendation server. {KEPT}"
        ) from error


def refusal(status: int, detail: Any, *, missing: str) -> ServerError:
    """Return what an unsuccessful answer means; `missing` explains a 404."""
    words = {
        401: "The server does not know the key that the hub was given.",
        403: "The key does not have the scope that this needs: profile, or serve.",
        404: missing,
        422: f"The server refused it: {detail} If its catalogue has changed, update it and create "
        "another list.",
        429: "The server is busy. Try again later.",
    }
    text = words.get(status, f"The server failed (status {status}). Try again later.")
    if 300 <= status < 400:
        text = "The server redirects elsewhere, and the hub does not follow."
    return ServerError(f"{text} {KEPT}")


@lru_cache(maxsize=1)
def _authorities() -> ssl.SSLContext:
    """Return the trusted authorities; reading them at every call would be felt."""
    return httpx.create_ssl_context()


def _read(answer: httpx.Response) -> bytes:
    data = bytearray()
    for chunk in answer.iter_bytes():
        data += chunk
        if len(data) > MOST_BYTES:
            raise httpx.DecodingError("the answer is larger than 64 MB")
    return bytes(data)


def _short(error: Exception) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "it took too long"
    if isinstance(error.__cause__, ConnectionRefusedError) or "refused" in str(error):
        return "the connection was refused"
    if isinstance(error.__cause__, socket.gaierror):
        return "there is no such address"
    return str(error) or type(error).__name__


def _detail(data: bytes) -> str:
    try:
        detail = json.loads(data)["detail"]
    except (ValueError, KeyError, TypeError):
        return "it does not say why."
    text = str(detail)[:300].strip()
    return text if text.endswith(".") else f"{text}."


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
