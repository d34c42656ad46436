"""Servers to be measured, each in processes of its own, over one Valkey that syncs every write."""

import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx

from discreet_client import Client, ProblemError

HERE = Path(__file__).resolve().parent
DISCREET = str(Path(sys.executable).parent / "discreet")
SERVE_WITH = HERE / "serve_with.py"
OUR_CLIENT = "ours"
PATIENCE = 600.0
"""Seconds after which what has to happen never will, however busy the machine is."""
KEY = secrets.token_urlsafe(24)
HEADERS = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
_MAIN = "import sys; from discreet.cli import main; sys.exit(main())"
_CALM = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Nobody's arithmetic may take the other core away from the load and the store."""


@dataclass(frozen=True)
class Target:
    """A server under test; `workers` are process ids, for their CPU time and memory."""

    name: str
    url: str
    workers: tuple[int, ...]

    def cpu_seconds(self) -> float:
        """Return the CPU time of all workers so far."""
        return sum(map(cpu_seconds, self.workers))

    def resident_bytes(self) -> int:
        """Return the memory of the largest worker."""
        return max(map(_resident_bytes, self.workers))

    def put(self, name: str, document: Mapping[str, Any]) -> None:
        """Create a recommender, or change it."""
        with Client(self.url, KEY, timeout=60) as server:
            try:
                server.call("PUT", f"/recommenders/{name}", document)
            except ProblemError as problem:
                raise SystemExit(f"{name} was refused: {problem.detail}") from None

    def sample(self, series: str, recommender: str) -> float:
        """Return a recommender's last value of a series; 0 if there is none yet."""
        text = httpx.get(f"{self.url}/metrics", headers=HEADERS, timeout=30).text
        found = re.search(rf'^{series}{{recommender="{recommender}"}} (\S+)$', text, re.MULTILINE)
        return float(found[1]) if found else 0.0


PLENTY = {"epsilon": 1e6, "delta": 1e-3}
"""A budget that does not run out."""
PRIVATE = {
    "answers": {"epsilon": 1.0, "budget": PLENTY},
    "feedback": {"epsilon": 1.0, "budget": PLENTY},
}
"""Both dials as they are by default, with budgets that do not run out."""


def document(items: int = 20, dimensions: int = 2, **changes: Any) -> dict[str, Any]:
    """Return the recommender that most measurements ask: 20 items, budgets that do not run out."""
    return {
        "algorithm": "p-dap",
        "items": [f"item-{number}" for number in range(items)],
        "context": {"dimensions": dimensions},
        "privacy": PRIVATE,
        **changes,
    }


@contextmanager
def discreet(
    store: str,
    *,
    workers: int = 1,
    client: str = OUR_CLIENT,
    http: str = "direct",
    source: Path | None = None,
) -> Iterator[Target]:
    """Serve Discreet with a recommender called bench: as it is shipped by default.

    `client` is what speaks to the store (`serve_with.py`). `http` is "direct", or "uvicorn" without
    the short way for requests. Whoever differs has the store's keys for itself. `source` is a
    folder with another version of the package.
    """
    port = free_port()
    program = [DISCREET] if client == OUR_CLIENT else [sys.executable, str(SERVE_WITH), client]
    if source is not None:
        program = [sys.executable, "-P", "-c", _MAIN]
    command = [*program, "serve", "--port", str(port), "--workers", str(workers)]
    settings = {
        "DISCREET_API_KEY": KEY,
        "DISCREET_STORE": store,
        "DISCREET_HTTP": http,
        "DISCREET_NAMESPACE": f"bench-{client}-{http}-{'ours' if source is None else 'other'}",
        "DISCREET_INIT": "true",
        # All callers are on this machine, and the kernel does not divide them evenly.
        "DISCREET_MOST_CONNECTIONS_BY_ADDRESS": "4096",
    } | ({} if source is None else {"PYTHONPATH": str(source)})
    with (
        # The next run's store is another one, and not what a mark of this one says.
        tempfile.TemporaryDirectory() as data,
        running_process(command, DISCREET_DATA_DIR=data, **settings) as running,
    ):
        url = f"http://127.0.0.1:{port}"
        wait_for_url(f"{url}/health/ready")
        target = Target("discreet", url, children(running.pid, workers))
        target.put("bench", document())
        yield target


@contextmanager
def other_version(commit: str) -> Iterator[Path]:
    """Give a folder with the package as it was at a commit, for `discreet(source=...)`."""
    with tempfile.TemporaryDirectory() as folder:
        archived = subprocess.run(  # noqa: S603  our own commit
            ["git", "archive", commit, "service"],  # noqa: S607
            cwd=HERE.parent,
            check=True,
            capture_output=True,
        ).stdout
        with tarfile.open(fileobj=BytesIO(archived)) as files:
            files.extractall(folder, filter="data")
        yield Path(folder) / "service"


@contextmanager
def gunicorn(module: str, store: str, *, workers: int = 1) -> Iterator[Target]:
    """Serve a FastAPI module beside this file, as its authors would: gunicorn and uvicorn."""
    port = free_port()
    command = [
        sys.executable, "-W", "ignore", "-m", "gunicorn", f"{module}:app",
        "--worker-class", "uvicorn.workers.UvicornWorker", "--workers", str(workers),
        "--bind", f"127.0.0.1:{port}", "--no-control-socket", "--log-level", "error",
    ]  # fmt: skip
    with running_process(command, BENCH_STORE=store, BENCH_KEY=KEY) as running:
        url = f"http://127.0.0.1:{port}"
        wait_for_url(f"{url}/openapi.json")
        yield Target(module, url, children(running.pid, workers))


@contextmanager
def running_process(
    command: Sequence[str], **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(  # noqa: S603  our own commands
        command,
        env={**os.environ, **_CALM, **environment},
        cwd=HERE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        try:
            yield running
        finally:
            running.send_signal(signal.SIGTERM)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_url(url: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            if httpx.get(url, timeout=2).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise SystemExit(f"nothing answers at {url}")


def children(pid: int, workers: int) -> tuple[int, ...]:
    """Return the workers of a gunicorn master: its children that are no keeper of a store."""
    deadline = time.monotonic() + PATIENCE
    while True:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        found = [int(one) for one in listed if b"keeper" not in _command_line(int(one))]
        if len(found) == workers:
            return tuple(found)
        if time.monotonic() > deadline:
            raise SystemExit(f"{workers} workers were to be started, and {len(found)} are there")
        time.sleep(0.1)


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b"keeper"  # it has gone already, and was no worker


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0
