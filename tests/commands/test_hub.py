"""`discreet hub` as a program: its address, its files, and what it refuses to start with."""

import json
import ssl
import stat
import subprocess
from importlib.resources import files
from pathlib import Path

import httpx
import pytest

from discreet.cli import main
from discreet.commands.hub import redirect_to
from discreet.families.collaborative.document import CollaborativeDocument
from discreet.hub.catalogue import parse
from discreet.hub.guard import SECRET_HEADER
from tests.hub.living import program
from tests.waiting import PATIENCE


def test_it_serves_and_stops(tmp_path: Path) -> None:
    with program("--demo", "--data", str(tmp_path / "data")) as (hub, process):
        address = f"{hub.url}/api/services/recommendations/state"
        state = httpx.get(address, headers={SECRET_HEADER: hub.secret}, timeout=120).json()
        assert state["catalogue"]["items"] == 360
        assert state["server"] is None
        assert httpx.get(address, timeout=120).status_code == 403
    assert process.returncode == 0
    kept = sorted((tmp_path / "data").iterdir())
    assert [path.name for path in kept] == [
        "hub.sqlite",
        "push.key",
        "service-recommendations.sqlite",
    ]
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}


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
        (["--recommender", "films"], "--server: is missing, and --recommender"),
        (["--code", "abcd"], "--server: is missing, and --code"),
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


PLAIN = """
name: books
adapter: plain
catalogue: {url: "http://127.0.0.1:1/items"}
profile: {url: "http://127.0.0.1:1/people/{client}"}
recommendations: {url: "http://127.0.0.1:1/people/{client}/suggestions"}
"""


def test_several_services_and_a_place_to_push_to(tmp_path: Path) -> None:
    (tmp_path / "books.yaml").write_text(PLAIN)
    data = tmp_path / "data"
    given = ("--demo", "--service", str(tmp_path / "books.yaml"), "--data", str(data))
    with program(*given) as (hub, _):
        headers = {SECRET_HEADER: hub.secret}
        listed = httpx.get(f"{hub.url}/api/services", headers=headers).json()
        assert [each["name"] for each in listed["services"]] == ["recommendations", "books"]
        first = json.loads((files("discreet.hub") / "demo.json").read_text("utf-8"))["items"][0]
        key = (data / "push.key").read_text().strip()
        pushed = httpx.post(
            f"{hub.url}/push",
            json={"titles": [first["title"], "Nobody's"]},
            headers={"Authorization": f"Bearer {key}"},
        )
        assert pushed.json() == {"received": 2}
        state = httpx.get(f"{hub.url}/api/services/recommendations/state", headers=headers).json()
        assert state["history"] == 1


def test_other_devices_push_over_tls_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["hub", "--demo", "--data", str(tmp_path), "--no-browser", "--push-host", "0.0.0.0"]
    assert main([*arguments, "--port", "0"]) == 2
    assert "--push-certificate" in capsys.readouterr().err


def test_a_second_server_takes_titles_from_other_devices(tmp_path: Path) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-keyout", "key",
         "-out", "crt", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
        cwd=tmp_path, check=True, capture_output=True, timeout=PATIENCE,
    )  # fmt: skip
    data = tmp_path / "data"
    options = ("--push-host", "127.0.0.1", "--push-port", "0")
    tls = ("--push-certificate", f"{tmp_path}/crt", "--push-certificate-key", f"{tmp_path}/key")
    with program("--demo", "--data", str(data), *options, *tls) as (hub, process):
        assert process.stdout is not None
        address = hub.said("for other devices")
        key = (data / "push.key").read_text().strip()
        trusted = ssl.create_default_context(cafile=str(tmp_path / "crt"))
        with httpx.Client(verify=trusted, headers={"Authorization": f"Bearer {key}"}) as device:
            assert device.post(f"{address}/push", json={"titles": ["x"]}).status_code == 200
            # The page and its routes are not there, with whatever key.
            assert device.get(f"{address}/").status_code == 404
            listed = device.get(f"{address}/api/services", headers={SECRET_HEADER: hub.secret})
            assert listed.status_code == 404


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
