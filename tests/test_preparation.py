"""Before the first worker: recommenders are put, and there is a key."""

import stat
from pathlib import Path
from typing import Any

import pytest

from discreet import preparation
from discreet.configuration import Configuration
from discreet.decisions import changes
from discreet.errors import InvalidArgument, StoreEmpty, StoreFenced, StoreUnavailable
from discreet.families.documents import ItemDocument
from discreet.families.registration import read_document
from discreet.preparation import Prepared, opened, prepare
from discreet.settings import Settings
from discreet.state.memory import MemoryStore
from tests.api.stores import GONE, MoodyStore

pytestmark = pytest.mark.anyio

FILMS = {"algorithm": "p-dap", "items": ["a"], "context": {"dimensions": 2}}


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MoodyStore:
    """The store that every settings' URL leads to."""
    held = MoodyStore()
    monkeypatch.setattr(preparation, "store_of", lambda settings, **how: held)
    return held


async def prepared(tmp_path: Path, *, demo: bool = False, **settings: Any) -> Prepared:
    configured = Configuration(recommenders={"films": read_document(FILMS)})
    return await prepare(Settings(data_dir=tmp_path, **settings), configured, demo=demo)


async def test_recommenders_are_put_and_a_first_key_is_made_once(
    store: MemoryStore, tmp_path: Path
) -> None:
    first = await prepared(tmp_path)
    assert first.key is not None
    assert first.key_file is None
    assert await prepared(tmp_path) == Prepared()
    async with opened(Settings()) as services:
        assert await services.registry.names() == ["films"]
        grant = await services.keys.grant_of(first.key)
        assert grant is not None
        assert grant.scopes == {"serve", "admin", "metrics"}


async def test_a_given_key_is_enough(store: MemoryStore, tmp_path: Path) -> None:
    assert await prepared(tmp_path, api_key="given-and-long-enough", host="0.0.0.0") == Prepared()


@pytest.mark.parametrize("demo", [False, True])
async def test_no_key_is_made_for_the_world(store: MemoryStore, tmp_path: Path, demo: bool) -> None:
    with pytest.raises(InvalidArgument, match="DISCREET_API_KEY"):
        await prepared(tmp_path, demo=demo, host="0.0.0.0")


async def test_the_demos_key_is_in_a_file_and_renewed_if_that_is_lost(
    store: MemoryStore, tmp_path: Path
) -> None:
    first = await prepared(tmp_path, demo=True)
    assert first.key_file is not None
    assert stat.S_IMODE(first.key_file.stat().st_mode) == 0o600
    assert first.key_file.read_text() == f"{first.key}\n"
    assert (await prepared(tmp_path, demo=True)).key is None
    first.key_file.unlink()
    second = await prepared(tmp_path, demo=True)
    assert second.key not in (None, first.key)
    async with opened(Settings()) as services:
        assert first.key is not None
        assert await services.keys.grant_of(first.key) is None


async def test_a_document_that_cannot_be_put_is_named(store: MemoryStore, tmp_path: Path) -> None:
    await prepared(tmp_path)
    changed = read_document({**FILMS, "context": {"dimensions": 3}})
    with pytest.raises(InvalidArgument) as caught:
        await prepare(Settings(), Configuration(recommenders={"films": changed}), demo=False)
    assert caught.value.argument == "recommenders.films.context.dimensions"


async def test_what_a_newer_version_wrote_is_left_alone_and_the_rest_is_put(
    store: MemoryStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    newer = b'{"schema": 99}'
    assert await store.put_document(name="recommender/films", document=newer, expected=None)
    documents = {"films": read_document(FILMS), "songs": read_document(FILMS)}
    await prepare(Settings(data_dir=tmp_path), Configuration(recommenders=documents), demo=False)
    assert (await store.registry()).documents["recommender/films"] == newer
    assert "films was left as it is" in caplog.text
    async with opened(Settings()) as services:
        assert await services.registry.names() == ["songs"]


async def test_an_absent_store_is_waited_for_as_long_as_the_settings_say(
    store: MoodyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.mood = GONE
    with pytest.raises(StoreUnavailable, match="--wait-store"):
        async with opened(Settings()):
            pass
    attempts = []

    def away_at_first(settings: Settings, **how: bool) -> MoodyStore:
        attempts.append(settings)
        found = MoodyStore()
        found.mood = GONE if len(attempts) < 4 else None
        return found

    monkeypatch.setattr(preparation, "store_of", away_at_first)
    monkeypatch.setattr(preparation, "_RETRY_SECONDS", 0)
    async with opened(Settings(wait_store_seconds=60)) as services:
        assert await services.registry.names() == []
    assert len(attempts) == 4


async def test_an_empty_store_is_waited_for_and_one_that_lost_something_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempts: list[Exception] = []

    class Refused(MoodyStore):
        def __init__(self, error: Exception) -> None:
            super().__init__()
            self.error = error

        async def open(self) -> None:
            attempts.append(self.error)
            if len(attempts) < 4:
                raise self.error

    monkeypatch.setattr(preparation, "_RETRY_SECONDS", 0)
    monkeypatch.setattr(preparation, "store_of", lambda *_, **how: Refused(StoreEmpty("empty")))
    async with opened(Settings(wait_store_seconds=60)):
        assert len(attempts) == 4
    attempts.clear()
    with pytest.raises(StoreEmpty):
        async with opened(Settings()):
            pass
    monkeypatch.setattr(preparation, "store_of", lambda *_, **how: Refused(StoreFenced("older")))
    attempts.clear()
    with pytest.raises(StoreFenced):
        async with opened(Settings(wait_store_seconds=60)):
            pass
    assert len(attempts) == 1


@pytest.mark.parametrize(
    ("outcome", "shown", "hidden"),
    [
        (Prepared(), ["key   as given or made before", "page  http://127.0.0.1:8123/\n"], "#key"),
        (Prepared("dk_1"), ["/#key=dk_1\n", "dk_1   (shown once)"], "kept"),
        (Prepared("dk_1", Path("d/demo-key")), ["(shown once; kept in d/demo-key)"], "as given"),
        (Prepared(None, Path("d/demo-key")), ["key   d/demo-key"], "dk_"),
    ],
)
def test_the_announcement_has_the_address_and_the_key_if_it_is_made_now(
    outcome: Prepared, shown: list[str], hidden: str
) -> None:
    text = outcome.announcement(Settings(workers=3), port=8123, embedded=True)
    assert "Discreet" in text.splitlines()[0]
    assert "(3 workers, embedded store in .discreet)" in text
    assert all(part in text for part in shown)
    assert hidden not in text
    assert "http://[::1]:1/docs" in Prepared().announcement(
        Settings(host="::1"), port=1, embedded=False
    )


async def test_a_file_with_fewer_items_removes_none_unless_it_says_so(
    store: MemoryStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    await prepared(tmp_path)
    async with opened(Settings()) as services:
        added = [ItemDocument(id="b"), ItemDocument(id="c", hidden=True)]
        await services.registry.change("films", changes.add_items(added))
        slots = (await services.registry.find("films")).slot_of
    await prepared(tmp_path)
    assert "2 that the file does not name were kept" in caplog.text
    async with opened(Settings()) as services:
        recommender = await services.registry.find("films")
        assert recommender.slot_of == slots
        assert recommender.visible.tolist() == [slots["a"], slots["b"]]
    complete = Configuration({}, {"films": read_document(FILMS)}, frozenset({"films"}))
    await prepare(Settings(data_dir=tmp_path), complete, demo=False)
    assert "0 items added, 0 changed, 2 removed; 0 that" in caplog.text
    async with opened(Settings()) as services:
        assert list((await services.registry.find("films")).slot_of) == ["a"]
