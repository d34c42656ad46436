"""Draw the pictures of the hub: its page by day, and on a phone by night.

python -m tests.browser.picture_hub docs/img
"""

import argparse
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from discreet.hub.database import Database
from discreet.hub.hub import Hub
from discreet.hub.server import RecommendationServer
from tests.browser.test_hub import (
    CATALOGUE,
    NAME,
    create,
    import_history,
    level,
    noisy,
    prepare,
    send,
)
from tests.demo_server import demo_server
from tests.hub.living import living
from tests.requirements import find_chromium

MOST_BYTES = 200_000
LIKED = {"Romance": 3, "Comedy": 3, "History": 4, "Drama": 5, "Crime": 9}
"""Every so many of a category's films were seen."""


def seen() -> list[str]:
    """An invented person's history."""
    found = set()
    for name, every in LIKED.items():
        films = [item["id"] for item in CATALOGUE["items"] if name in item["categories"]]
        found.update(films[: 2 * len(films) // every : 2] if every < 4 else films[::every])
    return sorted(found)


def _open(browser: Browser, address: str, width: int, scheme: str) -> Page:
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,  # type: ignore[arg-type]
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(address)
    expect(page.locator("#items .tile").first).to_be_visible()
    return page


def _part(page: Page, part: Locator, path: Path, *, most: int) -> Path:
    page.evaluate("scrollTo(0, 0)")  # boxes are measured from what is in view
    box = part.bounding_box()
    assert box is not None
    clip = {"x": 0, "y": box["y"] - 16, "width": box["x"] * 2 + box["width"]}
    clip["height"] = min(box["height"] + 32, most)
    page.screenshot(path=path, full_page=True, clip=clip)  # type: ignore[arg-type]
    return path


def paint(folder: Path) -> list[Path]:
    """Draw the pictures into the folder; return their paths."""
    drawn = []
    with tempfile.TemporaryDirectory() as data, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        with demo_server(Path(data)) as demo:
            server = RecommendationServer(url=demo.url, recommender=NAME, key=prepare(demo))
            hub = Hub(Database(Path(data), "films"), server)
            with living(hub, folder=Path(data)) as running:
                page = _open(browser, running.page, 1120, "light")
                import_history(page, seen())
                noisy(page)
                page.locator("#by-category").check()
                level(page, "Crime", "no")
                # Less noise than the automatic choice, so that the picture shows a resemblance.
                page.locator("#strength summary").click()
                page.get_by_label("my own:").check()
                page.get_by_label("My own epsilon").fill("1")
                page.keyboard.press("Tab")
                expect(page.locator("#create")).to_have_text("Create noisy list for ε 1")
                create(page)
                send(page)
                for name, height in (("choose", 900), ("look", 900), ("recommendations", 760)):
                    part = page.locator(f"#{name}")
                    drawn.append(_part(page, part, folder / f"hub-{name}.png", most=height))
                phone = _open(browser, running.page, 390, "dark")
                look = phone.locator("#look")
                drawn.append(_part(phone, look, folder / "hub-phone.png", most=1_100))
        browser.close()
    return drawn


def main() -> int:
    """Draw into the folder named on the command line; fail if a picture is too heavy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for path in paint(args.folder):
        size = path.stat().st_size
        print(f"{path} {size:,} bytes")
        if size > MOST_BYTES:
            raise SystemExit(f"{path} is heavier than {MOST_BYTES:,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
