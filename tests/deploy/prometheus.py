"""A real Prometheus that scrapes real instances and evaluates our rules."""

import json
import math
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.deploy.queries import RULES
from tests.end_to_end.servers import Server
from tests.ports import free_port
from tests.requirements import need
from tests.waiting import PATIENCE, wait_until_ready


@dataclass(frozen=True)
class Prometheus:
    """Where it is, and what it knows."""

    url: str

    def ask(self, expr: str, *, at: float | None = None) -> list[dict[str, Any]]:
        """Return the samples that a query finds; NaN is nothing."""
        parameters = {"query": expr} | ({} if at is None else {"time": f"{at:.3f}"})
        return [
            sample
            for sample in self._get("/api/v1/query", parameters)["result"]
            if not math.isnan(float(sample["value"][1]))
        ]

    def ask_range(self, expr: str, *, start: float, end: float, step: float) -> list[Any]:
        """Return the series that a query finds over a time."""
        parameters = {"query": expr, "start": f"{start}", "end": f"{end}", "step": f"{step}"}
        found: list[Any] = self._get("/api/v1/query_range", parameters)["result"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        """Return the rules as they stand."""
        groups = self._get("/api/v1/rules", {})["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def _get(self, path: str, parameters: dict[str, str]) -> Any:
        # There is no TLS here, and reading the authorities takes a while.
        answer = httpx.get(self.url + path, params=parameters, timeout=120, verify=False)
        found = answer.json()
        assert found["status"] == "success", f"{parameters}: {json.dumps(found)}"
        return found["data"]


@contextmanager
def scraping(folder: Path, servers: list[Server], *, seconds: int = 1) -> Iterator[Prometheus]:
    """Scrape these servers, each with its own key, as a Prometheus in a cluster would."""
    port = free_port()
    every = f"{seconds}s"
    configuration = {
        "global": {"scrape_interval": every, "evaluation_interval": every},
        "rule_files": [str(RULES)],
        "scrape_configs": [
            {
                "job_name": f"discreet-{number}",
                "authorization": {"credentials": server.key},
                "static_configs": [{"targets": [server.url.removeprefix("http://")]}],
            }
            for number, server in enumerate(servers)
        ],
    }
    folder.mkdir(exist_ok=True)
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [need("prometheus"), "--config.file", folder / "prometheus.yml",
             "--storage.tsdb.path", folder / "data", "--web.listen-address", f"127.0.0.1:{port}"],
            stdout=log, stderr=log,
        )  # fmt: skip
    found = Prometheus(f"http://127.0.0.1:{port}")
    try:
        wait_until_ready(process, f"{found.url}/-/ready", folder / "log")
        yield found
    finally:
        process.terminate()
        process.wait(PATIENCE)
