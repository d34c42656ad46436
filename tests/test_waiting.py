"""Waiting ends with the first result, and in vain with a sentence."""

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import TCPServer
from threading import Event, Thread

import pytest

from tests.house import ROOT
from tests.ports import free_port
from tests.waiting import PATIENCE, answers, join, wait_for, wait_until_ready


def test_the_first_result_ends_the_waiting() -> None:
    results = iter([0, None, "", 7, 8])
    assert wait_for("a number", lambda: next(results), pause=0) == 7


def test_what_never_happens_is_named() -> None:
    with pytest.raises(AssertionError, match="waited in vain: the impossible"):
        wait_for("the impossible", lambda: False, pause=0, patience=0)


def test_waiting_ends_before_the_test_does() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["tool"]["pytest"]["ini_options"]["timeout"] > 2 * PATIENCE


def test_whoever_does_not_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.waiting.PATIENCE", 0.01)
    over = Event()
    ends = Thread(target=int, name="first", daemon=True)
    hangs = Thread(target=over.wait, name="second", daemon=True)
    ends.start()
    ends.join(PATIENCE)
    hangs.start()
    try:
        with pytest.raises(AssertionError, match=r"waited in vain: the end of second$"):
            join(ends, hangs)
    finally:
        over.set()
        hangs.join(PATIENCE)


class Statuses(BaseHTTPRequestHandler):
    """Answers with the status that the path names."""

    def do_GET(self) -> None:
        self.send_response(int(self.path[1:]))
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def listening() -> Iterator[str]:
    port = free_port()
    with TCPServer(("127.0.0.1", port), Statuses) as server:
        serving = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        serving.start()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.shutdown()
            join(serving)


def test_only_200_counts_as_an_answer() -> None:
    with listening() as url:
        assert answers(f"{url}/200")
        assert not answers(f"{url}/503")
    assert not answers(f"{url}/200"), "nobody listens any more"


def test_a_program_that_ended_is_not_waited_for(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("a reason")
    url = f"http://127.0.0.1:{free_port()}/200"
    with (
        subprocess.Popen([sys.executable, "-S", "-c", "raise SystemExit(3)"]) as ended,
        pytest.raises(AssertionError, match="ended with 3\na reason"),
    ):
        wait_until_ready(ended, url, log)
