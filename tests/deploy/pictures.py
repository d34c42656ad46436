"""Draw the dashboards for the documentation: real traffic, real Prometheus, Grafana's components.

    python -m tests.deploy.pictures docs/img

There is no Grafana server in this: the recorded answers to the panels' queries are drawn in
headless Chromium with `@grafana/ui`, the library that Grafana itself draws with. npm installs it
(600 MB) into .venv/tools/drawing the first time.
"""

import argparse
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.deploy.recording import record
from tests.house import ROOT
from tests.requirements import TOOLS, need

SOURCE = ROOT / "tests" / "deploy" / "drawing"
SHOP = TOOLS / "drawing"
ASSETS = ("svg", "woff", "woff2", "ttf", "png")
SETTLE_MILLISECONDS = 3_000
PAGE = """\
<!doctype html>
<html>
<head><link rel="stylesheet" href="bundle.css"></head>
<body style="margin: 0"><div id="root"></div><script src="bundle.js"></script></body>
</html>
"""


def bundle() -> Path:
    """Install what is missing, and return the page that draws."""
    SHOP.mkdir(parents=True, exist_ok=True)
    for path in SOURCE.iterdir():
        shutil.copy(path, SHOP)
    if not (SHOP / "node_modules").exists():
        subprocess.run([need("npm"), "ci", "--no-audit", "--no-fund"], cwd=SHOP, check=True)
    program = SHOP / "bundle.js"
    subprocess.run(
        [
            SHOP / "node_modules" / ".bin" / "esbuild", "app.jsx", "--bundle",
            f"--outfile={program}", "--define:process.env.NODE_ENV=\"production\"",
            "--define:global=window", *(f"--loader:.{kind}=dataurl" for kind in ASSETS),
        ],
        cwd=SHOP, check=True,
    )  # fmt: skip
    page = SHOP / "page.html"
    page.write_text(PAGE)
    return page


def draw(recording: dict[str, Any], folder: Path) -> list[Path]:
    """Draw every dashboard of a recording."""
    address = bundle().as_uri()
    drawn = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=need("chromium"), args=["--no-sandbox"]
        )
        for name, entries in recording.items():
            page = browser.new_page()
            page.on("pageerror", lambda error: print(error))
            page.goto(address)
            known = json.loads((ROOT / "deploy" / "grafana" / f"{name}.json").read_text())
            rows = [{"panel": each, "series": []} for each in known["panels"] if _is_row(each)]
            page.evaluate(
                "([entries, title]) => window.draw(entries, title)",
                [entries + rows, known["title"]],
            )
            width, height = page.evaluate("window.size")
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(SETTLE_MILLISECONDS)
            drawn.append(folder / f"grafana-{name}.png")
            page.screenshot(path=drawn[-1])
        browser.close()
    return drawn


def _is_row(panel: dict[str, Any]) -> bool:
    return bool(panel["type"] == "row")


def main() -> None:
    """Record, or take a recording, and draw it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--recording", type=Path, help="by python -m tests.deploy.recording")
    options = parser.parse_args()
    if options.recording is not None:
        recording = json.loads(options.recording.read_text())
    else:
        recording = record(options.seconds)
    for path in draw(recording, options.folder):
        print(path)


if __name__ == "__main__":
    main()
