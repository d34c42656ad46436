"""Load: as much as fits through 32 connections (wrk), or a constant rate of arrivals (k6).

The first is a closed loop: each connection asks again once it was answered. That measures
throughput; its latencies flatter whoever is slow, because a slow server is asked less often.
Latencies are therefore measured with k6, which sends at the given rate, whatever comes back.
Where there is no wrk, k6 closes the loop as well.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from callers import ask_in_batches, feedback_on, ids_of, over_connections
from stage import HERE, KEY, Target

CONNECTIONS = 32
ARRIVALS = HERE / "arrivals.js"

_STEPS = (0.7548776662, 0.5698402910)
"""1/g and 1/g^2 of the plastic number g: multiples of both, modulo 1, fill the square evenly."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Sample:
    """One turn: throughput, and the CPU time of the workers for each request."""

    requests_per_second: float
    cpu_microseconds: float
    requests: int
    repeated: int = 0
    """Feedback for the second time, because more was asked for than had been prepared."""


@dataclass(frozen=True)
class Latency:
    """What callers waited, at a constant rate of arrivals."""

    rate: float
    p50_ms: float
    p99_ms: float
    failed_share: float
    dropped: int
    """Arrivals that were not even sent, because too many before them were still unanswered."""


def recommend_bodies(
    count: int,
    *,
    start: int = 0,
    clients: int = 20_000,
    dimensions: int = 2,
    name: str = "bench",
) -> list[str]:
    """Return questions by many clients from all over the context space, the `start`-th and on."""
    steps = [_STEPS[place % 2] for place in range(dimensions)]
    return [
        json.dumps(
            {
                "recommender": name,
                "client": f"client-{number % clients}",
                "context": [
                    round((number * step + 0.377 * place) % 1, 4)
                    for place, step in enumerate(steps)
                ],
            }
        )
        for number in range(start, start + count)
    ]


def feedback_bodies(target: Target, count: int) -> list[str]:
    """Return feedback on answers that were really given, each for the first time."""
    if target.name == "floor":
        # The floor looks at no id; what it is sent has the length of ours.
        return feedback_on(os.urandom(75).hex() for _ in range(count))
    bodies = recommend_bodies(count)
    if target.name == "discreet":
        return feedback_on(ask_in_batches(target, bodies))
    answers = over_connections(
        target,
        bodies,
        lambda caller, body: caller.post("/recommend", body.encode()),
        connections=CONNECTIONS,
    )
    return feedback_on(each for answer in answers for each in ids_of(answer))


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
    before = target.cpu_seconds()
    if shutil.which("wrk"):
        count, rate = _by_wrk(target, path, bodies, seconds)
    else:
        found = _by_k6(target, path, bodies, BENCH_SECONDS=f"{max(1, round(seconds))}")
        if found["http_req_failed"]["value"]:
            raise SystemExit(f"{target.name} {path}: some requests failed")
        count, rate = int(found["http_reqs"]["count"]), found["http_reqs"]["rate"]
    return Sample(rate, 1e6 * (target.cpu_seconds() - before) / count, count)


def closed_loop_tool() -> str:
    """Say what measures throughput. k6 takes several times wrk's CPU, which all three then lack."""
    return "wrk" if shutil.which("wrk") else "k6 (wrk is not installed; it would cost less CPU)"


def _by_wrk(target: Target, path: str, bodies: Sequence[str], seconds: float) -> tuple[int, float]:
    """Return how many requests were answered, and how many a second."""
    with tempfile.TemporaryDirectory() as folder:
        script, lines = Path(folder) / "post.lua", Path(folder) / "bodies"
        script.write_text(WRK)
        lines.write_text("\n".join(bodies) + "\n")
        found = subprocess.run(  # noqa: S603
            ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s",  # noqa: S607
             "-s", str(script), f"{target.url}{path}"],
            env={**os.environ, "BENCH_BODIES": str(lines), "BENCH_KEY": KEY},
            capture_output=True,
            text=True,
            check=True,
        ).stdout  # fmt: skip
    # A timeout is a slow answer, which costs its service throughput; the rest is a fault.
    broken = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+)", found)
    if "Non-2xx" in found or (broken and any(map(int, broken.groups()))):
        raise SystemExit(f"{target.name} {path}: {found}")
    count = re.search(r"(\d+) requests in", found)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", found)
    if count is None or rate is None:
        raise SystemExit(found)
    return int(count[1]), float(rate[1])


def latency(
    target: Target, path: str, bodies: Sequence[str], *, rate: int, seconds: float
) -> Latency:
    """Send `rate` requests a second, whatever comes back, and see how long each took."""
    found = _by_k6(target, path, bodies, BENCH_RATE=str(rate), BENCH_SECONDS=f"{seconds:g}")
    waited, dropped = found["http_req_duration"], found.get("dropped_iterations", {"count": 0})
    return Latency(
        rate=found["http_reqs"]["rate"],
        p50_ms=waited["med"],
        p99_ms=waited["p(99)"],
        failed_share=found["http_req_failed"]["value"],
        dropped=int(dropped["count"]),
    )


def _by_k6(target: Target, path: str, bodies: Sequence[str], **options: str) -> dict[str, Any]:
    """Run `arrivals.js` and return its metrics."""
    k6 = shutil.which("k6", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if k6 is None:
        raise SystemExit("k6 is needed: `make bench` installs it")
    with tempfile.TemporaryDirectory() as folder:
        lines, out = Path(folder) / "bodies.json", Path(folder) / "summary.json"
        lines.write_text("[" + ",".join(json.dumps(body) for body in bodies) + "]")
        subprocess.run(  # noqa: S603
            [k6, "run", "--quiet", "--summary-export", str(out), str(ARRIVALS)],
            env={
                **os.environ,
                "BENCH_URL": f"{target.url}{path}",
                "BENCH_KEY": KEY,
                "BENCH_BODIES": str(lines),
                "BENCH_CONNECTIONS": str(CONNECTIONS),
                "K6_NO_USAGE_REPORT": "true",
                **options,
            },
            capture_output=True,
            check=True,
        )
        metrics: dict[str, Any] = json.loads(out.read_text())["metrics"]
    return metrics
