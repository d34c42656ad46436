"""A Discreet server that takes profiles (`collaborative`): its five requests.

| request | what it carries | depends on the history |
|---|---|---|
| the whole catalogue | nothing about anyone | no |
| a profile | the client's random id, and the ids of a list, sorted | only through the list |
| recommendations | the id, and every category in the catalogue's order | no |
| what is popular | nothing about anyone | no |
| an empty profile | the id | no |

What is shown is arranged on the device afterwards: seen items are taken out here, and rows are
ordered here. So the requests are the same, in number, order and size, whatever the history is.
`ServiceAdapter` is what any other service needs; `plain_server` has one for services that were
never made for this.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from discreet.errors import InvalidArgument
from discreet.hub.errors import HubRefusal, ServerError
from discreet.hub.outgoing import KEPT, call, refusal, require_safe

CATALOGUE_SECONDS = 30.0
ANSWER_SECONDS = 15.0
ASKED_PER_ROW = 40
"""Always as many, so that taking seen items out here leaves enough to show."""

ASKED_FOR_POPULAR = 100
"""What is popular, as far as a server will say at once."""


@dataclass(frozen=True, slots=True)
class RecommendedRow:
    """The server's answer for one category, or overall where `category` is None."""

    category: str | None
    items: tuple[str, ...]
    personalised: bool


class ServiceAdapter(Protocol):
    """A recommendation service as the hub uses it. Every method may raise `ServerError`."""

    @property
    def url(self) -> str:
        """Where it is, for its owner to read."""

    @property
    def recommender(self) -> str:
        """What it is called there, for its owner to read."""

    @property
    def client(self) -> str | None:
        """The id that the key is bound to; None where the device may make one up."""

    def catalogue(self) -> Any:
        """Return the whole catalogue: `{"items": [{"id", "title", "categories"}], ...}`."""

    def send_profile(self, client: str, items: Iterable[str]) -> None:
        """Replace what the service holds under this id by exactly these items."""

    def popular(self, categories: Sequence[str]) -> list[RecommendedRow]:
        """Ask for what anybody gets; no rows where the service does not say."""

    def recommend(self, client: str, categories: Sequence[str]) -> list[RecommendedRow]:
        """Ask for a row overall, and for one a category where the service knows categories."""


@dataclass(frozen=True, slots=True)
class RecommendationServer:
    """A Discreet server, as it was named when the hub was started."""

    url: str
    recommender: str
    key: str
    client: str | None = None
    """The id that the key is bound to, if it is a device's."""

    def __post_init__(self) -> None:
        require_safe(self.url, "--server")
        if urlsplit(self.url).query:
            raise InvalidArgument("--server", "must look like https://recommend.example")
        if not self.recommender:
            raise InvalidArgument("--recommender", "must name a recommender of the server")
        require_key(self.key)

    def catalogue(self) -> Any:
        """Return the whole catalogue as the server gives it."""
        return self._call("GET", f"/recommenders/{self._name}/catalogue", None, CATALOGUE_SECONDS)

    def send_profile(self, client: str, items: Iterable[str]) -> None:
        """Replace what the server holds under this id by exactly these items."""
        # Sorted: an order could tell what a set does not.
        body = {"client": client, "items": sorted(items), "replace": True}
        path = f"/recommenders/{self._name}/profiles"
        answer = self._call("POST", path, body, ANSWER_SECONDS)
        if not isinstance(answer, Mapping):
            raise ServerError(f"The server's answer cannot be read. {KEPT}")

    def popular(self, categories: Sequence[str]) -> list[RecommendedRow]:
        """Ask for what anybody gets, for nobody."""
        path = f"/recommenders/{self._name}/popular?limit={ASKED_FOR_POPULAR}"
        answer = self._call("GET", path, None, ANSWER_SECONDS)
        try:
            return [
                RecommendedRow(row["category"], tuple(map(str, row["items"])), False)
                for row in answer["rows"]
            ]
        except (KeyError, TypeError) as error:
            raise ServerError(f"The server's answer cannot be read. {KEPT}") from error

    def recommend(self, client: str, categories: Sequence[str]) -> list[RecommendedRow]:
        """Ask for a row overall and one for each category, in the order given."""
        asked: list[str | None] = [None, *categories]
        requests = [
            {
                "recommender": self.recommender,
                "client": client,
                "limit": ASKED_PER_ROW,
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

    @property
    def _name(self) -> str:
        return quote(self.recommender, safe="")

    def _call(self, method: str, path: str, body: Any, seconds: float) -> Any:
        headers = {"Authorization": f"Bearer {self.key}"}
        url = self.url.rstrip("/") + path
        status, answer = call(method, url, body, headers=headers, seconds=seconds)
        if status >= 300:
            missing = f"The server has no recommender “{self.recommender}” that takes profiles."
            raise refusal(status, answer, missing=missing)
        return answer


def require_key(key: str) -> None:
    """Raise `InvalidArgument` for what no server gives out as a key."""
    if not key or not key.isascii() or not key.isprintable():
        raise InvalidArgument("--key-file", "must hold a key that the server gave out")


def somebody() -> str:
    """Return an id that is made up for one request."""
    return f"anybody-{secrets.token_hex(16)}"


def required(server: ServiceAdapter | None) -> ServiceAdapter:
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
