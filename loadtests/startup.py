"""How long the demo takes to be ready, and what its processes weigh.

    python loadtests/startup.py

Seconds on the clock mean something on an idle machine only; CPU seconds do on any.
"""

import os
import signal
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import httpx
import stage

from discreet_client import Client

TRIALS = 5
WORKERS = 2
_POLL_SECONDS = 0.01
_QUESTIONS = 100


@dataclass(frozen=True)
class ProcessMemory:
    """MiB of a process: resident, and resident with shared pages divided by their sharers."""

    resident: float
    proportional: float


@dataclass(frozen=True)
class StartUp:
    """A demo that was started, asked, and weighed; CPU seconds until it was ready."""

    seconds: float
    master_cpu_seconds: float
    worker_cpu_seconds: float
    master: ProcessMemory
    workers: tuple[ProcessMemory, ...]


def start(imports: Path | None = None) -> StartUp:
    """Start the demo on an empty store, ask it some questions, weigh it, stop it.

    `imports` names a file that Python lists every module in that any of its processes imports.
    """
    port = stage.free_port()
    command = [stage.DISCREET, "serve", "--demo", "--port", str(port), "--workers", str(WORKERS)]
    listing = {"PYTHONPROFILEIMPORTTIME": "1"} if imports else {}
    with tempfile.TemporaryDirectory() as data, open(imports or os.devnull, "wb") as errors:
        # An installed package is compiled, whatever is set where this is run.
        settings = {"DISCREET_DATA_DIR": data, "PYTHONDONTWRITEBYTECODE": "", **listing}
        began = time.perf_counter()
        running = subprocess.Popen(  # noqa: S603  our own command
            command, env={**os.environ, **settings}, stdout=subprocess.DEVNULL, stderr=errors
        )
        try:
            return _measured(running.pid, f"http://127.0.0.1:{port}", Path(data), began)
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait()


def _measured(pid: int, url: str, data: Path, began: float) -> StartUp:
    while not _is_ready(url):
        if time.perf_counter() - began > 120:
            raise SystemExit(f"nothing answers at {url}")
        time.sleep(_POLL_SECONDS)
    seconds = time.perf_counter() - began
    workers = stage.children(pid, WORKERS)
    cpu = [stage.cpu_seconds(each) for each in (pid, *workers)]
    with Client(url, (data / "demo-key").read_text().strip()) as server:
        for number in range(_QUESTIONS):
            answer = server.recommend("films", f"client-{number}", [0.3, 0.6])
            server.feedback(answer, reward=1.0)
    weighed = [_memory(each) for each in (pid, *workers)]
    return StartUp(seconds, cpu[0], max(cpu[1:]), weighed[0], tuple(weighed[1:]))


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/ready", timeout=5).is_success
    except httpx.TransportError:
        return False


def _memory(pid: int) -> ProcessMemory:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    kib = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return ProcessMemory(kib["Rss"] / 1024, kib["Pss"] / 1024)


def main() -> None:
    """Print a table of medians."""
    found = [start() for _ in range(TRIALS + 1)][1:]  # the first compiles and warms

    workers = [worker for each in found for worker in each.workers]
    rows = {
        "ready after, s": [each.seconds for each in found],
        "CPU of the master until then, s": [each.master_cpu_seconds for each in found],
        "CPU of a worker until then, s": [each.worker_cpu_seconds for each in found],
        "a worker, resident (RSS), MiB": [each.resident for each in workers],
        "a worker, shared pages divided (PSS), MiB": [each.proportional for each in workers],
        "the master, resident, MiB": [each.master.resident for each in found],
    }
    print(f"| `discreet serve --demo`, {WORKERS} workers | median | most |\n| --- | --- | --- |")
    for title, values in rows.items():
        print(f"| {title} | {statistics.median(values):.2f} | {max(values):.2f} |")


if __name__ == "__main__":
    main()
