"""The hub in a real browser, in front of a really running server, with every byte recorded."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from discreet.families.collaborative.on_device.catalogue import Level
from discreet.hub import enrolment
from discreet.hub.choices import Choices
from discreet.hub.database import Database
from discreet.hub.errors import ServerError
from discreet.hub.hub import Hub
from discreet.hub.server import RecommendationServer
from tests.browser.conftest import Watched
from tests.browser.test_page import key_for
from tests.demo_server import Demo, demo_server
from tests.end_to_end.tapped import Tap, tapping
from tests.hub.living import Living, living, program
from tests.hub.recommending import KEY as FILMS_KEY
from tests.hub.recommending import NAME as FILMS
from tests.hub.recommending import recommending
from tests.hub.test_reading import browser_file
from tests.waiting import wait_for

NAME = "hub-films"
CATALOGUE = json.loads((files("discreet.hub") / "demo.json").read_text("utf-8"))
TITLES = {item["id"]: item["title"] for item in CATALOGUE["items"]}
LIKED = ("Romance", "Comedy")
HISTORY = [item["id"] for item in CATALOGUE["items"] if set(item["categories"]) & set(LIKED)][:60]


@dataclass
class Stage:
    """A running hub, the tap between it and the server, and a tab that shows its page."""

    hub: Living
    tap: Tap
    page: Page
    watched: Watched

    def requests(self) -> list[tuple[str, str, Any]]:
        """Every request that left the hub: method, path, body."""
        found = []
        for stream in list(self.tap.there):
            wait_for("a whole request", lambda stream=stream: _whole(bytes(stream)))
            head, _, body = bytes(stream).partition(b"\r\n\r\n")
            method, path, _ = head.split(b"\r\n")[0].decode().split(" ")
            found.append((method, path, json.loads(body) if body else None))
        return found

    def profiles(self) -> list[Any]:
        return [body for _, path, body in self.requests() if path.endswith("/profiles")]


def _whole(stream: bytes) -> bool:
    head, end, body = stream.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    return bool(end) and len(body) >= int(length[1] if length else 0)


def prepare(demo: Demo) -> str:
    """Give the server the films and some people who like them; return a key for the hub."""
    items = CATALOGUE["items"]
    document = {
        "algorithm": "collaborative",
        "items": items,
        "releases": {"seconds": 1.0, "growth": 0.0},
        "privacy": {"answers": "on-device"},
    }
    fans = {item["id"]: len(item["categories"]) for item in items}
    demo.call("PUT", f"/recommenders/{NAME}", document)
    for category in CATALOGUE["categories"]:
        liked = [item["id"] for item in items if category in item["categories"]]
        fan = {"client": f"a fan of {category}", "items": liked}
        demo.call("POST", f"/recommenders/{NAME}/profiles", fan)
    # A hub that looks before all of them are released finds the catalogue's order, which says
    # nothing, or less that is popular, and may have no row of its own.
    popular = f"/recommenders/{NAME}/popular?limit=100"
    most = sorted(fans.values(), reverse=True)[:100]

    def all_are_released() -> bool:
        overall = next(
            row["items"] for row in demo.call("GET", popular)["rows"] if row["category"] is None
        )
        return [fans[item] for item in overall] == most

    wait_for("what most fans like", all_are_released)
    return key_for(demo, "serve")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A demo with one worker: another would load a release a moment later, and might answer."""
    with demo_server(tmp_path_factory.mktemp("demo"), "--workers", "1") as running:
        yield running


@pytest.fixture(scope="module")
def key(demo: Demo) -> str:
    """The hub's key; the server has the films by then."""
    return prepare(demo)


@contextmanager
def staged(browser: Browser, demo: Demo, key: str, folder: Path, **context: Any) -> Iterator[Stage]:
    with tapping("127.0.0.1", demo.port) as tap:
        server = RecommendationServer(url=tap.url, recommender=NAME, key=key)
        with living(Hub(Database(folder, "films"), server), folder=folder) as hub:
            tab = browser.new_context(viewport={"width": 1180, "height": 900}, **context)
            tab.set_default_timeout(60_000)
            watched = Watched(tab.new_page())
            watched.watch()
            watched.page.goto(hub.page)
            expect(watched.page.locator("#items .tile").first).to_be_visible()
            noisy(watched.page)
            yield Stage(hub, tap, watched.page, watched)
            tab.close()
            # No error, no other host, and the secret in no address that is sent.
            watched.verify(hub.url, hub.secret)


@pytest.fixture
def stage(browser: Browser, demo: Demo, key: str, tmp_path: Path) -> Iterator[Stage]:
    with staged(browser, demo, key, tmp_path) as running:
        yield running


def noisy(page: Page) -> None:
    """At first nothing may leave: let a noisy list."""
    with page.expect_response("**/choices"):
        page.locator("[name=overall][value=perturbed]").check()
    expect(page.locator("#create")).to_contain_text("Create noisy list")


def upload(page: Page, content: str | bytes, name: str = "history.csv") -> None:
    data = content.encode() if isinstance(content, str) else content
    page.locator("#file").set_input_files(
        {"name": name, "mimeType": "text/csv", "buffer": data}  # type: ignore[arg-type]
    )


def import_history(page: Page, items: list[str] = HISTORY) -> None:
    expect(page.locator("#items .tile").first).to_be_visible()
    upload(page, "title\n" + "\n".join(TITLES[item] for item in items))
    expect(page.locator("#imported")).to_contain_text(f"{len(items)} items added")


def create(page: Page) -> None:
    page.locator("#create").click()
    expect(page.locator("#status")).to_contain_text("Nothing has been sent yet")
    expect(page.locator("#look-title")).to_be_focused()


def send(page: Page) -> None:
    page.locator("#send").click()
    expect(page.locator("#sent")).to_contain_text("Sent on")
    expect(page.locator("#rows h3").first).to_be_visible()


def shown_items(page: Page) -> list[str]:
    return [str(line.get_attribute("data-item")) for line in page.locator("#contents li").all()]


def shown_bars(page: Page) -> dict[str, tuple[int, int]]:
    rows = [
        row.locator("th, b").all_inner_texts() for row in page.locator("#profile tbody tr").all()
    ]
    return {name: (int(raw), int(released)) for name, raw, released in rows}


def counted(items: list[str]) -> dict[str, int]:
    counts = dict.fromkeys(CATALOGUE["categories"], 0)
    for item in CATALOGUE["items"]:
        if item["id"] in items:
            for name in item["categories"]:
                counts[name] += 1
    return counts


def test_from_a_history_to_recommendations(stage: Stage) -> None:
    page = stage.page
    import_history(page)
    expect(page.locator("#history-count")).to_have_text("60 items")
    expect(page.locator("#price")).to_contain_text("This list costs ε 0.")
    price = page.locator("#create").inner_text().removeprefix("Create noisy list for ")
    create(page)
    # Paid and shown, and nothing was requested but what is public, for nobody.
    (_, first, _), (_, second, asked) = stage.requests()
    public = f"/recommenders/{NAME}"
    assert (first, second) == (f"{public}/catalogue", f"{public}/popular?limit=100")
    assert asked is None
    client = page.locator("#client").text_content() or ""
    expect(page.locator("#release-epsilon")).to_have_text(price)
    expect(page.locator("#total")).to_have_text(f"{price} spent of 2")
    items = shown_items(page)
    released = counted(items)
    assert shown_bars(page) == {
        name: (seen, released[name]) for name, seen in counted(HISTORY).items()
    }
    really = len(set(items) & set(HISTORY))
    expect(page.locator("#reveals")).to_contain_text(f"{len(items)} items were picked at random")
    expect(page.locator("#reveals")).to_contain_text(f"{really or 'None'} of them happen")
    send(page)
    (profile,) = stage.profiles()
    assert profile["items"] == items
    assert profile["client"] == client
    # Rows: made here, the server's overall, then by the true history; nothing that was seen.
    expect(page.locator("#rows")).to_contain_text("from your list")  # others stood there before
    headings = [
        text.split(" you have seen ")[0] for text in page.locator("#rows h3").all_inner_texts()
    ]
    assert headings[0].startswith("For you made on this device")
    assert headings[1].startswith("From the server from your list")
    order = sorted(sorted_categories(stage), key=lambda name: -counted(HISTORY)[name])
    assert headings[2:] == order
    rows = page.locator("#rows section").all()
    here, *there = (
        {card.get_attribute("data-item") for card in row.locator("li").all()} for row in rows
    )
    offered = set().union(*there)
    assert len(offered) > 50
    assert not (here | offered) & set(HISTORY)
    assert not offered & set(items)
    first = page.locator("#rows li").first
    first.get_by_role("button").click()
    expect(first.get_by_role("button")).to_have_text("In your history")
    expect(page.locator("#history-count")).to_have_text("61 items")


def test_no_raw_item_outside_the_release_ever_leaves(stage: Stage) -> None:
    """Everything a person can do is done, and every byte to the server is looked through."""
    page = stage.page
    import_history(page)
    released: set[str] = set()
    for overall, by_category in (("perturbed", False), ("perturbed", True), ("no", False)):
        page.locator(f"[name=overall][value={overall}]").check()
        if by_category:
            page.locator("#by-category").check()
            level(page, "Romance", "no")
        create(page)
        released |= set(shown_items(page))
        send(page)
        assert stage.profiles()[-1]["items"] == shown_items(page)
    page.locator("#search").fill(TITLES[HISTORY[0]])
    expect(page.locator("#found")).to_have_text("1 item")
    page.locator("#items .tile").click()
    expect(page.locator("#history-count")).to_have_text("59 items")
    page.locator("#rows li button").first.click()
    page.locator("#fetch-rows").click()
    page.locator("#settings summary").click()
    page.locator("#new-client").click()
    expect(page.locator("#status")).to_contain_text("another id")
    page.locator("#fetch-catalogue").click()
    expect(page.locator("#status")).to_contain_text("catalogue is up to date")
    page.locator("#erase").click()
    page.get_by_role("button", name="Erase it").click()
    expect(page.locator("#history-count")).to_have_text("Nothing yet.")

    left = b"".join(bytes(stream) for stream in stage.tap.there).decode()
    kept_back = set(HISTORY) - released
    assert len(kept_back) > 10, (
        "the release must leave something out for this test to mean anything"
    )
    assert [item for item in kept_back if item in left] == []
    assert [item for item in HISTORY if TITLES[item] in left] == []
    # And nothing else: four kinds of requests, with these fields.
    for method, path, body in stage.requests():
        if path.endswith(("/catalogue", "/popular?limit=100")):
            assert (method, body) == ("GET", None)
        elif path.endswith("/profiles"):
            assert set(body) == {"client", "items", "replace"}
        else:
            assert path == "/recommend/batch"
            asked = [each.pop("category", None) for each in body["requests"]]
            assert asked == [None, *sorted_categories(stage)]
            assert {each.pop("limit") for each in body["requests"]} == {40}
            assert {tuple(sorted(each)) for each in body["requests"]} == {("client", "recommender")}


def sorted_categories(stage: Stage) -> list[str]:
    """The categories in the order of the server's own catalogue."""
    answers = [bytes(stream).partition(b"\r\n\r\n")[2] for stream in stage.tap.back]
    catalogue = next(json.loads(text) for text in answers if text.startswith(b'{"items":[{'))
    return list(catalogue["categories"])


def level(page: Page, category: str, value: str) -> None:
    group = page.locator(f'fieldset[data-category="{category}"]')
    with page.expect_response("**/choices"):
        group.locator(f"input[value={value}]").check()


def test_the_control_no(stage: Stage) -> None:
    page = stage.page
    import_history(page, HISTORY[:5])
    page.locator("[name=overall][value=no]").check()
    expect(page.locator("#finer")).to_be_hidden()
    expect(page.locator("#planned")).to_contain_text("no item is sent")
    expect(page.locator("#price")).to_have_text("This costs no ε.")
    create(page)
    assert shown_items(page) == []
    send(page)
    assert stage.profiles()[-1]["items"] == []
    expect(page.locator("#rows h3").first).to_contain_text("popular")
    expect(page.locator("#total")).to_have_text("ε 0 spent of 2")


def test_the_control_all(stage: Stage) -> None:
    page = stage.page
    import_history(page, HISTORY[:5])
    page.locator("[name=overall][value=all]").check()
    expect(page.locator("#planned")).to_contain_text("those are not protected")
    expect(page.locator("#create")).to_have_text("Create exact list, unprotected")
    create(page)
    expect(page.locator("#reveals")).to_contain_text("it cannot be undone")
    send(page)
    assert stage.profiles()[-1]["items"] == sorted(HISTORY[:5])
    expect(page.locator("#rows h3").nth(1)).to_contain_text("from your list")
    # The total no longer lets anyone believe that everything is protected.
    expect(page.locator("#total-epsilon")).to_contain_text("sent unprotected at least once")


def test_the_controls_by_category(stage: Stage) -> None:
    page = stage.page
    import_history(page)
    page.locator("#by-category").check()
    expect(page.locator("#categories fieldset")).to_have_count(10)
    level(page, "Romance", "all")
    level(page, "Comedy", "no")
    expect(page.locator("#planned")).to_contain_text("Nothing about Comedy")
    expect(page.locator("#planned")).to_contain_text("in Romance and in no other category")
    create(page)
    items = shown_items(page)
    kinds = {item["id"]: item["categories"] for item in CATALOGUE["items"]}
    assert not [item for item in items if "Comedy" in kinds[item]]
    romance_only = {item for item in HISTORY if kinds[item] == ["Romance"]}
    assert romance_only
    assert romance_only == {item for item in items if kinds[item] == ["Romance"]}
    send(page)
    assert stage.profiles()[-1]["items"] == items
    # The controls are where they were after a reload.
    page.reload()
    expect(page.locator('fieldset[data-category="Comedy"] input[value=no]')).to_be_checked()


def test_the_same_again_is_free_and_another_list_is_not(stage: Stage) -> None:
    page = stage.page
    import_history(page, HISTORY[:20])
    create(page)
    items, total = shown_items(page), page.locator("#total").inner_text()
    send(page)
    page.locator("#items .tile[aria-pressed=false]").first.click()
    expect(page.locator("#stale")).to_contain_text("1 item of your history changed")
    expect(page.locator("#send")).to_have_text("Send it again, free")
    with page.expect_response("**/send"):
        page.locator("#send").click()
    assert [profile["items"] for profile in stage.profiles()] == [items, items]
    expect(page.locator("#total")).to_have_text(total)
    # Before ten items have changed it has to be confirmed.
    expect(page.locator("#create")).to_be_disabled()
    expect(page.locator("#early-text")).to_contain_text("Only 1 of 10 items changed")
    page.locator("#early").check()
    create(page)
    spent, once = (
        float(re.findall(r"[\d.]+", text)[0])
        for text in (page.locator("#total").inner_text(), total)
    )
    assert spent == pytest.approx(2 * once)
    expect(page.locator("#send")).to_have_text("Send it")
    expect(page.locator("#sent")).to_have_text("Not sent yet.")


def test_a_second_window_does_not_pay_again(stage: Stage) -> None:
    page = stage.page
    other = page.context.new_page()
    other.goto(stage.hub.page)
    expect(other.locator("#create")).to_be_enabled()
    create(page)
    total = page.locator("#total").inner_text()
    stage.watched.expected = ("409",)
    other.locator("#create").click()
    expect(other.locator("#message")).to_contain_text("created meanwhile")
    other.reload()
    expect(other.locator("#total")).to_have_text(total)


def test_the_limit_stops_and_the_noise_can_be_chosen(stage: Stage) -> None:
    page = stage.page
    page.locator("#strength summary").click()
    page.get_by_label("my own:").check()
    page.get_by_label("My own epsilon").fill("1.5")
    page.keyboard.press("Tab")
    expect(page.locator("#create")).to_have_text("Create noisy list for ε 1.5")
    create(page)
    expect(page.locator("#price")).to_contain_text("above the limit you set")
    expect(page.locator("#create")).to_be_disabled()
    page.locator("#settings summary").click()
    page.locator("#limit").fill("4")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#total")).to_have_text("ε 1.5 spent of 4")
    page.locator("#early").check()
    expect(page.locator("#create")).to_be_enabled()


@pytest.mark.parametrize(("table", "name"), [("urls", "History"), ("moz_places", "places.sqlite")])
def test_a_browsers_history(stage: Stage, tmp_path: Path, table: str, name: str) -> None:
    pages = [f"{TITLES[item]} - Filmhouse" for item in HISTORY[:4]] + ["My bank", None]
    path = browser_file(tmp_path / name, table, pages)
    upload(stage.page, path.read_bytes(), name)
    expect(stage.page.locator("#imported")).to_contain_text("5 titles read: 4 items added")
    expect(stage.page.locator("#history-count")).to_have_text("4 items")


def test_bad_files_are_said_and_the_history_is_kept(stage: Stage) -> None:
    page = stage.page
    import_history(page, HISTORY[:3])
    stage.watched.expected = ("409",)
    for content, words in (
        (b"", "The file is empty."),
        (b"\x89PNG\x00\x00", "not text"),
        (b"SQLite format 3\x00" + b"x" * 4000, "cannot be read"),
    ):
        upload(page, content)
        expect(page.locator("#message")).to_contain_text(words)
        expect(page.locator("#history-count")).to_have_text("3 items")
    upload(page, "title\nNobody's Film\nAnother One\n")
    expect(page.locator("#message")).to_be_hidden()
    expect(page.locator("#imported")).to_contain_text("No title matches the catalogue")
    expect(page.locator("#unmatched summary")).to_contain_text("2 titles not in the catalogue")
    expect(page.locator("#history-count")).to_have_text("3 items")
    page.locator("#search").fill("qqqq")
    expect(page.locator("#found")).to_have_text("No item in the catalogue has that name.")


def test_an_unreachable_server_is_said_and_nothing_is_lost(
    browser: Browser, demo: Demo, key: str, tmp_path: Path
) -> None:
    with staged(browser, demo, key, tmp_path) as before:
        import_history(before.page, HISTORY[:3])
        create(before.page)
        items = shown_items(before.page)
    away = RecommendationServer(url=before.tap.url, recommender=NAME, key=key)  # its tap is closed
    with living(Hub(Database(tmp_path, "films"), away), folder=tmp_path) as hub:
        page = browser.new_page()
        page.goto(hub.page)
        page.locator("#send").click()
        expect(page.locator("#message")).to_contain_text("does not answer")
        expect(page.locator("#message")).to_contain_text("kept on this device")
        page.locator("#fetch-rows").click()
        expect(page.locator("#message")).to_contain_text("does not answer")
        expect(page.locator("#history-count")).to_have_text("3 items")
        assert shown_items(page) == items
        page.close()


def test_a_first_start_without_a_server_can_be_mended(browser: Browser, tmp_path: Path) -> None:
    with recommending(CATALOGUE) as served:
        served.fault = (503, b"")
        server = RecommendationServer(url=served.url, recommender=FILMS, key=FILMS_KEY)
        with living(Hub(Database(tmp_path, "films"), server), folder=tmp_path) as hub:
            page = browser.new_page()
            page.goto(hub.page)
            expect(page.locator("#message")).to_contain_text("The server failed")
            expect(page.locator("#seen")).to_be_hidden()
            page.locator("#settings summary").click()
            expect(page.locator("#about-catalogue")).to_have_text("There is no catalogue yet.")
            served.fault = None
            page.locator("#fetch-catalogue").click()
            expect(page.locator("#items .tile").first).to_be_visible()
            expect(page.locator("#message")).to_be_hidden()
            page.close()


def test_without_the_secret_the_page_says_where_to_look(stage: Stage) -> None:
    page = stage.page.context.browser.new_page()  # type: ignore[union-attr]
    page.goto(stage.hub.url)
    expect(page.locator("#message")).to_contain_text("the address that the hub printed")
    expect(page.locator("#body")).to_be_hidden()
    page.goto(f"{stage.hub.url}/#secret=guessed")
    expect(page.locator("#message")).to_contain_text("the address that the hub printed")
    expect(page.locator("#body")).to_be_hidden()
    page.close()
    # The right one stays in its tab alone, and out of the address bar.
    assert stage.hub.secret not in stage.page.url
    assert stage.page.evaluate("Object.keys(localStorage).length + document.cookie.length") == 0


def test_keyboard_alone(stage: Stage) -> None:
    page = stage.page
    page.locator("#items .tile").first.focus()
    page.keyboard.press("Space")
    expect(page.locator("#items .tile").first).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#items .tile").first).to_be_focused()
    page.locator("[name=overall][value=perturbed]").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("[name=overall][value=all]")).to_be_focused()
    expect(page.locator("#create")).to_have_text("Create exact list, unprotected")
    page.keyboard.press("Tab")
    expect(page.locator("#create")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#look-title")).to_be_focused()
    page.locator("#send").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#sent")).to_contain_text("Sent on")


@pytest.mark.parametrize(("width", "scheme"), [(1180, "light"), (360, "dark")])
def test_readable_by_everyone_on_a_phone_too(
    browser: Browser, demo: Demo, key: str, tmp_path: Path, width: int, scheme: str
) -> None:
    with staged(browser, demo, key, tmp_path, color_scheme=scheme) as stage:
        page = stage.page
        page.set_viewport_size({"width": width, "height": 740})
        import_history(page)
        upload(page, "title\nNobody's Film\n")
        page.locator("#by-category").check()
        page.locator("#strength summary").click()
        create(page)
        page.locator("#contents summary").click()
        page.locator("#settings summary").click()
        send(page)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        found = Axe().run(page).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []


def test_the_program_itself_goes_on_where_another_hub_stopped(
    browser: Browser, demo: Demo, key: str, tmp_path: Path
) -> None:
    server = RecommendationServer(url=demo.url, recommender=NAME, key=key)
    page = browser.new_page()
    with living(Hub(Database(tmp_path, NAME), server), folder=tmp_path) as hub:
        page.goto(hub.page)
        import_history(page, HISTORY[:3])
        noisy(page)
        create(page)
        send(page)
        items = shown_items(page)
    (tmp_path / "key").write_text(key)
    options = ["--server", demo.url, "--recommender", NAME, "--key-file", str(tmp_path / "key")]
    with program(*options, "--data", str(tmp_path)) as (hub, _):
        assert urlsplit(hub.url).hostname == "127.0.0.1"
        page.goto(hub.page)
        expect(page.locator("#history-count")).to_have_text("3 items")
        expect(page.locator("#send")).to_have_text("Send it again, free")
        assert shown_items(page) == items
        send(page)
    page.close()


def test_a_changed_catalogue_is_a_difference_that_needs_agreement(
    browser: Browser, tmp_path: Path
) -> None:
    with recommending(json.loads(json.dumps(CATALOGUE))) as served:
        server = RecommendationServer(url=served.url, recommender=FILMS, key=FILMS_KEY)
        with living(Hub(Database(tmp_path, "films"), server), folder=tmp_path) as hub:
            page = browser.new_page()
            page.goto(hub.page)
            import_history(page, HISTORY[:2])
            expect(page.locator("#offer")).to_be_hidden()
            moved = next(each for each in served.catalogue["items"] if each["id"] == HISTORY[0])
            before, moved["categories"] = moved["categories"], ["Westerns"]
            page.locator("#settings summary").click()
            page.locator("#fetch-catalogue").click()
            expect(page.locator("#offer-changes")).to_contain_text("1 item in other categories")
            expect(page.locator("#offer-changes")).to_contain_text("New categories: Westerns")
            page.locator("#offer-moved summary").click()
            line = page.locator("#offer-moved li")
            expect(line).to_contain_text(f"{moved['title']}: {', '.join(before)} → Westerns")
            expect(line).to_contain_text("in your history")
            found = Axe().run(page).response["violations"]
            assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []
            page.locator("#offer-refuse").click()
            expect(page.locator("#offer")).to_be_hidden()
            page.locator("#fetch-catalogue").click()
            page.locator("#offer-accept").click()
            expect(page.locator("#status")).to_contain_text("The new catalogue is used")
            expect(page.locator("#about-pins")).to_contain_text("1 item had other categories")
            # A category that came later says nothing until it is chosen for.
            page.locator("[name=overall][value=perturbed]").check()
            page.locator("#by-category").check()
            expect(page.locator('fieldset[data-category="Westerns"]')).to_be_visible()
            page.locator("#reset-pins").click()
            expect(page.locator("#pins")).to_be_hidden()
            page.close()


def test_several_services_in_one_page(browser: Browser, tmp_path: Path) -> None:
    items = [{"id": "b1", "title": TITLES[HISTORY[0]], "categories": ["Paper"]},
             {"id": "b2", "title": "Another Book", "categories": ["Ink"]}]  # fmt: skip
    with recommending(CATALOGUE) as films, recommending({"items": items}) as books:
        hubs = [
            Hub(Database(tmp_path, name), RecommendationServer(each.url, FILMS, FILMS_KEY))
            for name, each in (("films", films), ("books", books))
        ]
        with living(*hubs, folder=tmp_path) as hub:
            page = browser.new_page()
            page.goto(hub.page)
            import_history(page, HISTORY[:3])
            noisy(page)
            create(page)
            page.locator("#services").select_option("books")
            expect(page.locator("#history-count")).to_have_text("1 item")
            expect(page.locator("#look")).to_be_hidden()
            noisy(page)
            create(page)
            expect(page.locator("#total-epsilon")).to_contain_text("here")
            page.locator("#settings summary").click()
            expect(page.locator("#by-service li")).to_have_count(2)
            page.locator("#services").select_option("films")
            expect(page.locator("#history-count")).to_have_text("3 items")
            page.close()
    assert films.profiles == books.profiles == {}, "creating is not sending"


def test_a_device_with_a_key_of_its_own(demo: Demo, key: str, tmp_path: Path) -> None:
    body = {"client": "ada", "recommenders": [NAME], "label": "tablet"}
    code = demo.call("POST", "/enrolments", body)["code"]
    device = enrolment.enrol(url=demo.url, code=code, recommender=None)
    hub = Hub(Database(tmp_path, NAME), device.server())
    hub.fetch_catalogue()
    hub.choose(Choices(overall=Level.ALL))
    hub.see(HISTORY[0])
    hub.send(hub.create(after=0, agreed=0, early=False).number)
    assert any(row.items for row in hub.recommend())
    # It opens nothing of anybody else's.
    with pytest.raises(ServerError, match="scope that this needs"):
        device.server().send_profile("grace", [])
    assert [row.items for row in device.server().recommend("grace", [])] == [()]
