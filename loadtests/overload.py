"""What a server does with far more than it can do: latencies by status, over many connections.

    python loadtests/overload.py --url http://127.0.0.1:8000 --key-file .discreet/demo-key \
        --recommender films --dimensions 2 --connections 500 --seconds 10
    python loadtests/overload.py --against HEAD~1 --rounds 3

The second form starts this version and the one of a commit, with two workers each, and measures
them turn by turn.

Every connection asks again as soon as it has its answer, also after a 429 (`--polite` waits for as
long as Retry-After says). So the number of connections decides how much more is asked for than can
be answered. Latency is from sending a request to the arrival of its whole answer at this machine,
by the kernel's clock: how long it lay here before this process came round to it, with thousands of
others, says nothing about the server. One process with epoll takes about 20 us of CPU for a
request, which has to come from the same machine: compare runs on one machine with each other.
"""

import argparse
import heapq
import json
import random
import re
import select
import socket
import struct
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import stage

from discreet.state.embedded import EmbeddedStore

chance = random.Random(1)  # noqa: S311  what is asked; it protects nothing
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)\r\n")
_RETRY = re.compile(rb"(?i)\r\nretry-after: *(\d+)\r\n")


_TIMESTAMPS = 35
"""Linux' SO_TIMESTAMPNS: when what is read came in."""
_TIMESTAMP = struct.Struct("@ll")


class Caller:
    """One connection, with at most one request under way; moments are seconds since 1970."""

    __slots__ = ("arrived", "buffer", "sent", "socket")

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.SOL_SOCKET, _TIMESTAMPS, 1)
        self.socket.setblocking(False)
        self.buffer = b""
        self.sent = 0.0
        self.arrived = 0.0

    def ask(self, request: bytes) -> None:
        """Send a request, whose time starts now."""
        self.sent = time.time()
        self.socket.send(request)

    def answer(self) -> bytes | None:
        """Return a whole answer if there is one; raise `ConnectionError` if there will be none."""
        try:
            data, notes, _, _ = self.socket.recvmsg(65_536, 64)
        except BlockingIOError:
            return None
        self.arrived = time.time()
        for _, kind, content in notes:
            if kind == _TIMESTAMPS:
                seconds, nanoseconds = _TIMESTAMP.unpack(content)
                self.arrived = seconds + nanoseconds / 1e9
        if not data:
            raise ConnectionError
        self.buffer += data
        head, separator, body = self.buffer.partition(b"\r\n\r\n")
        if not separator:
            return None
        found = _LENGTH.search(head + b"\r\n")
        if len(body) < (int(found[1]) if found else 0):
            return None
        whole, self.buffer = self.buffer, b""
        return whole


def measure(
    address: tuple[str, int],
    requests: list[bytes],
    *,
    connections: int,
    seconds: float,
    warm_up: float = 1.0,
    polite: bool = False,
) -> dict[str, list[float]]:
    """Return the latencies by status; `lost` are connections that were closed on us."""
    callers = {}
    poll = select.epoll()
    for _ in range(connections):
        caller = Caller(address)
        callers[caller.socket.fileno()] = caller
        poll.register(caller.socket.fileno(), select.EPOLLIN)
    began = time.time() + warm_up
    latencies: dict[str, list[float]] = {}
    later: list[tuple[float, int]] = []
    for caller in callers.values():
        caller.ask(chance.choice(requests))
    while (now := time.time()) < began + seconds and callers:
        while later and later[0][0] <= now:
            callers[heapq.heappop(later)[1]].ask(chance.choice(requests))
        for number, _ in poll.poll(0.01):
            caller = callers[number]
            try:
                answer = caller.answer()
            except ConnectionError:
                poll.unregister(number)
                del callers[number]
                latencies.setdefault("lost", []).append(time.time() - caller.sent)
                continue
            if answer is None:
                continue
            if caller.sent >= began:
                status = answer[9:12].decode()
                latencies.setdefault(status, []).append(caller.arrived - caller.sent)
            wait = _RETRY.search(answer) if polite else None
            if wait:
                heapq.heappush(later, (time.time() + int(wait[1]), number))
            else:
                caller.ask(chance.choice(requests))
    for caller in callers.values():
        caller.socket.close()
    return latencies


def percentile(values: list[float], share: float) -> float:
    """Return the value that this share of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main() -> None:
    """Measure once, and print a line for every status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--key-file", type=Path)
    parser.add_argument("--recommender", default="bench")
    parser.add_argument("--dimensions", type=int, default=2)
    parser.add_argument("--connections", type=int, nargs="+", default=[500, 2_000, 4_000])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--polite", action="store_true", help="wait as Retry-After says")
    parser.add_argument("--against", metavar="COMMIT", help="compare with this version")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each, with --against")
    args = parser.parse_args()
    if args.against is not None:
        _compare(args)
        return
    if args.key_file is None:
        parser.error("give --key-file, or --against")
    key = args.key_file.read_text().strip()
    for connections in args.connections:
        _show(f"{connections:6} connections", args, _measured(args, args.url, key, connections))


def _measured(
    args: argparse.Namespace, url: str, key: str, connections: int
) -> dict[str, list[float]]:
    where = urlsplit(url)
    return measure(
        (where.hostname or "127.0.0.1", where.port or 80),
        [_request(key, args.recommender, args.dimensions) for _ in range(1_000)],
        connections=connections,
        seconds=args.seconds,
        polite=args.polite,
    )


def _show(name: str, args: argparse.Namespace, latencies: dict[str, list[float]]) -> None:
    for status, values in sorted(latencies.items()):
        half, most = percentile(values, 0.5) * 1e3, percentile(values, 0.99) * 1e3
        print(
            f"{name}  {status}: {len(values) / args.seconds:8.0f} a second"
            f"  half within {half:7.1f} ms  99% within {most:7.1f} ms",
            flush=True,
        )


def _compare(args: argparse.Namespace) -> None:
    """Measure this version and another one, turn by turn, over one store."""
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedStore(folder) as store,
        stage.other_version(args.against) as source,
        stage.discreet(store, workers=2) as ours,
        stage.discreet(store, workers=2, source=source) as other,
    ):
        for connections in args.connections:
            for turn in range(args.rounds):
                pair = [("this version", ours), (args.against, other)]
                for name, target in pair[:: 1 if turn % 2 else -1]:
                    before = target.cpu_seconds()
                    found = _measured(args, target.url, stage.KEY, connections)
                    _show(f"{connections:6} connections  {name:>12}", args, found)
                    cost = (target.cpu_seconds() - before) / max(len(found.get("200", ())), 1)
                    print(f"{'':34} {cost * 1e6:.0f} us of CPU for an answer", flush=True)


def _request(key: str, recommender: str, dimensions: int) -> bytes:
    question = {
        "recommender": recommender,
        "client": f"c{chance.randrange(10**6)}",
        "context": [round(chance.random(), 3) for _ in range(dimensions)],
    }
    body = json.dumps(question).encode()
    head = f"POST /recommend HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


if __name__ == "__main__":
    main()
