"""Attacks on the front door, replayed against a real server: what it takes in, and for how long.

    python -m tests.chaos.front_door            # hundreds of MiB, thousands of connections
    python -m tests.chaos.front_door --small    # as the tests run it

Each attack is a line: bytes that the server took in before it hung up, seconds until it did, what
it answered, the workers' largest memory meanwhile, and how many questions of an honest caller
were answered beside it.
"""

import argparse
import contextlib
import http.client
import json
import selectors
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests.end_to_end.servers import Server, serving
from tests.waiting import join

MIB = 2**20
QUESTION = json.dumps({"recommender": "films", "client": "ada", "context": [0.2, 0.8]}).encode()
GIVE_UP_SECONDS = 300.0


@dataclass
class Outcome:
    """What became of an attack; `statuses` are those of the attacker's connections."""

    attack: str
    connections: int
    taken_bytes: int = 0
    seconds: float = 0.0
    statuses: dict[str, int] = field(default_factory=dict)
    memory_before: int = 0
    memory_most: int = 0
    served_beside: int = 0
    refused_beside: int = 0

    @property
    def grown(self) -> int:
        """Bytes by which the largest worker grew."""
        return self.memory_most - self.memory_before


def memory(server: Server) -> int:
    """Return the resident bytes of the largest worker."""
    sizes = [0]
    for pid in server.workers:
        with contextlib.suppress(FileNotFoundError):
            sizes.append(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096)
    return max(sizes)


class Watch:
    """Looks at memory, and asks honest questions, while an attack goes on."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._over = threading.Event()
        self._served = threading.Event()
        self._threads = [
            threading.Thread(target=one, name=one.__name__, daemon=True)
            for one in (self._look, self._ask)
        ]
        self.most = 0
        self.answers: Counter[bool] = Counter()

    def __enter__(self) -> "Watch":
        for thread in self._threads:
            thread.start()
        # Its connection is there before the attack: whoever is in is not pushed out.
        self._served.wait(GIVE_UP_SECONDS)
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        join(*self._threads)

    def _look(self) -> None:
        while True:
            self.most = max(self.most, memory(self._server))
            if self._over.wait(0.05):
                return

    def _ask(self) -> None:
        where = urlsplit(self._server.url)
        caller = http.client.HTTPConnection(where.hostname or "", where.port, timeout=120)
        headers = {"Authorization": f"Bearer {self._server.key}"}
        while True:
            try:
                caller.request("POST", "/recommend", QUESTION, headers)
                answer = caller.getresponse()
                answer.read()
                self.answers[answer.status == 200] += 1
                self._served.set()
            except (OSError, http.client.HTTPException):
                self.answers[False] += 1
                caller.close()
            if self._over.wait(0.1):
                caller.close()
                return


@dataclass
class Attacker:
    """One connection: what it sends next, and what has come back."""

    socket: socket.socket
    pieces: Iterator[bytes]
    pause: float = 0.0
    due: float = 0.0
    left: bytes = b""
    taken: int = 0
    answer: bytes = b""

    def send(self) -> bool:
        """Send what fits; tell whether there is more to come."""
        if not self.left:
            self.left = next(self.pieces, b"")
            if not self.left:
                return False
        try:
            sent = self.socket.send(self.left)
        except BlockingIOError:
            return True
        self.taken += sent
        self.left = self.left[sent:]
        if not self.left:
            self.due = time.monotonic() + self.pause
        return True


def attack(
    server: Server,
    name: str,
    connections: int,
    pieces: Callable[[], Iterator[bytes]],
    *,
    pause: float = 0.0,
) -> Outcome:
    """Send the pieces over so many connections at once, until the server has closed them all."""
    where = urlsplit(server.url)
    outcome = Outcome(name, connections, memory_before=memory(server))
    statuses: Counter[str] = Counter()
    with Watch(server) as watch, selectors.DefaultSelector() as selector:
        began = time.monotonic()
        attackers = []
        for _ in range(connections):
            made = socket.create_connection((where.hostname or "", where.port or 80))
            made.setblocking(False)
            one = Attacker(made, pieces(), pause)
            attackers.append(one)
            selector.register(made, selectors.EVENT_READ | selectors.EVENT_WRITE, one)
        while selector.get_map() and time.monotonic() < began + GIVE_UP_SECONDS:
            now = time.monotonic()
            for one in attackers:
                waits = one.socket.fileno() >= 0 and one.pause and one.due <= now
                if waits and selector.get_key(one.socket).events == selectors.EVENT_READ:
                    events = selectors.EVENT_READ | selectors.EVENT_WRITE
                    selector.modify(one.socket, events, one)
            for key, events in selector.select(0.1):
                if not _turn(selector, key.data, events):
                    selector.unregister(key.fileobj)
                    statuses[key.data.answer[9:12].decode() or "none"] += 1
                    key.data.socket.close()
        outcome.seconds = time.monotonic() - began
        for key in list(selector.get_map().values()):
            statuses["never closed"] += 1
            key.data.socket.close()
    outcome.taken_bytes = sum(one.taken for one in attackers)
    outcome.statuses = dict(statuses)
    outcome.memory_most = watch.most
    outcome.served_beside, outcome.refused_beside = watch.answers[True], watch.answers[False]
    return outcome


def _turn(selector: selectors.BaseSelector, one: Attacker, events: int) -> bool:
    """Read and write what can be; tell whether the connection is still there."""
    try:
        if events & selectors.EVENT_READ:
            data = one.socket.recv(65_536)
            one.answer += data
            if not data:
                return False
        if events & selectors.EVENT_WRITE:
            more = one.send()
            if not more or (one.pause and not one.left):
                selector.modify(one.socket, selectors.EVENT_READ, one)
                one.due = one.due if more else float("inf")
    except ConnectionError:
        return False
    return True


def repeated(start: bytes, piece: bytes, size: int) -> Iterator[bytes]:
    """Yield a beginning, and then the same piece until there were so many bytes."""
    yield start
    for _ in range(size // len(piece)):
        yield piece


def attacks(server: Server, *, small: bool) -> Iterator[Outcome]:
    """Yield the outcome of every attack."""
    key = f"Authorization: Bearer {server.key}\r\n".encode()
    line = b"POST /recommend HTTP/1.1\r\nHost: x\r\n"
    chunked = line + key + b"Transfer-Encoding: chunked\r\n\r\n"
    size, many, crowd = (64 * MIB, 2, 60) if small else (200 * MIB, 6, 6_000)
    headers = b"".join(b"x%d: %b\r\n" % (place, b"a" * 1000) for place in range(60))
    yield attack(server, "headers", 1, lambda: repeated(line, headers, size))
    yield attack(server, "one endless header", 1, lambda: repeated(line, b"a" * 65_536, size))
    yield attack(server, "headers, several", many, lambda: repeated(line, headers, size // 2))
    yield attack(server, "headers byte by byte", 1, lambda: repeated(line + b"x: ", b"a", 40_000))
    end = b"%x\r\n%b\r\n0\r\n" % (len(QUESTION), QUESTION)
    yield attack(server, "trailers", many, lambda: repeated(chunked + end, headers, size // 2))
    endless = b"%x\r\n%b\r\n" % (65_536, b" " * 65_536)
    yield attack(server, "endless body", many, lambda: repeated(chunked, endless, size // 2))
    announced = line + b"Content-Length: 8000000\r\n\r\n"
    yield attack(
        server, "body without a key", many, lambda: repeated(announced, b" " * 65_536, 8_000_000)
    )
    yield attack(server, "silence", crowd, lambda: iter(()))
    slow = line + key + b"Content-Length: %d\r\n\r\n" % len(QUESTION)
    yield attack(
        server, "slow bodies", crowd // 6, lambda: iter([slow, *([b" "] * 1_000)]), pause=1.0
    )
    yield attack(
        server, "slow headers", crowd // 6, lambda: iter([line, *([b"x"] * 1_000)]), pause=1.0
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay every attack against a server of our own, and print the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true")
    args = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder), DISCREET_BUSY_SECONDS="0.1") as server,
    ):
        server.put("films")
        for outcome in attacks(server, small=args.small):
            print(json.dumps(asdict(outcome) | {"grown": outcome.grown}), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
