"""Several services: one history, one sum of epsilon, and everything else apart."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.errors import InvalidArgument
from discreet.hub import views
from discreet.hub.choices import Choices
from discreet.hub.database import Database
from discreet.hub.errors import HubRefusal
from discreet.hub.hub import Hub
from discreet.hub.server import RecommendationServer
from discreet.hub.services import HubServices
from tests.hub.conftest import document, quoted
from tests.hub.recommending import KEY, NAME, Recommending, recommending


@pytest.fixture
def books() -> Iterator[Recommending]:
    """Another server: its ids differ, some of its titles are the same."""
    items = [
        {"id": f"b{n}", "title": f"Film number {n}", "categories": ["Drama", "Paper"]}
        for n in range(12)
    ]
    with recommending({"items": items}) as running:
        yield running


@pytest.fixture
def both(hub: Hub, books: Recommending) -> HubServices:
    other = RecommendationServer(url=books.url, recommender=NAME, key=KEY)
    services = HubServices.of([hub, Hub(Database(hub.database.path.parent, "books"), other)])
    services.fetch_catalogue("books")
    services.service("books").choose(Choices())
    return services


def seen(services: HubServices, name: str) -> list[str]:
    return [item["id"] for item in views.full_history(services.service(name))["items"]]


def test_what_was_seen_is_seen_everywhere(both: HubServices, tmp_path: Path) -> None:
    both.see("films", "f3")
    assert (seen(both, "films"), seen(both, "books")) == (["f3"], ["b3"])
    both.see("films", "f40")
    assert seen(both, "books") == ["b3"], "the other service has no such title"
    (tmp_path / "list").write_text("title\nFilm Number 5\nFilm Number 41\n")
    both.import_file("books", tmp_path / "list")
    assert set(seen(both, "films")) == {"f3", "f40", "f5", "f41"}
    both.push(["Film Number 7 (1977)", "Nobody's"])
    assert set(seen(both, "books")) == {"b3", "b5", "b7"}
    both.unsee("books", "b3")
    assert "f3" not in seen(both, "films")
    both.unsee("books", "b3")
    both.erase_history()
    assert seen(both, "films") == seen(both, "books") == []


def test_a_service_that_comes_later_learns_here_what_was_seen(
    hub: Hub, books: Recommending
) -> None:
    hub.see("f3")
    other = RecommendationServer(url=books.url, recommender=NAME, key=KEY)
    services = HubServices.of([hub, Hub(Database(hub.database.path.parent, "books"), other)])
    services.fetch_catalogue("books")
    assert seen(services, "books") == ["b3"]
    # Nothing of it left: at first the control says no.
    assert views.state(services.service("books"))["choices"]["overall"] == "no"
    assert books.profiles == {}


def test_each_has_its_own_id_and_lists_and_the_sum_is_one(
    both: HubServices, served: Recommending, books: Recommending
) -> None:
    films, paper = both.service("films"), both.service("books")
    first = films.create(after=0, agreed=quoted(films), early=False)
    second = paper.create(after=0, agreed=quoted(paper), early=False)
    films.send(first.number)
    paper.send(second.number)
    (one,), (other,) = served.profiles, books.profiles
    assert one != other
    total = (first.nano_epsilon + second.nano_epsilon) / 1e9
    for hub, own in ((films, first), (paper, second)):
        totals = views.state(hub)["totals"]
        assert totals["epsilon"] == pytest.approx(total)
        assert totals["here"]["epsilon"] == own.epsilon
        assert [each["name"] for each in totals["services"]] == ["films", "books"]
    listed = views.services(both)
    assert listed["epsilon"] == pytest.approx(total)
    assert [each["epsilon"] for each in listed["services"]] == [first.epsilon, second.epsilon]


def test_the_limit_is_on_the_sum(both: HubServices) -> None:
    films, paper = both.service("films"), both.service("books")
    for hub in (films, paper):
        hub.choose(Choices(epsilon=0.5))
    films.set_limits(limit=0.9, threshold=1)
    films.create(after=0, agreed=quoted(films), early=True)
    with pytest.raises(HubRefusal, match="above the limit"):
        paper.create(after=0, agreed=quoted(paper), early=True)


def test_names(hub: Hub) -> None:
    with pytest.raises(InvalidArgument, match="--server"):
        HubServices.of([])
    with pytest.raises(InvalidArgument, match="twice"):
        HubServices.of([hub, hub])
    with pytest.raises(HubRefusal, match="not started with"):
        HubServices.of([hub]).service("books")


def test_an_offer_of_one_is_not_the_others(both: HubServices, served: Recommending) -> None:
    served.catalogue = document()
    served.catalogue["items"].pop()
    assert both.fetch_catalogue("films").offered
    assert views.state(both.service("books"))["offered"] is None
    both.accept_catalogue("films", views.state(both.service("films"))["offered"]["digest"])
    assert views.state(both.service("films"))["catalogue"]["items"] == 47
