"""A changed catalogue is shown as a difference and needs its owner's agreement."""

from typing import Any

import pytest

from discreet.hub import offers, views
from discreet.hub.catalogue import parse
from discreet.hub.errors import HubRefusal
from discreet.hub.hub import Hub
from tests.hub.conftest import document
from tests.hub.recommending import Recommending


def changed() -> dict[str, Any]:
    found = document()
    found["items"][0]["categories"] = ["War"]
    found["items"][1]["title"] = "Another Title"
    found["items"][2]["categories"] = ["Comedy"]
    del found["items"][47]
    found["items"] += [{"id": "a", "title": "A"}, {"id": "b", "title": "B"}]
    found["categories"] = ["Drama", "Comedy", "Crime"]
    return found


def test_what_is_different_is_counted_and_what_was_seen_comes_first() -> None:
    found = offers.difference(parse(document()), parse(changed()), seen=["f2"])
    assert (found.added, found.removed, found.renamed, found.moves) == (2, 1, 1, 2)
    assert [(item.title, item.seen) for item in found.moved] == [
        ("Film Number 2 (1972)", True),
        ("Film Number 0 (1970)", False),
    ]
    assert (found.moved[0].before, found.moved[0].after) == (("Crime",), ("Comedy",))
    assert (found.new_categories, found.lost_categories) == (("War", "Other"), ("Silent",))


def test_lists_are_made_from_the_old_one_until_its_owner_agrees(
    hub: Hub, served: Recommending
) -> None:
    before = views.state(hub)["catalogue"]
    served.catalogue = changed()
    assert hub.fetch_catalogue().offered
    state = views.state(hub)
    assert state["catalogue"]["items"] == before["items"]
    assert state["offered"]["added"] == 2
    with pytest.raises(HubRefusal, match="Another catalogue was offered"):
        hub.accept_catalogue("something else")
    hub.refuse_catalogue()
    assert views.state(hub)["offered"] is None
    assert views.state(hub)["catalogue"]["items"] == before["items"]
    # It is offered again, and the agreement names what was shown.
    hub.fetch_catalogue()
    hub.accept_catalogue(views.state(hub)["offered"]["digest"])
    state = views.state(hub)
    assert state["offered"] is None
    assert state["catalogue"]["items"] == 49


def test_titles_of_imports_are_matched_when_it_is_accepted(
    hub: Hub, served: Recommending, tmp_path: Any
) -> None:
    (tmp_path / "list").write_text("title\nB\n")
    hub.import_file(tmp_path / "list")
    served.catalogue = changed()
    assert hub.fetch_catalogue().rematched == 0
    assert hub.accept_catalogue(views.state(hub)["offered"]["digest"]).rematched == 1


def test_a_server_that_takes_its_offer_back_leaves_nothing_to_decide(
    hub: Hub, served: Recommending
) -> None:
    served.catalogue = changed()
    hub.fetch_catalogue()
    served.catalogue = document()
    assert not hub.fetch_catalogue().offered
    assert views.state(hub)["offered"] is None
