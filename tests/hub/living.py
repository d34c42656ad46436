"""A hub that really runs: in a thread of this process, or as the program that users start."""

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvicorn

from discreet.commands.hub import listen
from discreet.hub.app import create_app
from discreet.hub.hub import Hub
from discreet.hub.services import HubServices
from tests.waiting import PATIENCE, join, wait_for

DISCREET = str(Path(sys.executable).parent / "discreet")
SECRET = "secret-of-this-start"
PUSH_KEY = "hp_key-of-this-test"


@dataclass(frozen=True)
class Living:
    """Where the page is, and the secret that opens it."""

    url: str
    secret: str
    output: tuple[str, ...] = ()

    def said(self, words: str) -> str:
        """Return the address in the line of its output that has these words, without a path."""
        (line,) = (line for line in self.output if words in line)
        found = re.search(r"https?://[\w.:]+", line)
        assert found is not None
        return found[0]

    @property
    def page(self) -> str:
        return f"{self.url}/#secret={self.secret}"


@contextmanager
def living(*hubs: Hub, folder: Path) -> Iterator[Living]:
    """Serve the hubs of one person from a thread, at a free port."""
    with listen(0) as listener:
        port = listener.getsockname()[1]
        app = create_app(
            HubServices.of(hubs), folder=folder, port=port, secret=SECRET, push_key=PUSH_KEY
        )
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            wait_for("the hub to start", lambda: server.started, pause=0.01)
            yield Living(f"http://127.0.0.1:{port}", SECRET)
        finally:
            server.should_exit = True
            join(thread)


@contextmanager
def program(*arguments: str) -> Iterator[tuple[Living, "subprocess.Popen[str]"]]:
    """Start `discreet hub` at a free port, and stop it in the end."""
    process = subprocess.Popen(
        [DISCREET, "hub", "--port", "0", "--no-browser", *arguments],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("  push     http://"):
                break
        found = re.search(r"(http://127\.0\.0\.1:\d+)/#secret=(\S+)", "".join(lines))
        if found is None:
            pytest.fail("the hub ended without an address")
        yield Living(found[1], found[2], tuple(lines)), process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
        process.stdout.close()
