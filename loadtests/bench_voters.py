"""What p-REC takes: importing votes, answering, memory, and what a client leaves in the store.

    python loadtests/bench_voters.py [--voters 100000] [--rounds 30] [--objects 10]
    python loadtests/bench_voters.py --voters 1000000 --rounds 3

Starts `discreet serve` with one worker on an embedded store that syncs every write, imports a vote
of every voter in every round, in requests of 50,000, and lets clients go through the rounds twice:
first with votes that have to be read, then new clients with votes that the worker remembers. CPU
is the worker's own, user and system, per recommendation and its feedback. Prints one JSON object.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import redis

from discreet.state.embedded import EmbeddedStore

DISCREET = str(Path(sys.executable).parent / "discreet")
KEY = "bench-voters-and-long-enough"
CHUNK = 50_000


def main() -> None:
    """Serve, import, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--voters", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--objects", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
        probe.close()
        command = [DISCREET, "serve", "--port", str(port), "--data", folder, "--workers", "1"]
        calm = {"DISCREET_API_KEY": KEY, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        with subprocess.Popen(  # noqa: S603  our own command
            command,
            env={**os.environ, **calm},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as server:
            try:
                found = measured(f"http://127.0.0.1:{port}", server.pid, folder, args)
            finally:
                server.send_signal(signal.SIGTERM)
                server.wait()
    print(json.dumps(found, indent=2))


def measured(url: str, server: int, folder: str, args: argparse.Namespace) -> dict[str, Any]:
    """Return what everything took."""
    with httpx.Client(
        base_url=url, headers={"Authorization": f"Bearer {KEY}"}, timeout=120
    ) as client:
        _wait(client)
        keeper, worker = sorted(
            _children(server), key=lambda pid: "discreet.state.keeper" not in _command(pid)
        )
        (store,) = _children(keeper)
        _make(client, args)
        imported = _import(client, worker, store, args)
        cold = _go_through(client, worker, "cold", args)
        warm = _go_through(client, worker, "warm", args)
        return {
            "voters": args.voters,
            "objects": args.objects,
            "rounds": args.rounds,
            "import": imported,
            "answers_with_votes_to_be_read": cold,
            "answers_with_votes_remembered": warm,
            "worker_resident_mb": round(_resident(worker) / 2**20),
            "history_bytes_per_round": round(_history_bytes(folder, args.voters) / args.rounds, 2),
        }


def _make(client: httpx.Client, args: argparse.Namespace) -> None:
    document = {
        "algorithm": "p-rec",
        "objects": args.objects,
        "horizon": 1000,
        "peers": args.voters // 4,
        "voters": args.voters,
        "privacy": {"budget": {"epsilon": 1000.0, "delta": 1e-6}},
    }
    _checked(client.put("/recommenders/bench", json=document))
    for number in range(args.rounds):
        objects = [f"object {number}-{place}" for place in range(args.objects)]
        body = {"id": f"round {number}", "objects": objects}
        _checked(client.post("/recommenders/bench/rounds", json=body))


def _import(
    client: httpx.Client, worker: int, store: int, args: argparse.Namespace
) -> dict[str, Any]:
    rng = np.random.default_rng(args.seed)
    # A third of the voters agree with the client, who likes every round's first object.
    agree = args.voters // 3
    bodies = []
    for number in range(args.rounds):
        places = rng.integers(0, args.objects, args.voters)
        places[:agree] = 0
        for start in range(0, args.voters, CHUNK):
            votes = {
                f"v{voter}": f"object {number}-{places[voter]}"
                for voter in range(start, min(start + CHUNK, args.voters))
            }
            bodies.append(json.dumps({"round": f"round {number}", "votes": votes}).encode())
    before, before_store, began = _cpu(worker), _cpu(store), time.monotonic()
    slowest = 0.0
    for body in bodies:
        started = time.monotonic()
        _checked(client.post("/recommenders/bench/votes", content=body))
        slowest = max(slowest, time.monotonic() - started)
    seconds = time.monotonic() - began
    votes_cast = args.voters * args.rounds
    return {
        "votes": votes_cast,
        "seconds": round(seconds, 2),
        "seconds_per_million_votes": round(seconds / votes_cast * 1e6, 2),
        "worker_cpu_seconds": round(_cpu(worker) - before, 2),
        "store_cpu_seconds": round(_cpu(store) - before_store, 2),
        "slowest_request_seconds": round(slowest, 2),
    }


def _go_through(
    client: httpx.Client, worker: int, who: str, args: argparse.Namespace
) -> dict[str, Any]:
    counted = liked = 0
    before, began = _cpu(worker), time.monotonic()
    for number in range(args.rounds):
        body = {"recommender": "bench", "client": who, "round": f"round {number}"}
        answer = _checked(client.post("/recommend", json=body)).json()
        counted += answer["personalised"]
        likes = answer["items"][0]["id"].endswith("-0")
        liked += likes
        feedback = {"recommendation_id": answer["recommendation_id"], "reward": float(likes)}
        _checked(client.post("/feedback", json=feedback))
    return {
        "with_votes": counted,
        "liked": liked,
        "worker_cpu_ms": round((_cpu(worker) - before) / args.rounds * 1e3, 2),
        "wall_ms": round((time.monotonic() - began) / args.rounds * 1e3, 2),
    }


def _history_bytes(folder: str, voters: int) -> int:
    """Return what the longest history takes of the store's memory, its key included.

    The only other pages are those of votes, and they are longer: a byte for each voter.
    """
    with redis.from_url(EmbeddedStore(folder).url) as store:
        pages = [key for key in store.scan_iter("discreet:p:*") if store.strlen(key) < voters]
        return max(int(store.memory_usage(key, samples=0) or 0) for key in pages)


def _checked(answer: httpx.Response) -> httpx.Response:
    if answer.is_error:
        raise SystemExit(f"{answer.request.url.path}: {answer.text}")
    return answer


def _wait(client: httpx.Client) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        try:
            if client.get("/health/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise SystemExit("the server does not answer")


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def _cpu(pid: int) -> float:
    """Return the CPU time of all threads, in seconds, to the nanosecond."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def _resident(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"process {pid} tells nothing about its memory")


if __name__ == "__main__":
    main()
