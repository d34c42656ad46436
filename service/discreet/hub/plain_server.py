"""A recommendation service that was never made for this, described by a small file.

The file says where the items are, where a profile is posted and where recommendations are read;
nothing has to change at the service. In addresses, headers and bodies these words stand for values:

    {key}       the key of the service, from `key_file`
    {client}    the random id under which the service knows this device
    {items}     the ids of the list, sorted: a value of its own in the body of `profile`
    {limit}     how many recommendations are asked for
    {category}  a category; without it in the file, only an overall row is asked for

So the requests are the same whatever the history is, but for the list: as many, in the same order.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field

from discreet.errors import InvalidArgument
from discreet.hub.errors import ServerError
from discreet.hub.outgoing import KEPT, call, refusal, require_safe
from discreet.hub.server import (
    ANSWER_SECONDS,
    ASKED_FOR_POPULAR,
    ASKED_PER_ROW,
    CATALOGUE_SECONDS,
    RecommendedRow,
    somebody,
)

Address = Annotated[str, Field(min_length=1, max_length=2_000)]
FieldPath = Annotated[str, Field(max_length=200)]


class ServiceFilePart(BaseModel):
    """A part of the file. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PlainCatalogueDocument(ServiceFilePart):
    """Where the items are, and what their fields are called. A name may reach inside: `a.name`."""

    url: Address
    items: FieldPath = Field(default="items", description="Where the list is; empty: it is all.")
    id: FieldPath = "id"
    title: FieldPath = "title"
    categories: FieldPath = "categories"


class PlainProfileDocument(ServiceFilePart):
    """Where a list is sent. It takes the place of the one before."""

    method: Literal["POST", "PUT", "PATCH"] = "POST"
    url: Address
    body: Any = Field(default_factory=lambda: {"user": "{client}", "items": "{items}"})


class PlainRecommendationsDocument(ServiceFilePart):
    """Where recommendations are read. `popular`: whether an id that nobody knows gets them too."""

    method: Literal["GET", "POST"] = "GET"
    url: Address
    body: Any = None
    items: FieldPath = Field(default="items", description="Where the list is; empty: it is all.")
    id: FieldPath = Field(default="id", description="Empty: the list is of ids.")
    popular: bool = False


class PlainServiceDocument(ServiceFilePart):
    """The whole file of a plain HTTP service."""

    adapter: Literal["plain"]
    name: str
    key_file: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    catalogue: PlainCatalogueDocument
    profile: PlainProfileDocument
    recommendations: PlainRecommendationsDocument


@dataclass(frozen=True, slots=True)
class PlainServer:
    """The service that such a file describes."""

    document: PlainServiceDocument
    key: str = ""

    def __post_init__(self) -> None:
        for part in ("catalogue", "profile", "recommendations"):
            require_safe(getattr(self.document, part).url, f"{part}.url")
        if "{items}" in self.document.profile.url:
            raise InvalidArgument(
                "profile.url", "{items} belongs into the body: addresses are kept"
            )
        if "{items}" not in _texts(self.document.profile.body):
            raise InvalidArgument("profile.body", 'must have a value "{items}"')
        if not self.key and any("{key}" in value for value in self.document.headers.values()):
            raise InvalidArgument("key_file", "is missing, and a header names {key}")

    @property
    def url(self) -> str:
        """Where its catalogue is."""
        return self.document.catalogue.url

    @property
    def recommender(self) -> str:
        """Its name in the file."""
        return self.document.name

    @property
    def client(self) -> str | None:
        """None: such a service knows no device."""
        return None

    def catalogue(self) -> Any:
        """Return the whole catalogue, in the hub's words."""
        part = self.document.catalogue
        answer = self._call("GET", part.url, None, CATALOGUE_SECONDS)
        try:
            return {
                "items": [
                    {
                        "id": str(_inside(item, part.id)),
                        "title": str(_inside(item, part.title)),
                        "categories": _names(_inside(item, part.categories, default=[])),
                    }
                    for item in _inside(answer, part.items)
                ]
            }
        except (LookupError, TypeError, ValueError) as error:
            raise ServerError(f"The catalogue is not as the file describes it. {KEPT}") from error

    def send_profile(self, client: str, items: Iterable[str]) -> None:
        """Send the list to where the file says."""
        part = self.document.profile
        values = {"client": client, "items": sorted(items)}
        self._call(part.method, _address(part.url, values), _filled(part.body, values))

    def popular(self, categories: Sequence[str]) -> list[RecommendedRow]:
        """Ask as nobody known, if the file says that this works."""
        if not self.document.recommendations.popular:
            return []
        return self._rows(somebody(), categories, ASKED_FOR_POPULAR, personalised=False)

    def recommend(self, client: str, categories: Sequence[str]) -> list[RecommendedRow]:
        """Ask for the overall row, and for every category if the service knows categories."""
        return self._rows(client, categories, ASKED_PER_ROW, personalised=True)

    def _rows(
        self, client: str, categories: Sequence[str], limit: int, *, personalised: bool
    ) -> list[RecommendedRow]:
        part = self.document.recommendations
        by_category = any("{category}" in text for text in (part.url, *_texts(part.body)))
        rows = []
        for category in (None, *(categories if by_category else ())):
            values = {"client": client, "limit": limit, "category": category or ""}
            url, body = _address(part.url, values), _filled(part.body, values)
            answer = self._call(part.method, url, body)
            try:
                found = _inside(answer, part.items)
                ids = tuple(str(_inside(item, part.id)) for item in found)
            except (LookupError, TypeError, ValueError) as error:
                raise ServerError(
                    f"Recommendations are not as the file describes them. {KEPT}"
                ) from error
            rows.append(RecommendedRow(category, ids[:limit], personalised))
        return rows

    def _call(self, method: str, url: str, body: Any, seconds: float = ANSWER_SECONDS) -> Any:
        headers = {
            name: value.replace("{key}", self.key) for name, value in self.document.headers.items()
        }
        status, answer = call(method, url, body, headers=headers, seconds=seconds)
        if status >= 300:
            raise refusal(status, answer, missing="The service has nothing at that address.")
        return answer


def _inside(value: Any, path: str, *, default: Any = None) -> Any:
    """Return what stands at `data.name` inside a value; the default where a name is missing."""
    for name in path.split(".") if path else ():
        if isinstance(value, dict) and name not in value and default is not None:
            return default
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def _names(value: Any) -> list[str]:
    if isinstance(value, str):
        return [name.strip() for name in value.split("|") if name.strip()]
    return [str(name) for name in value]


def _address(url: str, values: dict[str, Any]) -> str:
    for name, value in values.items():
        if name != "items":
            url = url.replace(f"{{{name}}}", quote(str(value), safe=""))
    return url


def _filled(body: Any, values: dict[str, Any]) -> Any:
    """Return the body with every word replaced; one that stands alone keeps its value's type."""
    if isinstance(body, dict):
        return {name: _filled(value, values) for name, value in body.items()}
    if isinstance(body, list):
        return [_filled(value, values) for value in body]
    if not isinstance(body, str):
        return body
    for name, value in values.items():
        if body == f"{{{name}}}":
            return value
        if name != "items":
            body = body.replace(f"{{{name}}}", str(value))
    return body


def _texts(body: Any) -> set[str]:
    """Return every text value inside a body."""
    if isinstance(body, dict):
        return set().union(*(_texts(value) for value in body.values()))
    if isinstance(body, list):
        return set().union(*(_texts(value) for value in body))
    return {body} if isinstance(body, str) else set()
