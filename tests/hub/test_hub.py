"""What leaves does not depend on the history; what is shown does, and is arranged here."""

import json
from typing import Any

import pytest

from discreet.families.collaborative.on_device.catalogue import Level
from discreet.hub import identity, views
from discreet.hub.catalogue import PublicCatalogue
from discreet.hub.choices import Choices
from discreet.hub.errors import HubRefusal, ServerError
from discreet.hub.hub import SHOWN_PER_ROW, Hub, arrange
from discreet.hub.server import RecommendationServer, RecommendedRow
from tests.hub.conftest import quoted
from tests.hub.recommending import Recommending


def bytes_for(hub: Hub, served: Recommending, history: list[str]) -> list[tuple[str, str, Any]]:
    """Live a short life with this history; return every request, without the random id."""
    served.asked.clear()
    with hub.database.transaction() as work:
        work.execute("DELETE FROM history")
        client = identity.client(work)
    for item in history:
        hub.see(item)
    hub.fetch_catalogue()
    hub.choose(Choices(overall=Level.NO))
    hub.recommend()
    views.search(hub, text="number 3", category="Drama")
    hub.recommend()
    return [
        (method, path, json.loads(json.dumps(body).replace(client, "ID")))
        for method, path, _, body in served.asked
    ]


def test_requests_are_the_same_whatever_was_seen(hub: Hub, served: Recommending) -> None:
    nothing = bytes_for(hub, served, [])
    assert [path.rsplit("/", 1)[1] for _, path, _ in nothing] == [
        "catalogue",
        "popular?limit=100",
        *["batch"] * 2,
    ]
    much = bytes_for(hub, served, [f"f{n}" for n in range(40)])
    assert much == nothing


def test_rows_come_in_the_order_of_the_true_history(public: PublicCatalogue) -> None:
    answered = [
        RecommendedRow(None, ("f1", "f2", "f3"), True),
        RecommendedRow("Drama", ("f0", "gone"), True),
        RecommendedRow("Comedy", tuple(f"f{n}" for n in range(40)), True),
        RecommendedRow("Crime", (), False),
    ]
    shown = arrange(answered, public, ["f2", "f4", "f8"])
    assert [row.category for row in shown] == [None, "Crime", "Comedy", "Drama"]
    assert [row.seen for row in shown] == [3, 3, 1, 0]
    assert [item.id for item in shown[0].items] == ["f1", "f3"]
    assert len(shown[2].items) == SHOWN_PER_ROW
    assert not {"f2", "f4", "f8"} & {item.id for item in shown[2].items}
    assert [item.title for item in shown[3].items] == ["Film Number 0 (1970)", "gone"]


def test_categories_are_asked_in_the_catalogues_order(hub: Hub, served: Recommending) -> None:
    hub.see("f2")
    rows = hub.recommend()
    ((_, _, _, body),) = served.asked
    assert [each.get("category") for each in body["requests"]] == [None, "Drama", "Comedy", "Crime"]
    assert {each["limit"] for each in body["requests"]} == {40}
    assert [row.category for row in rows] == [None, "Crime", "Drama", "Comedy"]


def test_another_id_empties_the_old_profile_first(hub: Hub, served: Recommending) -> None:
    hub.choose(Choices(overall=Level.ALL))
    hub.see("f1")
    hub.send(hub.create(after=0, agreed=0, early=False).number)
    old = views.state(hub)["client"]
    assert served.profiles == {old: ["f1"]}
    replaced = hub.replace_client()
    assert replaced.withdrawn
    assert replaced.client != old
    assert served.profiles == {old: []}
    assert not views.state(hub)["release"]["current_client"]
    # Nothing was ever sent under the new one, so nothing has to be emptied.
    served.asked.clear()
    hub.replace_client()
    assert served.asked == []


def test_another_id_is_given_also_when_the_server_is_away(hub: Hub, served: Recommending) -> None:
    hub.choose(Choices(overall=Level.ALL))
    hub.see("f1")
    hub.send(hub.create(after=0, agreed=0, early=False).number)
    served.fault = (500, b"")
    replaced = hub.replace_client()
    assert not replaced.withdrawn
    assert "failed" in replaced.problem


def test_without_a_server(hub: Hub) -> None:
    alone = Hub(hub.database, None)
    alone.see("f1")
    for call in (alone.recommend, alone.fetch_catalogue, lambda: alone.send(1)):
        with pytest.raises(HubRefusal, match="No server was named"):
            call()
    assert views.state(alone)["server"] is None
    alone.replace_client()


def test_an_unreadable_catalogue_replaces_nothing(hub: Hub, served: Recommending) -> None:
    before = views.state(hub)["catalogue"]
    for fault in ((200, b'{"items": []}'), (200, b"<html>"), (404, b""), (302, b"")):
        served.fault = fault
        with pytest.raises((HubRefusal, ServerError)):
            hub.fetch_catalogue()
    assert views.state(hub)["catalogue"] == before


def test_a_server_that_hides_what_is_popular_is_used_all_the_same(
    hub: Hub, served: Recommending, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: RecommendationServer, categories: Any) -> list[RecommendedRow]:
        raise ServerError("not today")

    monkeypatch.setattr(RecommendationServer, "popular", refuse)
    hub.fetch_catalogue()
    assert hub.create(after=0, agreed=quoted(hub), early=False).number == 1
