"""`discreet serve --demo`, really running, for tests that need all of it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.ports import free_port
from tests.waiting import PATIENCE, PATIENT, wait_until_ready

DISCREET = str(Path(sys.executable).parent / "discreet")


@dataclass(frozen=True)
class Demo:
    """A running demo: where it is, its key, its data directory and its process."""

    url: str
    key: str
    data: Path
    process: subprocess.Popen[bytes]

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def call(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        """Return the answer's JSON (or text); any status but 2xx fails the test."""
        answer = httpx.request(
            method,
            self.url + path,
            json=body,
            headers={"Authorization": f"Bearer {key or self.key}"},
            timeout=120,
            verify=False,  # there is no TLS here, and reading the authorities takes a while
        )
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        is_json = "json" in answer.headers.get("content-type", "")
        return answer.json() if is_json and answer.content else answer.text

    def samples(self, recommender: str) -> dict[tuple[str, str], float]:
        """Return a recommender's series from /metrics by (name, outcome or share)."""
        return {
            (sample.name, sample.labels.get("outcome") or sample.labels.get("share", "")): (
                sample.value
            )
            for family in text_string_to_metric_families(self.call("GET", "/metrics"))
            for sample in family.samples
            if sample.labels.get("recommender") == recommender
        }


@contextmanager
def demo_server(
    folder: Path, *arguments: str, port: int = 0, program: Sequence[str] = (DISCREET,)
) -> Iterator[Demo]:
    """Start the demo with its data in `folder`, and stop it in the end."""
    port = port or free_port()
    command: Sequence[str] = (
        *program, "serve", "--demo", "--port", str(port), "--data", str(folder), *arguments,
    )  # fmt: skip
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DISCREET_")}
    environment |= PATIENT
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_ready(process, f"{url}/health/ready", folder / "log")
        key = (folder / "demo-key").read_text().strip()
        yield Demo(url=url, key=key, data=folder, process=process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(PATIENCE)
            raise


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A demo for one module."""
    with demo_server(tmp_path_factory.mktemp("demo")) as running:
        yield running
