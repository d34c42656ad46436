"""`discreet serve`, really running: several workers, a real store, a real socket."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx

from discreet.cli import main
from tests.ports import free_port
from tests.waiting import PATIENCE, PATIENT, wait_for, wait_until_ready

DISCREET = str(Path(sys.executable).parent / "discreet")
MAIN = "import sys; from discreet.cli import main; sys.exit(main())"
"""The same program for `python -c`, wherever the package lies."""
KEEPER = "discreet.state.keeper"
KEY = "key-for-end-to-end-tests"
CALL_SECONDS = 120.0
"""How long a call may take: less than a test, and more than a busy machine needs."""


def document(**changes: Any) -> dict[str, Any]:
    """A small recommender."""
    return {
        "algorithm": "p-dap",
        "items": ["a", "b", "c", "d"],
        "context": {"dimensions": 2},
        "privacy": private(),
        **changes,
    }


def private(
    epsilon: float = 1.0, budget: float = 1_000.0, delta: float = 1e-6, **changes: Any
) -> dict[str, Any]:
    """Return a privacy document with so much for answers."""
    answers = {"epsilon": epsilon, "budget": {"epsilon": budget, "delta": delta}}
    return {"answers": answers, **changes}


@dataclass
class Server:
    """A running server, its output so far, and how to call it."""

    process: subprocess.Popen[bytes]
    url: str
    data: Path
    log: Path
    key: str = KEY
    client: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {self.key}"},
            timeout=CALL_SECONDS,
            verify=False,  # there is no TLS here, and reading the authorities takes a while
        )

    @property
    def output(self) -> str:
        return self.log.read_text()

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The log's JSON lines; the banner is not one of them."""
        return [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]

    @property
    def workers(self) -> list[int]:
        found = {pid: command_of(pid) for pid in children(self.process.pid)}
        return [pid for pid, command in found.items() if command and KEEPER not in command]

    @property
    def keeper(self) -> int:
        """The process that looks after the embedded store."""
        (keeper,) = [pid for pid in children(self.process.pid) if KEEPER in command_of(pid)]
        return keeper

    @property
    def valkey(self) -> int:
        """The embedded store's process: the keeper's only child."""
        (server,) = children(self.keeper)
        return server

    def put(self, name: str, **changes: Any) -> None:
        """Create a recommender; a test with an impatient server may have to try again."""

        def done() -> bool:
            answer = self.client.put(f"/recommenders/{name}", json=document(**changes))
            assert answer.is_success or answer.status_code == 503, answer.text
            return answer.is_success

        wait_for(f"the recommender {name}", done)

    def budget(self, recommender: str, client: str) -> float:
        """Return the epsilon that a client has spent on answers."""
        path, which = f"/clients/{client}/budget", {"recommender": recommender}

        def read() -> httpx.Response | None:
            answer = self.client.get(path, params=which)
            assert answer.status_code in (200, 503), answer.text
            return answer if answer.status_code == 200 else None

        found = wait_for("a budget", read)
        assert found is not None
        return float(found.json()["answers"]["spent"]["epsilon"])

    def wait_until_ready(self) -> None:
        wait_until_ready(self.process, f"{self.url}/health/ready", self.log)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop gracefully; return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE)


def model_key(generation: bytes) -> bytes:
    """Return the name under which the store keeps a recommender's released model."""
    return blake2b(generation, digest_size=16, person=b"model").digest()


def children(pid: int) -> list[int]:
    """Return the processes that any thread of a process started."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that has just ended
            found += map(int, (thread / "children").read_text().split())
    return found


def command_of(pid: int) -> str:
    """Return what a process was started as; of one that has ended there is nothing."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""


def environment(**changes: str) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("DISCREET_")}
    return {**ours, **changes}


def command(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command that does not serve, here: a process of its own takes a second to load."""
    output, complaints = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, environment(**PATIENT | variables), clear=True),
        redirect_stdout(output),
        redirect_stderr(complaints),
    ):
        code = main(words)
    return subprocess.CompletedProcess(words, code, output.getvalue(), complaints.getvalue())


def new_key(data: Path, label: str, scope: str = "peer") -> str:
    """Have an instance, running or not, issue a key."""
    data.mkdir(exist_ok=True)
    made = command("keys", "create", "--scope", scope, "--label", label, "--data", str(data))
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@contextmanager
def serving(
    data: Path,
    *options: str,
    key: str = KEY,
    port: int | None = None,
    program: Sequence[str] = (DISCREET,),
    **variables: str,
) -> Iterator[Server]:
    """Start a server with two workers and stop it in the end."""
    port = port or free_port()
    data.mkdir(exist_ok=True)
    log = data / "output.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*program, "serve", "--port", str(port), "--data", str(data), "--workers", "2",
             *options],
            stdout=output,
            stderr=output,
            # A store by URL is new to this server; `DISCREET_INIT=""` is for those that are not.
            env=environment(
                **{"DISCREET_API_KEY": key, "DISCREET_INIT": "true"} | PATIENT | variables
            ),
            start_new_session=True,
        )  # fmt: skip
    server = Server(process, f"http://127.0.0.1:{port}", data, log, key)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.client.close()
        try:
            server.stop()
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(PATIENCE)
            raise
