"""A hostile server's catalogues: what was private under any of them stays as private."""

from typing import Any

import pytest

from discreet.families.collaborative.on_device.catalogue import Level
from discreet.hub import accepted, pins, releases, views
from discreet.hub.choices import Choices
from discreet.hub.hub import Hub
from tests.hub.conftest import document, quoted
from tests.hub.recommending import Recommending

OPEN_BUT_CRIME = Choices(
    by_category=True, levels={"Drama": Level.ALL, "Comedy": Level.ALL, "Crime": Level.NO}
)
CRIME = "f2"
"""A film that is in Crime alone."""


def moved(**changes: Any) -> dict[str, Any]:
    """Return the catalogue with the crime film changed."""
    changed = document()
    for item in changed["items"]:
        if item["id"] == CRIME:
            item.update(changes)
    return changed


def renamed(before: str, after: str) -> dict[str, Any]:
    changed = document()
    changed["categories"] = [after if n == before else n for n in changed["categories"]]
    for item in changed["items"]:
        item["categories"] = [after if n == before else n for n in item["categories"]]
    return changed


def serve(hub: Hub, served: Recommending, catalogue: dict[str, Any]) -> None:
    """The server serves another catalogue, and its owner agrees to the difference."""
    served.catalogue = catalogue
    assert hub.fetch_catalogue().offered
    hub.accept_catalogue(views.state(hub)["offered"]["digest"])


def send_everything(hub: Hub) -> tuple[str, ...]:
    for item in ("f0", "f1", CRIME):
        hub.see(item)
    last = views.state(hub)["release"]
    made = hub.create(after=last["number"] if last else 0, agreed=quoted(hub), early=True)
    return made.items


@pytest.mark.parametrize(
    "catalogue",
    [
        moved(categories=["Comedy"]),
        moved(categories=["Comedy", "Drama"]),
        moved(categories=[]),
        renamed("Crime", "Comedy"),
        renamed("Crime", "Mystery"),
    ],
)
def test_moving_an_item_or_renaming_its_category_does_not_show_it(
    hub: Hub, served: Recommending, catalogue: dict[str, Any]
) -> None:
    hub.choose(OPEN_BUT_CRIME)
    serve(hub, served, catalogue)
    sent = send_everything(hub)
    assert CRIME not in sent
    assert {"f0", "f1"} <= set(sent), "the others are open and go as they are"
    # The fault that this is about: by the server's categories alone it would be open, or counted.
    with hub.database.transaction() as work:
        pins.reset(work, accepted.require(work))
        plain = accepted.require(work)
    if catalogue == moved(categories=["Comedy"]):
        assert releases.quote(plain, OPEN_BUT_CRIME).openly
        hub.see("f3")
        assert CRIME in send_everything(hub)


def test_the_same_title_under_another_id_is_the_same_item(hub: Hub, served: Recommending) -> None:
    hub.choose(OPEN_BUT_CRIME)
    serve(hub, served, moved(id="new", title="FILM number 2", categories=["Comedy"]))
    hub.see("new")
    hub.see("f1")
    assert hub.create(after=0, agreed=quoted(hub), early=True).items == ("f1",)


def test_an_offer_that_was_refused_is_remembered_too(hub: Hub, served: Recommending) -> None:
    hub.choose(
        Choices(by_category=True, levels=dict.fromkeys(("Drama", "Comedy", "Crime"), Level.ALL))
    )
    served.catalogue = moved(categories=["Health"])
    hub.fetch_catalogue()
    hub.refuse_catalogue()
    served.catalogue = document()
    hub.fetch_catalogue()
    # "Health" was never chosen for, so it is "no", and the film was once offered under it.
    assert CRIME not in send_everything(hub)
    assert views.state(hub)["catalogue"]["pinned"] == 1
    hub.reset_pins()
    assert views.state(hub)["catalogue"]["pinned"] == 0


def test_two_items_of_one_title_side_by_side_are_two(hub: Hub, served: Recommending) -> None:
    twice = document()
    twice["items"].append(
        {"id": "remake", "title": "Film Number 2 (2020)", "categories": ["Drama"]}
    )
    serve(hub, served, twice)
    with hub.database.transaction() as work:
        assert accepted.require(work).labels["remake"] == ("Drama",)


def test_a_category_that_came_later_is_no_until_it_is_chosen_for(
    hub: Hub, served: Recommending
) -> None:
    hub.choose(OPEN_BUT_CRIME)
    newer = document()
    newer["items"].append({"id": "n", "title": "New", "categories": ["War"]})
    serve(hub, served, newer)
    hub.see("n")
    assert "War" in views.state(hub)["quote"]["hidden"]
    assert "n" not in send_everything(hub)
    # Changing another control does not change that; choosing for it does.
    hub.choose(Choices(by_category=True, levels={**OPEN_BUT_CRIME.levels, "Drama": Level.NO}))
    assert "War" in views.state(hub)["quote"]["hidden"]
    hub.choose(Choices(by_category=True, levels={**OPEN_BUT_CRIME.levels, "War": Level.ALL}))
    assert "n" in send_everything(hub)


def retitled(title: str, *others: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The crime film keeps its id and category under another title, and there are other items."""
    changed = moved(title=title, **changes)
    changed["items"] += others
    return changed


COMEDY = {"categories": ["Comedy"]}

TAKEN_TITLES = {
    "its title goes to another id": retitled(
        "Zebra", {"id": "new", "title": "Film Number 2", **COMEDY}
    ),
    "with another year": retitled(
        "Film Number 2 (1888)", {"id": "new", "title": "Film Number 2 (1999)", **COMEDY}
    ),
    "its title is an id": retitled("Zebra", {"id": "Film Number 2", "title": "Harmless", **COMEDY}),
    "its title is an id, and it is gone": moved(id="Film Number 2", title="Harmless", **COMEDY),
}
"""The person writes "Film Number 2 (1999)" or "Film Number 2", as before."""


@pytest.mark.parametrize("catalogue", TAKEN_TITLES.values(), ids=TAKEN_TITLES)
@pytest.mark.parametrize("written", ["Film Number 2", "Film Number 2 (1999)"])
def test_who_takes_a_title_takes_its_categories(
    hub: Hub, served: Recommending, catalogue: dict[str, Any], written: str
) -> None:
    """Titles reach the history by import, and by an extension's push."""
    dated = moved(title="Film Number 2 (1999)")
    serve(hub, served, dated)
    hub.choose(OPEN_BUT_CRIME)
    serve(hub, served, catalogue)
    hub.see_titles([written], source="pushed")
    hub.see("f1")
    assert set(hub.create(after=0, agreed=quoted(hub), early=True).items) <= {"f1"}


def test_an_id_that_is_another_items_title_could_be_either(hub: Hub, served: Recommending) -> None:
    hub.choose(OPEN_BUT_CRIME)
    both = document()
    both["items"].append({"id": "Film Number 2", "title": "Harmless", **COMEDY})
    serve(hub, served, both)
    assert hub.see_titles(["Film Number 2"], source="pushed") == 0
    hub.see("f1")
    assert hub.create(after=0, agreed=quoted(hub), early=True).items == ("f1",)


def test_a_taken_title_is_shown_as_a_move(hub: Hub, served: Recommending) -> None:
    hub.choose(OPEN_BUT_CRIME)
    hub.see(CRIME)
    served.catalogue = TAKEN_TITLES["its title goes to another id"]
    hub.fetch_catalogue()
    shown = views.state(hub)["offered"]
    assert (shown["added"], shown["renamed"], shown["moves"]) == (1, 1, 1)
    assert shown["moved"][0]["before"] == ("Crime",)
    assert shown["moved"][0]["after"] == ("Comedy",)
    assert shown["moved"][0]["seen"]
