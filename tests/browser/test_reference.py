"""The reference at /docs in a real browser: no request to anybody else, no complaint, not tall."""

import pytest
from playwright.sync_api import expect

from discreet.families.registration import FAMILIES
from tests.browser.conftest import Watched
from tests.demo_server import Demo

MOST_PIXELS = 6_000


@pytest.mark.parametrize("width", [390, 1280])
def test_every_tab_is_drawn_and_short(demo: Demo, tab: Watched, width: int) -> None:
    page = tab.page
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{demo.url}/docs")
    for name in ("all", *FAMILIES):
        page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("link", name=name, exact=True)).to_have_attribute(
            "aria-current", "page"
        )
        expect(page.locator(".opblock").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollHeight") < MOST_PIXELS
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_an_example_can_be_read_and_sent(demo: Demo, tab: Watched) -> None:
    page = tab.page
    page.goto(f"{demo.url}/docs?algorithm=contextual")
    page.get_by_role("button", name="Authorize").first.click()
    page.get_by_role("textbox", name="auth-bearer-value").fill(demo.key)
    page.get_by_role("button", name="Apply credentials").first.click()
    page.get_by_role("button", name="Close", exact=True).first.click()
    block = page.locator("#operations-decisions-recommend")
    block.locator(".opblock-summary").click()
    expect(block).to_contain_text('"recommender": "films"')
    block.get_by_role("button", name="Try it out").click()
    block.get_by_role("button", name="Execute").click()
    expect(block.locator(".live-responses-table tbody .response-col_status").first).to_contain_text(
        "200"
    )
    expect(block.locator(".live-responses-table")).to_contain_text("recommendation_id")
