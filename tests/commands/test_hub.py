"""`discreet hub` as a program: its address, its files, and what it refuses to start with."""

import json
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from service.cli import main
from service.commands.hub import _leading_to
from service.hub.catalogue import parse
from service.hub.guard import SECRET_HEADER

DISCREET = str(Path(sys.executable).parent / "discreet")


@contextmanager
def running(*arguments: str) -> Iterator[tuple[str, str, subprocess.Popen[str]]]:
    """Start a hub at a free port; give its address, its secret and its process."""
    process = subprocess.Popen(
        [DISCREET, "hub", "--port", "0", "--no-browser", *arguments],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"(http://127\.0\.0\.1:\d+)/#secret=(\S+)", line):
                yield found[1], found[2], process
                break
        else:
            pytest.fail("the hub ended without an address")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


def test_it_serves_and_stops(tmp_path: Path) -> None:
    with running("--demo", "--data", str(tmp_path / "data")) as (url, secret, process):
        state = httpx.get(f"{url}/api/state", headers={SECRET_HEADER: secret}).json()
        assert state["catalogue"]["items"] == 360
        assert state["server"] is None
        assert httpx.get(f"{url}/api/state").status_code == 403
    assert process.returncode == 0
    kept = tmp_path / "data" / "hub.sqlite"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert [path.name for path in kept.parent.iterdir()] == ["hub.sqlite"]


def test_it_is_bound_to_loopback_and_a_taken_port_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running("--demo", "--data", str(tmp_path)) as (url, _, _process):
        port = url.rsplit(":", 1)[1]
        assert main(["hub", "--demo", "--data", str(tmp_path), "--port", port]) == 2
    assert f"--port: {port} cannot be used" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--server: is missing"),
        (["--server", "https://x.example"], "--recommender: is missing"),
        (["--server", "https://x.example", "--recommender", "films"], "--key-file: is missing"),
        (["--demo", "--catalogue", "x"], "--catalogue: cannot stand beside --demo"),
        (["--catalogue", "nowhere.json"], "--catalogue: cannot read"),
        (
            ["--server", "http://x.example", "--recommender", "f", "--key-file", "KEY"],
            "--server: must be https",
        ),
        (
            ["--server", "https://x.example", "--recommender", "f", "--key-file", "NOWHERE"],
            "--key-file: cannot read",
        ),
    ],
)
def test_what_it_refuses_to_start_with(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "KEY").write_text("dk_x\n")
    given = [str(tmp_path / each) if each.isupper() else each for each in arguments]
    assert main(["hub", *given, "--data", str(tmp_path / "data"), "--no-browser"]) == 2
    assert words in capsys.readouterr().err


def test_the_demos_document_is_a_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hub", "--demo-document"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["algorithm"] == "collaborative"
    assert len(parse(document).categories) == 10


def test_the_door_leads_to_the_page() -> None:
    page = "http://127.0.0.1:1/#secret=a&b"
    assert 'url=http://127.0.0.1:1/#secret=a&amp;b"' in _leading_to(page)
