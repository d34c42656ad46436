"""Every byte that leaves this device: five requests, all of them in this file.

| request | what it carries | depends on the history |
|---|---|---|
| the whole catalogue | nothing about anyone | no |
| a profile | the client's random id, and the ids of a list, sorted | only through the list |
| recommendations | the id, and every category in the catalogue's order | no |
| what is popular | an id made up for this request, and the same categories | no |
| an empty profile | the id | no |

What is shown is arranged on the device afterwards: seen items are taken out here, and rows are
ordered here. So the requests are the same, in number, order and size, whatever the history is.
Redirections are not followed: a list goes where its owner sent it, or nowhere.
"""

import ipaddress
import json
import secrets
import socket
import ssl
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from discreet.errors import InvalidArgument
from discreet.hub.errors import HubRefusal, ServerError

CATALOGUE_SECONDS = 30.0
ANSWER_SECONDS = 15.0
MOST_BYTES = 64 << 20
ASKED_PER_ROW = 40
"""Always as many, so that taking seen items out here leaves enough to show."""

ASKED_FOR_POPULAR = 100
"""What is popular, as far as a server will say at once."""

KEPT = "Your history and your list are kept on this device."


@dataclass(frozen=True, slots=True)
class RecommendedRow:
    """The server's answer for one category, or overall where `category` is None."""

    category: str | None
    items: tuple[str, ...]
    personalised: bool


@dataclass(frozen=True, slots=True)
class RecommendationServer:
    """The recommendation server, as it was named when the hub was started."""

    url: str
    recommender: str
    key: str

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise InvalidArgument("--server", "must look like https://recommend.example")
        if parts.username or parts.password:
            raise InvalidArgument("--server", "must not hold a password; use --key-file")
        if parts.scheme == "http" and not _is_loopback(parts.hostname):
            raise InvalidArgument(
                "--server", "must be https:// unless it runs on this device: others could read it"
            )
        if not self.recommender:
            raise InvalidArgument("--recommender", "must name a recommender of the server")
        if not self.key or not self.key.isascii() or not self.key.isprintable():
            raise InvalidArgument("--key-file", "must hold a key that the server gave out")

    def catalogue(self) -> Any:
        """Return the whole catalogue as the server gives it."""
        path = f"/recommenders/{quote(self.recommender, safe='')}/catalogue"
        return self._call("GET", path, None, CATALOGUE_SECONDS)

    def send_profile(self, client: str, items: Iterable[str]) -> None:
        """Replace what the server holds under this id by exactly these items."""
        # Sorted: an order could tell what a set does not.
        body = {"client": client, "items": sorted(items), "replace": True}
        path = f"/recommenders/{quote(self.recommender, safe='')}/profiles"
        answer = self._call("POST", path, body, ANSWER_SECONDS)
        if not isinstance(answer, Mapping):
            raise ServerError(f"The server's answer cannot be read. {KEPT}")

    def popular(self, categories: Sequence[str]) -> list[RecommendedRow]:
        """Ask for what anybody gets, under an id that is used once."""
        anybody = f"anybody-{secrets.token_hex(16)}"
        return self.recommend(anybody, categories, limit=ASKED_FOR_POPULAR)

    def recommend(
        self, client: str, categories: Sequence[str], *, limit: int = ASKED_PER_ROW
    ) -> list[RecommendedRow]:
        """Ask for a row overall and one for each category, in the order given."""
        asked: list[str | None] = [None, *categories]
        requests = [
            {
                "recommender": self.recommender,
                "client": client,
                "limit": limit,
                **({} if category is None else {"category": category}),
            }
            for category in asked
        ]
        answer = self._call("POST", "/recommend/batch", {"requests": requests}, ANSWER_SECONDS)
        try:
            results = answer["results"]
            if len(results) != len(asked):
                raise ValueError
            return [_row(name, result) for name, result in zip(asked, results, strict=True)]
        except (KeyError, TypeError, ValueError) as error:
            raise ServerError(f"The server's answer cannot be read. {KEPT}") from error

    def _call(self, method: str, path: str, body: Any, seconds: float) -> Any:
        headers = {"Authorization": f"Bearer {self.key}", "User-Agent": "discreet-hub"}
        try:
            with (
                httpx.Client(
                    timeout=seconds,
                    follow_redirects=False,
                    verify=_authorities(),
                    # Plain HTTP stays on this device, so that no proxy may be used for it.
                    trust_env=self.url.startswith("https://"),
                ) as session,
                session.stream(
                    method, self.url.rstrip("/") + path, json=body, headers=headers
                ) as answer,
            ):
                data = _read(answer)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise ServerError(
                f"The server at {self.url} does not answer ({_short(error)}). {KEPT} "
                "Try again later."
            ) from error
        if answer.is_success:
            try:
                return json.loads(data)
            except ValueError as error:
                raise ServerError(
                    f"What answers at {self.url} is not a Discreet server. {KEPT}"
                ) from error
        raise ServerError(self._explanation(answer.status_code, data))

    def _explanation(self, status: int, data: bytes) -> str:
        if status == 401:
            return f"The server does not know the key that the hub was given. {KEPT}"
        if status == 403:
            return f"The key needs the “serve” scope, which it does not have. {KEPT}"
        if status == 404:
            return f"The server has no recommender “{self.recommender}” that takes profiles. {KEPT}"
        if status == 422:
            return (
                f"The server refused it: {_detail(data)} If its catalogue has changed, fetch it "
                f"again and create another list. {KEPT}"
            )
        if 300 <= status < 400:
            return f"The server redirects elsewhere, and the hub does not follow. {KEPT}"
        return f"The server failed (status {status}). {KEPT} Try again later."


@lru_cache(maxsize=1)
def _authorities() -> ssl.SSLContext:
    """Return the trusted authorities; reading them at every call would be felt."""
    return httpx.create_ssl_context()


def required(server: RecommendationServer | None) -> RecommendationServer:
    """Return the server, or say how to name one."""
    if server is None:
        raise HubRefusal(
            "No server was named when the hub was started. Start it again with "
            "--server, --recommender and --key-file."
        )
    return server


def _row(category: str | None, result: Any) -> RecommendedRow:
    if result["status"] != 200:
        # A category without a single item to recommend is no reason to show nothing at all.
        return RecommendedRow(category, (), False)
    items = tuple(str(item["id"]) for item in result["items"])
    return RecommendedRow(category, items, bool(result["personalised"]))


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
