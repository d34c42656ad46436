"""`discreet serve --demo`: the banner, the key, and what a newcomer does next."""

import re
import signal
import stat
import subprocess
from pathlib import Path

import httpx

from tests.end_to_end.servers import DISCREET, environment
from tests.ports import free_port
from tests.state.servers import valkey
from tests.waiting import PATIENCE, wait_until_ready


class Demo:
    """A demo that is started and stopped several times over the same data."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.log = folder / "log"

    def run(self, **variables: str) -> tuple[int, str, httpx.Response]:
        """Start, ask once with the key in the file, stop; return code, banner and answer."""
        port = free_port()
        with self.log.open("wb") as out:
            process = subprocess.Popen(
                [DISCREET, "serve", "--demo", "--port", str(port), "--data", str(self.data)],
                stdout=out,
                stderr=out,
                env=environment(**variables),
            )
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_ready(process, f"{url}/health/ready", self.log)
            key = (self.data / "demo-key").read_text().strip()
            answer = httpx.post(
                f"{url}/recommend",
                headers={"Authorization": f"Bearer {key}"},
                json={"recommender": "films", "client": "me", "context": [0.1, 0.9]},
                timeout=120,
            )
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(PATIENCE)
        banner = "".join(
            line for line in self.log.read_text().splitlines(True) if not line.startswith("{")
        )
        return code, banner.replace(str(port), "PORT"), answer


def test_the_demo_prints_its_key_once_and_keeps_it_in_a_private_file(tmp_path: Path) -> None:
    demo = Demo(tmp_path)
    code, banner, answer = demo.run()
    assert (code, answer.status_code) == (0, 200)
    file = demo.data / "demo-key"
    key = file.read_text().strip()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert f"http://127.0.0.1:PORT/#key={key}\n" in banner
    assert f"key   {key}   (shown once; kept in {file})" in banner
    assert "http://127.0.0.1:PORT/docs\n" in banner

    code, again, answer = demo.run()
    assert (code, answer.status_code) == (0, 200)
    assert "dk_" not in again
    assert str(file) in again
    privacy = answer.json()["privacy"]
    assert privacy["spent"]["epsilon"] == 2 * privacy["epsilon"], "the ledger was kept"

    file.unlink()
    _, renewed, answer = demo.run()
    assert answer.status_code == 200
    assert file.read_text().strip() != key
    assert len(re.findall(r"dk_[\w-]{43}", renewed)) == 2

    _, given, answer = demo.run(DISCREET_API_KEY="my-own-key-for-the-demo")
    assert answer.status_code == 200
    assert file.read_text() == "my-own-key-for-the-demo\n"
    assert "my-own-key-for-the-demo" not in given


def test_the_short_way_can_be_left_out(tmp_path: Path) -> None:
    """What answers is the same either way; the benchmark compares what it costs."""
    for http in ("direct", "uvicorn"):
        (tmp_path / http).mkdir()
        code, _, answer = Demo(tmp_path / http).run(DISCREET_HTTP=http)
        assert (code, answer.status_code) == (0, 200)
        assert set(answer.json()) == {
            "recommendation_id",
            "items",
            "personalised",
            "privacy",
            "expires_at",
        }


def sentence(ended: subprocess.CompletedProcess[str]) -> str:
    """Return what a command said when it ended; the lines before it are the log's."""
    assert "Traceback" not in ended.stdout + ended.stderr
    *logged, said = ended.stderr.splitlines()
    assert all(line.startswith("{") for line in logged)
    assert said.startswith("discreet: ")
    return said


def test_a_store_that_cannot_be_used_is_said_in_one_line(tmp_path: Path) -> None:
    with valkey(tmp_path / "store", maxmemory_policy="allkeys-lru") as store:
        command = [DISCREET, "serve", "--port", "0", "--store", store.url, "--data", str(tmp_path)]
        refused = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=environment(),
            check=False,
        )
    assert refused.returncode == 2
    assert "maxmemory-policy" in sentence(refused)


def test_a_store_of_another_schema_is_said_in_one_line(tmp_path: Path) -> None:
    with valkey(tmp_path / "store") as store:
        keys = subprocess.run(
            [DISCREET, "keys", "list", "--store", store.url, "--init"],
            capture_output=True,
            timeout=PATIENCE,
            env=environment(),
            check=True,
        )
        assert keys.stdout == b""
        (key,) = store.client.scan_iter("*schema*")
        store.client.set(key, b"999")
        command = [DISCREET, "serve", "--port", "0", "--store", store.url, "--data", str(tmp_path)]
        refused = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=environment(),
            check=False,
        )
    assert refused.returncode == 2
    assert "of schema 999" in sentence(refused)
