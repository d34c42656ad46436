"""What the page is shown: searches and lists of items, and when it wants a catalogue."""

from discreet.hub import views
from discreet.hub.database import Database
from discreet.hub.hub import Hub, ShownRow


def test_a_hub_without_a_catalogue_shows_what_it_can(database: Database) -> None:
    shown = views.state(Hub(database, None))
    assert (shown["catalogue"], shown["quote"], shown["release"]) == (None, None, None)
    assert shown["history"] == 0
    nothing = {"lists": 0, "epsilon": 0.0, "openly": ()}
    assert shown["totals"] == {**nothing, "limit": 2.0, "here": nothing, "services": []}


def test_the_catalogue_is_wanted_anew_every_day_whatever_happened(hub: Hub) -> None:
    assert not views.state(hub)["fetch"]
    later = Hub(hub.database, hub.server, now=lambda: "2026-01-03T03:04:06+00:00")
    assert views.state(later)["fetch"]
    assert not views.state(Hub(hub.database, hub.server, fetches=False))["fetch"]
    assert not views.state(Hub(hub.database, None))["fetch"]


def test_searching_marks_what_was_seen(hub: Hub) -> None:
    hub.see("f4")
    found = views.search(hub, text="number 4", category="Crime")
    assert [(item["id"], item["seen"]) for item in found["items"]] == [
        ("f4", True),
        ("f40", False),
        ("f44", False),
        ("f46", False),
    ]
    everything = views.search(hub, text="", category="")
    assert everything["found"] == len(everything["items"]) == 48


def test_the_history_is_shown_newest_first(hub: Hub) -> None:
    hub.see("f1")
    hub.see("f2")
    shown = views.full_history(hub)
    assert [item["id"] for item in shown["items"]] == ["f2", "f1"]
    assert shown["unmatched"] == []


def test_rows_are_plain_values() -> None:
    row = ShownRow(category="Drama", items=(), personalised=False, seen=3)
    assert views.rows([row])["rows"] == [
        {"category": "Drama", "items": (), "personalised": False, "seen": 3, "local": False}
    ]
