"""Load: as much as fits through 32 connections (wrk), or a constant rate of arrivals (k6).

wrk is a closed loop: each connection asks again once it was answered. That measures throughput;
its latencies flatter whoever is slow, because a slow server is asked less often. Latencies are
therefore measured with k6, which sends at the rate it was told, whatever comes back.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
from stage import HEADERS, HERE, KEY, Target

CONNECTIONS = 32
ARRIVALS = HERE / "arrivals.js"


@dataclass(frozen=True)
class Sample:
    """One turn: throughput, and the CPU time of the workers for each request."""

    requests_per_second: float
    cpu_microseconds: float


@dataclass(frozen=True)
class Latency:
    """What callers waited, at a constant rate of arrivals."""

    rate: float
    p50_ms: float
    p99_ms: float
    failed: float


def recommend_bodies(
    count: int,
    *,
    start: int = 0,
    clients: int = 20_000,
    dimensions: int = 2,
    name: str = "bench",
) -> list[str]:
    """Return questions by many clients from all over the context space, the `start`-th and on."""
    return [
        json.dumps(
            {
                "recommender": name,
                "client": f"client-{number % clients}",
                "context": [
                    round((number * 0.6180339887 + 0.377 * place) % 1, 4)
                    for place in range(dimensions)
                ],
            }
        )
        for number in range(start, start + count)
    ]


def feedback_bodies(target: Target, count: int) -> list[str]:
    """Return feedback on answers that were really given, each for the first time."""
    ids: list[str] = []
    if target.name == "floor":
        # The floor looks at no id; what it is sent has the length of ours.
        ids = [os.urandom(75).hex() for _ in range(count)]
    elif target.name == "discreet":
        bodies = recommend_bodies(count)
        for start in range(0, count, 1_000):
            chunk = ",".join(bodies[start : start + 1_000])
            answer = httpx.post(
                f"{target.url}/recommend/batch",
                content=f'{{"requests":[{chunk}]}}',
                headers=HEADERS,
                timeout=120,
            )
            answer.raise_for_status()
            ids += [one["recommendation_id"] for one in answer.json()["results"]]
    else:
        ids = asyncio.run(_answered(target, recommend_bodies(count)))
    return [
        json.dumps({"recommendation_id": each, "reward": number % 2})
        for number, each in enumerate(ids)
    ]


async def _answered(target: Target, bodies: Sequence[str]) -> list[str]:
    """Ask one by one, where there are no batches."""
    ids: list[str] = []
    limits = httpx.Limits(max_connections=CONNECTIONS)
    async with httpx.AsyncClient(headers=HEADERS, limits=limits, timeout=60) as client:
        remaining = iter(bodies)

        async def ask() -> None:
            for body in remaining:
                answer = await client.post(f"{target.url}/recommend", content=body)
                answer.raise_for_status()
                ids.append(answer.json()["recommendation_id"])

        await asyncio.gather(*(ask() for _ in range(CONNECTIONS)))
    return ids


WRK = """
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


def throughput(target: Target, path: str, bodies: Sequence[str], seconds: float) -> Sample:
    """Ask as fast as 32 connections can."""
    wrk = shutil.which("wrk")
    if wrk is None:
        raise SystemExit("wrk is needed: apt-get install wrk, or brew install wrk")
    with tempfile.TemporaryDirectory() as folder:
        script, lines = Path(folder) / "post.lua", Path(folder) / "bodies"
        script.write_text(WRK)
        lines.write_text("\n".join(bodies) + "\n")
        before = target.cpu_seconds()
        found = subprocess.run(  # noqa: S603
            [wrk, "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s", "-s", str(script),
             f"{target.url}{path}"],
            env={**os.environ, "BENCH_BODIES": str(lines), "BENCH_KEY": KEY},
            capture_output=True,
            text=True,
            check=True,
        ).stdout  # fmt: skip
        used = target.cpu_seconds() - before
    if "Non-2xx" in found or "Socket errors" in found:
        raise SystemExit(f"{target.name} {path}: {found}")
    count = re.search(r"(\d+) requests in", found)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", found)
    if count is None or rate is None:
        raise SystemExit(found)
    return Sample(float(rate[1]), 1e6 * used / int(count[1]))


def latency(
    target: Target, path: str, bodies: Sequence[str], *, rate: int, seconds: float
) -> Latency:
    """Send `rate` requests a second, whatever comes back, and see how long each took."""
    k6 = shutil.which("k6", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if k6 is None:
        raise SystemExit("k6 is needed: `make bench` installs it")
    with tempfile.TemporaryDirectory() as folder:
        lines, out = Path(folder) / "bodies.json", Path(folder) / "summary.json"
        lines.write_text("[" + ",".join(json.dumps(body) for body in bodies) + "]")
        subprocess.run(  # noqa: S603
            [
                k6,
                "run",
                "--quiet",
                "--summary-export",
                str(out),
                str(Path(__file__).parent / "arrivals.js"),
            ],
            env={
                **os.environ,
                "BENCH_URL": f"{target.url}{path}",
                "BENCH_KEY": KEY,
                "BENCH_BODIES": str(lines),
                "BENCH_RATE": str(rate),
                "BENCH_SECONDS": f"{seconds:g}",
                "K6_NO_USAGE_REPORT": "true",
            },
            capture_output=True,
            check=True,
        )
        found = json.loads(out.read_text())["metrics"]
    waited, dropped = found["http_req_duration"], found.get("dropped_iterations", {"count": 0})
    return Latency(
        rate=found["http_reqs"]["rate"],
        p50_ms=waited["med"],
        p99_ms=waited["p(99)"],
        failed=found["http_req_failed"]["value"] + dropped["count"],
    )


def batch(target: Target, *, seconds: float, size: int = 1_000) -> float:
    """Return decisions a second when a caller sends batches of `size`, one after the other."""
    bodies = recommend_bodies(20 * size)
    contents = [
        '{"requests":[' + ",".join(bodies[start : start + size]) + "]}"
        for start in range(0, len(bodies), size)
    ]
    done, began = 0, time.perf_counter()
    with httpx.Client(headers=HEADERS, timeout=60) as client:
        while (elapsed := time.perf_counter() - began) < seconds:
            answer = client.post(
                f"{target.url}/recommend/batch", content=contents[done // size % len(contents)]
            )
            answer.raise_for_status()
            done += size
    return done / elapsed
