"""A real browser, watched: whatever it complains about or asks elsewhere fails the test."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Error,
    Page,
    Request,
    expect,
    sync_playwright,
)

from tests.demo_server import Demo, demo  # noqa: F401 - a fixture
from tests.requirements import need

# A busy machine may take its time; whatever is expected may come late but has to come.
expect.set_options(timeout=60_000)


@dataclass
class Watched:
    """A tab, what it complained about, and every address it asked for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    expected: tuple[str, ...] = ()
    """Parts of complaints that the test provokes on purpose."""

    def watch(self) -> None:
        self.page.on("console", self._console)
        self.page.on("pageerror", self._error)
        self.page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _error(self, error: Error) -> None:
        self.complaints.append(str(error))

    def _request(self, request: Request) -> None:
        self.requests.append(request.url)

    def verify(self, url: str, key: str) -> None:
        """Fail on complaints that were not provoked, other hosts, or a key in an address."""
        unexpected = [
            text for text in self.complaints if not any(part in text for part in self.expected)
        ]
        assert unexpected == []
        assert self.requests
        home = urlsplit(url).netloc
        assert {urlsplit(one).netloc for one in self.requests} == {home}
        # Fragments are not sent; anything before one is.
        assert not [one for one in self.requests if key in one.split("#")[0]]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One headless Chromium for a module.

    Its driver keeps an event loop running in this thread, so it must not outlive these tests.
    """
    path = need("chromium")
    with sync_playwright() as playwright:
        # The sandbox needs privileges that a container often withholds; we visit only ourselves.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def tab(browser: Browser, demo: Demo) -> Iterator[Watched]:  # noqa: F811
    """A fresh tab with nothing in its storage."""
    context = browser.new_context(viewport={"width": 1180, "height": 900})
    context.set_default_timeout(60_000)
    watched = Watched(context.new_page())
    watched.watch()
    yield watched
    context.close()
    watched.verify(demo.url, demo.key)
