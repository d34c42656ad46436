"""The live page in a real browser, against a really running demo."""

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from prometheus_client.parser import text_string_to_metric_families

from discreet.research.simulate.traffic import Traffic, send_traffic
from tests.browser.conftest import Watched
from tests.contracts.samples import SAMPLES
from tests.demo_server import Demo, demo_server
from tests.end_to_end.servers import new_key
from tests.waiting import wait_for

FIGURES = ("reward", "regret", "spent", "release", "degraded", "traffic")
PATIENCE = 300
"""Looks at a page that may be late, a fifth of a second apart."""


def declare(demo: Demo, name: str, *, budget: float = 4.0, dimensions: int = 2) -> None:
    body = {
        "algorithm": "p-dap",
        "items": ["first", "second", "third"],
        "context": {"dimensions": dimensions},
        "partition": {"base": 20.0},
        "privacy": {
            "answers": {"epsilon": 2.0, "budget": {"epsilon": budget}},
            "feedback": "exact",
        },
        "releases": {"seconds": 0.2, "growth": 0},
    }
    demo.call("PUT", f"/recommenders/{name}", body)


def open_page(tab: Watched, demo: Demo, recommender: str = "") -> Page:
    tab.page.goto(f"{demo.url}/#key={demo.key}")
    expect(tab.page.locator("#health")).to_have_text("server and store up")
    if recommender:
        tab.page.locator("#recommender").select_option(recommender)
        expect(tab.page.locator("#recommender")).to_have_value(recommender)
        # Another one may still be loading, and would take the controls and the focus away.
        expect(tab.page.locator("#trial")).to_have_attribute("aria-busy", "false")
    return tab.page


def send(demo: Demo, recommender: str, **changes: Any) -> None:
    plan = {"rate": 100.0, "seconds": 2.0, "clients": 10, "seed": 3, "name": recommender}
    traffic = Traffic(url=demo.url, key=demo.key, recommender=recommender, **{**plan, **changes})
    # The browser's driver owns this thread's event loop, so traffic gets a thread of its own.
    results = _in_a_thread(lambda: asyncio.run(send_traffic(traffic)))
    assert not results.errors


def _in_a_thread(work: Any) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def shown(page: Page, figure: str) -> Any:
    return page.locator(f"#{figure} .now")


@contextmanager
def sending(demo: Demo, recommender: str, **changes: Any) -> Iterator[None]:
    """Let traffic flow for as long as the block takes."""
    plan = {"rate": 40.0, "seconds": 600.0, "clients": 10, "seed": 3, "name": recommender}
    traffic = Traffic(url=demo.url, key=demo.key, recommender=recommender, **{**plan, **changes})
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(loop.run_until_complete, send_traffic(traffic, stop=stop))
        try:
            yield
        finally:
            loop.call_soon_threadsafe(stop.set)
            assert not running.result().errors
            loop.close()


def test_the_figures_are_those_of_metrics(tab: Watched, demo: Demo) -> None:
    declare(demo, "shown")
    page = open_page(tab, demo, "shown")
    expect(page.locator("#release .chart")).to_have_attribute(
        "aria-label", _says("released models: 0 now")
    )
    send(demo, "shown")
    # These stay as they are once the traffic is over, but for another release: both are read again.
    for _ in range(PATIENCE):
        expected = _expected(demo, "shown")
        seen = {figure: shown(page, figure).inner_text() for figure in expected}
        if all(_words(seen[figure]) == words for figure, words in expected.items()):
            break
        page.wait_for_timeout(200)
    else:
        pytest.fail(f"the page shows {seen}, the metrics say {expected}")
    expect(page.locator("#release figcaption p")).to_have_text(
        f"{_gauge(demo, 'shown', 'cells')} cells of the context space, "
        f"{_gauge(demo, 'shown', 'splits')} of them split"
    )
    assert _gauge(demo, "shown", "splits") >= 1


def _expected(demo: Demo, recommender: str) -> dict[str, list[str]]:
    """What the page should show of a recommender, by figure: the numbers in their order."""
    counted = demo.samples(recommender)
    assert counted["discreet_released_feedback", ""] > 0
    return {
        "reward": [f"{counted['discreet_released_reward_mean', '']:.2f}"],
        "regret": [f"{counted['discreet_released_regret', '']:.2f}"],
        "release": [str(_gauge(demo, recommender, "release"))],
        "spent": [_spent(demo, recommender, part) for part in (0.5, 0.9)],
    }


def _words(text: str) -> list[str]:
    """Return the numbers of a figure, percentages as such."""
    return re.findall(r"\d+(?:\.\d+)?(?: %)?(?! in)", text.replace("9 in 10", ""))


def _spent(demo: Demo, recommender: str, part: float) -> str:
    """What this part of all clients has spent at most: each of them has two answers in all."""
    at_least = {
        float(sample.labels["share"]): sample.value
        for family in text_string_to_metric_families(demo.call("GET", "/metrics"))
        for sample in family.samples
        if sample.name == "discreet_clients_spent_total"
        and sample.labels["recommender"] == recommender
    }
    halves = (at_least[0.0] - at_least[0.6]) / at_least[0.0]
    return "60 %" if halves >= part else "100 %"


def test_degraded_answers_are_a_share_of_the_last_seconds(tab: Watched, demo: Demo) -> None:
    declare(demo, "degrading", budget=2.0)
    declare(demo, "lasting", budget=1e6)
    page = open_page(tab, demo, "degrading")
    # One client can pay for one answer; whatever comes after the page's ten seconds is degraded.
    with sending(demo, "degrading", clients=1):
        expect(shown(page, "degraded")).to_have_text("100 %", timeout=60_000)
        expect(shown(page, "traffic")).not_to_have_text("0")
    with sending(demo, "lasting"):
        page.locator("#recommender").select_option("lasting")
        expect(shown(page, "degraded")).to_have_text("0 %", timeout=60_000)
    # Nothing is a share of nothing.
    expect(shown(page, "degraded")).to_have_text("–", timeout=60_000)
    expect(shown(page, "traffic")).to_have_text("0")


def _gauge(demo: Demo, recommender: str, name: str) -> int:
    return int(demo.samples(recommender)[f"discreet_{name}", ""])


def _says(part: str) -> Any:
    return re.compile(re.escape(part))


def test_charts_are_drawn_and_described_in_words(tab: Watched, demo: Demo) -> None:
    declare(demo, "drawn")
    page = open_page(tab, demo, "drawn")
    send(demo, "drawn")
    for figure in FIGURES:
        line = page.locator(f"#{figure} .chart .line").first
        page.wait_for_function(
            "id => document.querySelector(`#${id} .line`)?.getAttribute('d').split('L').length > 3",
            arg=figure,
        )
        wait_for("its line, which is drawn anew every second", line.bounding_box)
        chart = page.locator(f"#{figure} .chart")
        label = chart.get_attribute("aria-label")
        assert chart.get_attribute("role") == "img"
        assert label is not None
        assert "now, between" in label
        title = page.locator(f"#{figure} h2").inner_text()
        assert label.startswith(title)
    # Pointing at the left of a chart shows an older value, leaving it the newest.
    page.locator("#traffic .chart").hover(position={"x": 60, "y": 60})
    expect(page.locator("#traffic figcaption p")).to_have_text(_says("s ago"))
    page.mouse.move(5, 5)
    expect(page.locator("#traffic figcaption p")).to_have_text(_says("last 10 s"))


def test_the_same_figures_as_a_table(tab: Watched, demo: Demo) -> None:
    declare(demo, "tabled")
    page = open_page(tab, demo, "tabled")
    send(demo, "tabled", seconds=1.0)
    page.get_by_text("The same figures as a table").click()
    expect(page.locator("#table th")).to_have_count(12)
    first = page.locator("#table tr").nth(1).locator("td")
    expect(first.first).to_have_text("0 s ago")
    expect(page.locator("#table th").nth(3)).to_have_text("Clients charged")
    clients = demo.samples("tabled")["discreet_clients_spent_total", "0"]
    expect(first.nth(3)).to_have_text(f"{clients:.0f}")


def test_trying_it(tab: Watched, demo: Demo) -> None:
    declare(demo, "tried")
    page = open_page(tab, demo, "tried")
    page.locator("#context-0").fill("0.8")
    expect(page.locator("#controls output").first).to_have_text("0.80")
    page.locator("#ask").click()
    expect(page.locator("#answer .item")).to_have_text(_any("first", "second", "third"))
    expect(page.locator("#answer .tag")).to_have_text("personalised")
    expect(page.locator("#answer")).to_contain_text("ε 2 of 4 left")
    page.locator("#like").click()
    expect(page.locator("#thanks")).to_have_text("Counted.")
    expect(page.locator("#like")).to_be_disabled()
    page.locator("#ask").click()
    expect(page.locator("#answer")).to_contain_text("ε 0 of 4 left")
    page.locator("#dislike").click()
    expect(page.locator("#thanks")).to_have_text("Counted.")
    page.locator("#ask").click()
    expect(page.locator("#answer .tag")).to_have_text("not personalised")
    expect(page.locator("#answer")).to_contain_text("budget for answers is spent")
    # Another user has a budget of their own.
    page.locator("#new-user").click()
    page.locator("#ask").click()
    expect(page.locator("#answer .tag")).to_have_text("personalised")
    counted = demo.samples("tried")
    assert counted["discreet_recommendations_total", "personalised"] == 3
    assert counted["discreet_recommendations_total", "degraded"] == 1


def test_simulating_twenty_new_users(tab: Watched, demo: Demo) -> None:
    declare(demo, "simulated")
    page = open_page(tab, demo, "simulated")
    page.locator("#ask-many").click()
    expect(page.locator("#crowd")).to_be_visible()
    counts = page.locator("#crowd-list li span:last-child").all_inner_texts()
    assert sum(map(int, counts)) == 20
    spent = demo.samples("simulated")["discreet_recommendations_total", "personalised"]
    assert spent == 20


def test_the_square_and_the_sliders_agree(tab: Watched, demo: Demo) -> None:
    declare(demo, "square")
    page = open_page(tab, demo, "square")
    box = page.locator("#pad").bounding_box()
    assert box is not None
    page.locator("#pad").click(position={"x": box["width"] * 0.9, "y": box["height"] * 0.2})
    first, second = (float(page.locator(f"#context-{i}").input_value()) for i in (0, 1))
    assert first == pytest.approx(0.9, abs=0.02)
    assert second == pytest.approx(0.8, abs=0.02)


def test_other_dimensions(tab: Watched, demo: Demo) -> None:
    declare(demo, "many", dimensions=7)
    page = open_page(tab, demo, "many")
    expect(page.locator("#controls input")).to_have_count(4)
    expect(page.locator("#controls")).to_contain_text("and 3 more at 0.5")
    expect(page.locator("#pad")).to_be_hidden()
    page.locator("#ask").click()
    expect(page.locator("#answer .tag")).to_have_text("personalised")


def test_the_guarantee_is_the_one_that_the_server_answers(tab: Watched, demo: Demo) -> None:
    declare(demo, "promised")
    page = open_page(tab, demo, "promised")
    card = demo.call("GET", "/recommenders/promised/guarantee")
    shown_card = page.locator("#guarantee-card")
    for field in ("protected", "against", "neighbours", "unit"):
        expect(shown_card).to_contain_text(card[field])
    expect(shown_card).to_contain_text("Price: ε 2 for each personal item")
    expect(shown_card).to_contain_text("Budget: ε 4.")
    expect(shown_card).to_contain_text("not protected")
    for limit in card["not_covered"]:
        expect(shown_card).to_contain_text(limit)


@pytest.mark.parametrize("family", [*SAMPLES, "fclub-global"])
def test_every_family_is_shown_also_when_it_comes_first(
    tab: Watched, demo: Demo, family: str
) -> None:
    document = (
        {"algorithm": "fclub", "role": "global", "dimensions": 3}
        if family == "fclub-global"
        else {"algorithm": family, **SAMPLES[family].document}
    )
    name = f"0-{family}"
    demo.call("PUT", f"/recommenders/{name}", document)
    try:
        tab.expected = ("409", "422")
        # The page lists what metrics and workers name, who follow a change within a second or so,
        # and stays with the one that it began with.
        wait_for("a page that begins with it", lambda: _begins_with(tab, demo, name))
        page = tab.page
        expect(page.locator("#no-traffic")).to_contain_text(
            f"{name} has not been asked anything yet"
        )
        expect(page.locator("#guarantee-card")).to_be_visible()
        for figure in FIGURES:
            expect(page.locator(f"#{figure} .chart")).to_be_visible()
        page.locator("#ask").click()
        # An item, or why there is none, in the server's own words.
        expect(page.locator("#answer p").first).not_to_have_text(_any("Press Recommend.", ""))
        expect(page.locator("#answer p").first).not_to_contain_text("Choose a context")
        page.locator("#ask-many").click()
    finally:
        demo.call("DELETE", f"/recommenders/{name}")


def _begins_with(tab: Watched, demo: Demo, name: str) -> bool:
    tab.page.goto("about:blank")
    chosen = open_page(tab, demo).locator("#recommender")
    expect(chosen).not_to_have_value("")
    return chosen.input_value() == name


def test_the_hint_goes_away_with_the_first_answer(tab: Watched, demo: Demo) -> None:
    declare(demo, "hinted")
    page = open_page(tab, demo, "hinted")
    expect(page.locator("#no-traffic")).to_contain_text(
        "discreet simulate --traffic --recommender hinted"
    )
    page.locator("#ask").click()
    expect(page.locator("#no-traffic")).to_be_hidden()


def test_the_map_follows_the_released_model(tab: Watched, demo: Demo) -> None:
    declare(demo, "mapped")
    page = open_page(tab, demo, "mapped")
    expect(page.locator("#map-title")).to_have_text("Nothing has been learned yet")
    expect(page.locator("#pad .field")).to_have_count(0)
    send(demo, "mapped")
    for _ in range(PATIENCE):
        drawn = demo.call("GET", "/recommenders/mapped/model/map")
        if page.locator("#map-title").inner_text() == (
            f"Released model {drawn['release']} recommends first"
        ):
            break
        page.wait_for_timeout(200)
    else:
        pytest.fail("the page does not show the newest map")
    assert drawn["release"] > 0
    legend = page.locator("#map-legend li span:nth-child(2)").all_inner_texts()
    assert set(legend) == set(drawn["items"])
    # Every field of the map is covered once: the areas add up to the square.
    areas = page.locator("#pad .field").evaluate_all(
        "shapes => shapes.map((s) => s.width.baseVal.value * s.height.baseVal.value)"
    )
    assert sum(areas) == pytest.approx(100 * 100)
    top = page.locator("#pad .field title").evaluate_all(
        "titles => titles.filter((t) => t.parentNode.y.baseVal.value < 1).map((t) => t.textContent)"
    )
    row = drawn["first"][-1]
    changes = [item for item, before in zip(row, [None, *row], strict=False) if item != before]
    assert top == [drawn["items"][item] for item in changes]


def test_named_fields_are_asked_for_by_name(tab: Watched, demo: Demo) -> None:
    fields = {
        "age": {"type": "number", "range": [0, 120]},
        "born": {"type": "number", "range": [1900, 2000]},
        "country": {"type": "category", "values": ["CH", "DE"], "required": True},
        "member": {"type": "boolean"},
        "shop": {"type": "category"},
    }
    document = {"algorithm": "p-dap", "items": ["first"], "context": {"fields": fields}}
    demo.call("PUT", "/recommenders/named", {**document, "items": ["first", "second"]})
    page = open_page(tab, demo, "named")
    expect(page.locator("#pad")).to_be_hidden()
    expect(page.locator("#map")).to_be_hidden()
    page.get_by_label("age").fill("36")
    page.get_by_label("born").fill("1963")
    expect(page.locator("label", has_text="born").locator("output")).to_have_text("1963")
    page.get_by_label("country").select_option("DE")
    page.get_by_label("member").select_option("true")
    page.get_by_label("shop").fill("Basel")
    with page.expect_request("**/recommend") as asked:
        page.locator("#ask").click()
    assert asked.value.post_data_json["context"] == {
        "age": 36,
        "born": 1963,
        "country": "DE",
        "member": True,
        "shop": "Basel",
    }
    expect(page.locator("#answer .tag")).to_have_text("personalised")
    # What is left open is not sent.
    page.get_by_label("member").select_option("unknown")
    page.get_by_label("shop").fill("")
    with page.expect_request("**/recommend") as asked:
        page.locator("#ask").click()
    assert asked.value.post_data_json["context"] == {"age": 36, "born": 1963, "country": "DE"}


def test_a_wrong_key_is_said_and_can_be_mended(tab: Watched, demo: Demo) -> None:
    tab.expected = ("401",)
    tab.page.goto(f"{demo.url}/#key=wrong")
    message = tab.page.get_by_role("alert")
    expect(message).to_contain_text("Unknown key")
    expect(tab.page.locator("#figures")).to_be_hidden()
    tab.page.get_by_label("API key").fill(demo.key)
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator("#health")).to_have_text("server and store up")
    expect(message).to_be_hidden()
    expect(tab.page.locator("#figures")).to_be_visible()


def key_for(demo: Demo, scope: str) -> str:
    return str(_in_a_thread(lambda: new_key(demo.data, "test", scope)))


def test_a_key_for_figures_only(tab: Watched, demo: Demo) -> None:
    tab.expected = ("403",)
    tab.page.goto(f"{demo.url}/#key={key_for(demo, 'metrics')}")
    expect(tab.page.locator("#figures")).to_be_visible()
    expect(tab.page.locator("#trial-why")).to_contain_text("serve and admin scopes")
    expect(tab.page.locator("#ask")).to_be_hidden()


def test_a_key_that_may_not_see_figures(tab: Watched, demo: Demo) -> None:
    tab.expected = ("403",)
    tab.page.goto(f"{demo.url}/#key={key_for(demo, 'serve')}")
    expect(tab.page.get_by_role("alert")).to_contain_text("cannot read the figures")
    expect(tab.page.locator("#figures")).to_be_hidden()


def test_the_key_stays_in_the_tab(tab: Watched, demo: Demo) -> None:
    page = open_page(tab, demo)
    assert demo.key not in page.url
    page.reload()
    expect(page.locator("#health")).to_have_text("server and store up")
    assert page.evaluate("Object.keys(localStorage).length + document.cookie.length") == 0
    page.get_by_text("Forget the key").click()
    expect(page.get_by_label("API key")).to_be_focused()
    page.reload()
    expect(page.get_by_label("API key")).to_be_visible()
    expect(page.locator("#figures")).to_be_hidden()


def test_keyboard_alone(tab: Watched, demo: Demo) -> None:
    page = open_page(tab, demo, "films")
    page.keyboard.press("Tab")
    page.locator("#context-0").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#controls output").first).to_have_text("0.26")
    for _ in range(3):  # the second slider, "New user", "Recommend"
        page.keyboard.press("Tab")
    expect(page.locator("#ask")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#answer .item")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_readable_on_a_phone_by_day_and_by_night(browser: Browser, demo: Demo, scheme: str) -> None:
    context = browser.new_context(
        viewport={"width": 360, "height": 740},
        color_scheme=scheme,  # type: ignore[arg-type]
    )
    page = context.new_page()
    page.goto(f"{demo.url}/#key={demo.key}")
    expect(page.locator("#health")).to_have_text("server and store up")
    page.locator("#ask-many").click()
    expect(page.locator("#crowd")).to_be_visible()
    # What can be done comes before what can be watched.
    ask, figure = (page.locator(name).bounding_box() for name in ("#ask", "#reward"))
    assert ask is not None
    assert figure is not None
    assert ask["y"] < 740 < figure["y"]
    overflow = "document.documentElement.scrollWidth - innerWidth"
    assert page.evaluate(overflow) <= 0
    for front, back, least in (
        ("--ink", "--card", 7.0),
        ("--quiet", "--card", 4.5),
        ("--quiet", "--paper", 4.5),
        ("--first", "--card", 4.5),
        ("--second", "--card", 3.0),
        ("--bad", "--bad-wash", 4.5),
        ("--good", "--paper", 4.5),
        ("--on-first", "--first", 4.5),
    ):
        assert _contrast(_colour(page, front), _colour(page, back)) >= least, (front, back)
    context.close()


def _colour(page: Page, name: str) -> str:
    style = "getComputedStyle(document.documentElement)"
    return str(page.evaluate(f"name => {style}.getPropertyValue(name).trim()", name))


def _contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two #rrggbb colours as WCAG defines it."""

    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_a_server_that_goes_away_and_comes_back(browser: Browser, tmp_path: Path) -> None:
    context = browser.new_context()
    context.set_default_timeout(120_000)
    page = context.new_page()
    with demo_server(tmp_path, "--workers", "1") as first:
        page.goto(f"{first.url}/#key={first.key}")
        expect(page.locator("#health")).to_have_text("server and store up")
    expect(page.locator("#health")).to_have_text("not answering", timeout=120_000)
    expect(page.get_by_role("alert")).to_contain_text("not answering")
    with demo_server(tmp_path, "--workers", "1", port=first.port) as second:
        # The demo's data survive, so the page goes on with the key it has.
        assert second.url == first.url
        expect(page.locator("#health")).to_have_text("server and store up", timeout=120_000)
        expect(page.get_by_role("alert")).to_be_hidden()
    context.close()


def _any(*texts: str) -> Any:
    return re.compile("^(" + "|".join(map(re.escape, texts)) + ")$")
