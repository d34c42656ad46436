"""A service that was never made for this, through a file that describes it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from discreet.errors import InvalidArgument
from discreet.families.collaborative.on_device.catalogue import Level
from discreet.hub import service_files, views
from discreet.hub.catalogue import parse
from discreet.hub.choices import Choices
from discreet.hub.database import Database
from discreet.hub.errors import ServerError
from discreet.hub.hub import Hub
from discreet.hub.plain_server import PlainServer, PlainServiceDocument
from tests.hub.bookshop import TOKEN, Bookshop, bookshop, described


@pytest.fixture
def shop() -> Iterator[Bookshop]:
    with bookshop() as running:
        yield running


@pytest.fixture
def books(shop: Bookshop, tmp_path: Path) -> PlainServer:
    (tmp_path / "books.yaml").write_text(described(shop))
    (tmp_path / "books.key").write_text(f"{TOKEN}\n")
    name, adapter = service_files.read(tmp_path / "books.yaml")
    assert name == adapter.recommender == "books"
    assert isinstance(adapter, PlainServer)
    return adapter


def test_its_catalogue_is_read_as_the_file_says(books: PlainServer) -> None:
    read = parse(books.catalogue())
    assert read.by_id["b3"].title == "Film Number 3 (1973)"
    assert read.categories == ("Drama", "Crime")


def test_a_hub_uses_it_as_it_is(books: PlainServer, shop: Bookshop, tmp_path: Path) -> None:
    hub = Hub(Database(tmp_path, "books"), books)
    hub.fetch_catalogue()
    hub.choose(Choices(overall=Level.ALL))
    hub.see("b1")
    hub.see("b0")
    hub.send(hub.create(after=0, agreed=0, early=False).number)
    client = views.state(hub)["client"]
    assert shop.readers == {client: ["b0", "b1"]}
    rows = hub.recommend()
    assert [(row.category, row.local) for row in rows] == [(None, True), (None, False)]
    assert [item.id for item in rows[1].items] == ["b2", "b3", "b4", "b5"]
    hub.replace_client()
    assert shop.readers[client] == []


def test_requests_are_the_same_whatever_was_seen(books: PlainServer, shop: Bookshop) -> None:
    books.recommend("me", ["Drama", "Crime"])
    assert shop.asked == [("GET", "/v2/readers/me/suggestions?n=40", None)]
    shop.asked.clear()
    books.popular(["Drama"])
    ((_, path, _),) = shop.asked
    assert path.startswith("/v2/readers/anybody-")


def test_ids_cannot_leave_their_place_in_an_address(books: PlainServer, shop: Bookshop) -> None:
    books.recommend("me/../you?n=1", [])
    assert shop.asked[0][1] == "/v2/readers/me%2F..%2Fyou%3Fn%3D1/suggestions?n=40"


def document(**changes: Any) -> dict[str, Any]:
    at = "https://books.example"
    return {
        "adapter": "plain",
        "name": "books",
        "catalogue": {"url": f"{at}/items"},
        "profile": {"url": f"{at}/people/{{client}}"},
        "recommendations": {"url": f"{at}/suggestions?category={{category}}"},
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"profile": {"url": "http://books.example/p"}}, "profile.url: must be https"),
        ({"profile": {"url": "https://u:p@books.example/p"}}, "profile.url: must not hold"),
        ({"profile": {"url": "https://b.example/?i={items}"}}, "profile.url: {items} belongs"),
        ({"profile": {"url": "https://b.example/", "body": {"u": 1}}}, "profile.body: must have"),
        ({"headers": {"Authorization": "Bearer {key}"}}, "key_file: is missing"),
    ],
)
def test_what_a_file_may_not_say(changes: dict[str, Any], argument: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        PlainServer(PlainServiceDocument.model_validate(document(**changes)))
    assert argument in str(refused.value)


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(ValidationError, match="extra"):
        PlainServiceDocument.model_validate(document(profil={}))


@pytest.mark.parametrize("answer", [{"data": {}}, {"data": {"books": [{"isbn": "b0"}]}}, []])
def test_answers_that_are_not_as_described(
    books: PlainServer, shop: Bookshop, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Bookshop, "answer", lambda *_: (200, answer))
    with pytest.raises(ServerError, match="not as the file describes it"):
        books.catalogue()
    with pytest.raises(ServerError, match="not as the file describes them"):
        books.recommend("me", [])


def test_a_wrong_key_is_said(books: PlainServer) -> None:
    with pytest.raises(ServerError, match="does not know the key"):
        PlainServer(books.document, "wrong").catalogue()


def test_by_category_where_the_file_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def call(method: str, url: str, body: Any, **_: Any) -> tuple[int, Any]:
        asked.append(url)
        return 200, {"items": [{"id": "x"}]}

    monkeypatch.setattr("discreet.hub.plain_server.call", call)
    server = PlainServer(PlainServiceDocument.model_validate(document()))
    rows = server.recommend("me", ["Drama", "Sci-Fi & more"])
    assert [row.category for row in rows] == [None, "Drama", "Sci-Fi & more"]
    assert asked[2] == "https://books.example/suggestions?category=Sci-Fi%20%26%20more"
    assert server.popular(["Drama"]) == []
