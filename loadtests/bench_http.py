"""Requests a second of /recommend and /feedback, beside a plain FastAPI + redis-py endpoint.

    python loadtests/bench_http.py [--seconds 5] [--rounds 3] [--json]

Both run with one worker, on the same kind of server (gunicorn, uvicorn, uvloop, httptools), on
one embedded Valkey that syncs every write to disk, and take turns, so that a noisy machine is
noisy for both. Load comes from wrk if it is installed, else from this program. Besides requests a
second, which depend on what else the machine does, it prints the worker's CPU time per request.
"""

import argparse
import asyncio
import json
import os
import platform
import re
import secrets
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from service.state.embedded import EmbeddedStore

HERE = Path(__file__).resolve().parent
DISCREET = str(Path(sys.executable).parent / "discreet")
CONNECTIONS = 32
KEY = secrets.token_urlsafe(24)
ITEMS = [f"item-{number}" for number in range(20)]


@dataclass(frozen=True)
class Target:
    """A server under test."""

    name: str
    url: str
    worker: int
    """The worker's process id, for its CPU time."""


@dataclass(frozen=True)
class Sample:
    """One turn."""

    requests_per_second: float
    cpu_microseconds: float


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def process(command: Sequence[str], **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(  # noqa: S603  our own commands
        command,
        env={**os.environ, **environment},
        cwd=HERE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        try:
            yield running
        finally:
            running.send_signal(signal.SIGTERM)


def wait_for(url: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            httpx.get(url, timeout=1)
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"nothing answers at {url}")


def only_child(pid: int) -> int:
    """Return the worker of a gunicorn master: its only child that is no keeper of a store."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    workers = [
        int(child)
        for child in children
        if b"keeper" not in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
    assert len(workers) == 1, workers
    return workers[0]


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def discreet(store: str) -> Iterator[Target]:
    port = free_port()
    command = [
        DISCREET, "serve", "--port", str(port), "--workers", "1", "--store", store,
    ]  # fmt: skip
    with process(command, DISCREET_API_KEY=KEY) as running:
        url = f"http://127.0.0.1:{port}"
        wait_for(f"{url}/health/live")
        document = {
            "algorithm": "p-dap",
            "items": ITEMS,
            "context": {"dimensions": 2},
            "privacy": {"epsilon": 1.0, "budget": {"epsilon": 1e6}},
        }
        answer = httpx.put(f"{url}/recommenders/bench", json=document, headers=headers())
        answer.raise_for_status()
        yield Target("discreet", url, only_child(running.pid))


@contextmanager
def plain(store: str) -> Iterator[Target]:
    port = free_port()
    command = [
        sys.executable, "-W", "ignore", "-m", "gunicorn", "plain_endpoint:app",
        "--worker-class", "uvicorn.workers.UvicornWorker", "--workers", "1",
        "--bind", f"127.0.0.1:{port}", "--no-control-socket", "--log-level", "error",
    ]  # fmt: skip
    with process(command, PLAIN_STORE=store, PLAIN_KEY=KEY) as running:
        url = f"http://127.0.0.1:{port}"
        wait_for(f"{url}/docs")
        yield Target("plain", url, only_child(running.pid))


def headers() -> dict[str, str]:
    return {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}


def recommend_bodies(count: int) -> list[str]:
    return [
        json.dumps(
            {
                "recommender": "bench",
                "client": f"client-{number}",
                "context": [round(number * 0.617 % 1, 4), round(number * 0.377 % 1, 4)],
            }
        )
        for number in range(count)
    ]


def feedback_bodies(target: Target, count: int) -> list[str]:
    """Return feedback that was never given before."""
    if target.name == "plain":
        ids = [secrets.token_urlsafe(90) for _ in range(count)]
    else:
        ids = []
        bodies = recommend_bodies(count)
        for start in range(0, count, 1_000):
            chunk = ",".join(bodies[start : start + 1_000])
            answer = httpx.post(
                f"{target.url}/recommend/batch",
                content=f'{{"requests":[{chunk}]}}',
                headers=headers(),
                timeout=60,
            )
            ids += [one["recommendation_id"] for one in answer.json()["results"]]
    return [
        json.dumps({"recommendation_id": each, "reward": number % 2})
        for number, each in enumerate(ids)
    ]


WRK_SCRIPT = """
local bodies = {}
for line in io.lines(os.getenv("BENCH_BODIES")) do bodies[#bodies + 1] = line end
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer " .. os.getenv("BENCH_KEY")
local turn = 0
request = function()
  turn = turn % #bodies + 1
  return wrk.format(nil, nil, nil, bodies[turn])
end
"""


def drive_with_wrk(url: str, bodies: Sequence[str], seconds: float) -> tuple[int, float]:
    """Return how many requests were answered, and in how many seconds."""
    with tempfile.TemporaryDirectory() as folder:
        script, lines = Path(folder) / "post.lua", Path(folder) / "bodies"
        script.write_text(WRK_SCRIPT)
        lines.write_text("\n".join(bodies) + "\n")
        command = [shutil.which("wrk") or "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds:g}s"]
        command += ["-s", str(script), url]
        found = subprocess.run(  # noqa: S603
            command,
            env={**os.environ, "BENCH_BODIES": str(lines), "BENCH_KEY": KEY},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    if "Non-2xx" in found or "Socket errors" in found:
        raise SystemExit(found)
    count = re.search(r"(\d+) requests in", found)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", found)
    assert count is not None, found
    assert rate is not None, found
    return int(count[1]), int(count[1]) / float(rate[1])


def drive_ourselves(url: str, bodies: Sequence[str], seconds: float) -> tuple[int, float]:
    """Do what wrk does, with asyncio: keep every connection busy with one request at a time."""
    return asyncio.run(_drive(url, bodies, seconds))


async def _drive(url: str, bodies: Sequence[str], seconds: float) -> tuple[int, float]:
    host, port = url.split("/")[2].split(":")
    path = "/" + url.split("/", 3)[3]
    began = time.perf_counter()
    answered = 0

    async def connection(offset: int) -> None:
        nonlocal answered
        reader, writer = await asyncio.open_connection(host, int(port))
        turn = offset
        while time.perf_counter() - began < seconds:
            body = bodies[turn % len(bodies)].encode()
            turn += CONNECTIONS
            writer.write(
                f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
                f"Authorization: Bearer {KEY}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in head.split(b"\r\n", 1)[0]:
                raise SystemExit(head.decode())
            length = re.search(rb"content-length: (\d+)", head.lower())
            assert length is not None
            await reader.readexactly(int(length[1]))
            answered += 1
        writer.close()

    await asyncio.gather(*(connection(offset) for offset in range(CONNECTIONS)))
    return answered, time.perf_counter() - began


def measure(target: Target, path: str, bodies: Sequence[str], seconds: float) -> Sample:
    drive = drive_with_wrk if shutil.which("wrk") else drive_ourselves
    before = cpu_seconds(target.worker)
    count, elapsed = drive(f"{target.url}{path}", bodies, seconds)
    used = cpu_seconds(target.worker) - before
    return Sample(count / elapsed, 1e6 * used / count)


def machine() -> dict[str, Any]:
    model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return {
        "cpu": model[1] if model else platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": "wrk" if shutil.which("wrk") else "asyncio",
        "connections": CONNECTIONS,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each turn (%(default)g)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each (%(default)d)")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    samples: dict[tuple[str, str], list[Sample]] = {}
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        store = stack.enter_context(EmbeddedStore(folder))
        targets = [stack.enter_context(discreet(store)), stack.enter_context(plain(store))]
        for path in ("/recommend", "/feedback"):
            for _ in range(args.rounds):
                for target in targets:
                    most = int(12_000 * args.seconds)
                    bodies = (
                        recommend_bodies(most)
                        if path == "/recommend"
                        else feedback_bodies(target, most)
                    )
                    sample = measure(target, path, bodies, args.seconds)
                    samples.setdefault((path, target.name), []).append(sample)
    report(samples, as_json=args.json)
    return 0


def report(samples: dict[tuple[str, str], list[Sample]], *, as_json: bool) -> None:
    figures: dict[str, Any] = {"machine": machine()}
    for path in ("/recommend", "/feedback"):
        ours, theirs = samples[path, "discreet"], samples[path, "plain"]
        rate = [
            statistics.median(one.requests_per_second for one in each) for each in (ours, theirs)
        ]
        cost = [statistics.median(one.cpu_microseconds for one in each) for each in (ours, theirs)]
        figures[path] = {
            "discreet_requests_per_second": round(rate[0]),
            "plain_requests_per_second": round(rate[1]),
            "ratio": round(rate[0] / rate[1], 2),
            "discreet_cpu_microseconds": round(cost[0]),
            "plain_cpu_microseconds": round(cost[1]),
            "cpu_ratio": round(cost[1] / cost[0], 2),
        }
    if as_json:
        print(json.dumps(figures, indent=2))
        return
    print(", ".join(f"{name} {value}" for name, value in figures["machine"].items()))
    for path in ("/recommend", "/feedback"):
        row = figures[path]
        print(
            f"{path:11} discreet {row['discreet_requests_per_second']:6} /s "
            f"({row['discreet_cpu_microseconds']} us CPU)   "
            f"plain {row['plain_requests_per_second']:6} /s "
            f"({row['plain_cpu_microseconds']} us CPU)   "
            f"ratio {row['ratio']} (CPU {row['cpu_ratio']})"
        )


if __name__ == "__main__":
    sys.exit(main())
