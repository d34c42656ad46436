"""Draw the README's picture: the live page after a minute of synthetic traffic, light and dark.

python -m tests.browser.picture docs/img
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.demo_server import DISCREET, Demo, demo_server
from tests.requirements import find_chromium

MOST_BYTES = 260_000


def open_tab(browser: Browser, demo: Demo, scheme: str) -> Page:
    """Return a tab that watches the demo."""
    context = browser.new_context(
        viewport={"width": 1120, "height": 800},
        color_scheme=scheme,  # type: ignore[arg-type]
    )
    page = context.new_page()
    page.goto(f"{demo.url}/#key={demo.key}")
    expect(page.locator("#health")).to_have_text("server and store up")
    return page


def draw(folder: Path, *, seconds: int) -> list[Path]:
    """Draw `live-page.png` and `live-page-dark.png`; return their paths."""
    drawn = []
    with tempfile.TemporaryDirectory() as data, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        with demo_server(Path(data)) as demo:
            tabs = {
                "live-page.png": open_tab(browser, demo, "light"),
                "live-page-dark.png": open_tab(browser, demo, "dark"),
            }
            traffic = subprocess.Popen(
                [
                    *(DISCREET, "simulate", "--traffic", "--url", demo.url, "--key", demo.key),
                    *("--seconds", str(seconds + 10)),
                ]
            )
            for name, page in tabs.items():
                # The tab's own clock, so that both keep polling while we wait.
                page.wait_for_timeout(seconds * 1000 if not drawn else 500)
                page.locator("#context-0").fill("0.19")
                page.locator("#context-1").fill("0.13")
                page.locator("#ask").click()
                expect(page.locator("#answer .item")).to_be_visible()
                page.locator("#ask-many").click()
                expect(page.locator("#crowd")).to_be_visible()
                page.screenshot(path=folder / name, full_page=True)
                drawn.append(folder / name)
            traffic.wait()
        browser.close()
    return drawn


def main() -> int:
    """Draw into the folder named on the command line; fail if a picture is too heavy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=int, default=60)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for path in draw(args.folder, seconds=args.seconds):
        size = path.stat().st_size
        print(f"{path} {size:,} bytes")
        if size > MOST_BYTES:
            raise SystemExit(f"{path} is heavier than {MOST_BYTES:,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
