"""`discreet hub` as a program: its address, its files, and what it refuses to start with."""

import json
import stat
from pathlib import Path

import httpx
import pytest

from discreet.cli import main
from discreet.commands.hub import redirect_to
from discreet.families.collaborative.document import CollaborativeDocument
from discreet.hub.catalogue import parse
from discreet.hub.guard import SECRET_HEADER
from tests.hub.living import program


def test_it_serves_and_stops(tmp_path: Path) -> None:
    with program("--demo", "--data", str(tmp_path / "data")) as (hub, process):
        state = httpx.get(f"{hub.url}/api/state", headers={SECRET_HEADER: hub.secret}).json()
        assert state["catalogue"]["items"] == 360
        assert state["server"] is None
        assert httpx.get(f"{hub.url}/api/state").status_code == 403
    assert process.returncode == 0
    kept = tmp_path / "data" / "hub.sqlite"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert [path.name for path in kept.parent.iterdir()] == ["hub.sqlite"]


def test_it_is_bound_to_loopback_and_a_taken_port_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with program("--demo", "--data", str(tmp_path)) as (hub, _):
        port = hub.url.rsplit(":", 1)[1]
        assert main(["hub", "--demo", "--data", str(tmp_path), "--port", port]) == 2
    assert f"--port: {port} cannot be used" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--server: is missing"),
        (["--server", "https://x.example"], "--recommender: is missing"),
        (["--server", "https://x.example", "--recommender", "films"], "--key-file: is missing"),
        (["--demo", "--catalogue", "x"], "--catalogue: cannot be given with --demo"),
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
    # Every field is one that a recommender has.
    assert CollaborativeDocument.model_validate(document).privacy.answers == "on-device"


def test_the_link_opens_the_page() -> None:
    page = "http://127.0.0.1:1/#secret=a&b"
    assert 'url=http://127.0.0.1:1/#secret=a&amp;b"' in redirect_to(page)
