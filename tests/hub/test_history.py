"""The history: imports add to it, refusals leave it as it was, erasing leaves nothing."""

from pathlib import Path

import pytest

from discreet.hub import history
from discreet.hub.catalogue import PublicCatalogue, parse
from discreet.hub.errors import HubRefusal
from discreet.hub.hub import Hub
from tests.hub.conftest import NOW, document, quoted
from tests.hub.test_reading import browser_file


def seen(hub: Hub) -> list[str]:
    with hub.database.transaction() as work:
        return history.seen(work)


def test_a_list_adds_items_and_keeps_the_rest(hub: Hub, tmp_path: Path) -> None:
    hub.see("f1")
    (tmp_path / "list").write_text("title\nFilm Number 1\nfilm number 2 (1972)\nNobody's Film\n")
    imported = hub.import_file(tmp_path / "list")
    assert (imported.read, imported.added, imported.already) == (3, 1, 1)
    assert (imported.unknown, imported.ambiguous) == (1, 0)
    assert imported.examples == ("Nobody's Film",)
    assert seen(hub) == ["f1", "f2"]
    with hub.database.transaction() as work:
        assert history.unmatched(work) == ["Nobody's Film"]


def test_a_browsers_other_pages_are_not_kept(hub: Hub, tmp_path: Path) -> None:
    pages: list[str | None] = ["Film Number 7 (1977) | Filmhouse", "My bank - balance", "Film"]
    imported = hub.import_file(browser_file(tmp_path / "History", "urls", pages))
    assert (imported.read, imported.added, imported.unknown) == (3, 1, 2)
    assert imported.examples == ()
    assert seen(hub) == ["f7"]
    with hub.database.transaction() as work:
        assert history.unmatched(work) == []
    assert b"bank" not in hub.database.path.read_bytes()


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\x00 and then nothing", b"\x00\x01"])
def test_a_broken_file_changes_nothing(hub: Hub, tmp_path: Path, content: bytes) -> None:
    hub.see("f1")
    (tmp_path / "broken").write_bytes(content)
    with pytest.raises(HubRefusal):
        hub.import_file(tmp_path / "broken")
    assert seen(hub) == ["f1"]


def test_a_newer_catalogue_finds_kept_titles_and_keeps_old_items(hub: Hub, tmp_path: Path) -> None:
    hub.see("f1")
    (tmp_path / "list").write_text("Night Ferry\n")
    hub.import_file(tmp_path / "list")
    newer = document()
    newer["items"] = [{"id": "new", "title": "Night Ferry", "categories": ["Drama"]}]
    assert hub.use_catalogue(parse(newer), source="file") == 1
    assert seen(hub) == ["f1", "new"]
    with hub.database.transaction() as work:
        listed = history.listed(work, parse(newer))
        assert history.unmatched(work) == []
    assert [(one.title, one.known) for one in listed] == [
        ("Night Ferry", True),
        ("Film Number 1 (1971)", False),
    ]


def test_seeing_and_unseeing(hub: Hub) -> None:
    assert hub.see("f1") == hub.see("f1") == "Film Number 1 (1971)"
    assert seen(hub) == ["f1"]
    with pytest.raises(HubRefusal, match="no such item"):
        hub.see("f99")
    assert hub.unsee("f1") == "Film Number 1 (1971)"
    assert hub.unsee("f1") is None
    assert seen(hub) == []


def test_erasing_leaves_no_trace_of_the_history(hub: Hub, public: PublicCatalogue) -> None:
    hub.see("f1")
    with hub.database.transaction() as work:
        history.import_list(work, public, ["Whispering Marmalade"], now=NOW)
    price = hub.create(after=0, agreed=quoted(hub), early=False)
    hub.erase_history()
    data = hub.database.path.read_bytes()
    assert b"Whispering Marmalade" not in data
    with hub.database.transaction() as work:
        assert history.seen(work) == []
        assert history.unmatched(work) == []
        assert work.execute("SELECT basis, openly FROM releases").fetchall() == [("[]", "[]")]
        assert work.execute("SELECT nano_epsilon FROM ledger").fetchall() == [(price.nano_epsilon,)]
