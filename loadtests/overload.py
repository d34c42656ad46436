"""What a server does with far more than it can do: latencies by status, over many connections.

    python loadtests/overload.py --url http://127.0.0.1:8000 --key-file .discreet/demo-key \
        --recommender films --dimensions 2 --connections 500 --seconds 10

Every connection asks again as soon as it has its answer, also after a 429 (`--polite` waits for as
long as Retry-After says). So the number of connections decides how much more is asked for than can
be answered. Latency is from sending a request to having its whole answer. One process with epoll
takes about 20 us of CPU for a request, which has to come from the same machine: compare runs on one
machine with each other.
"""

import argparse
import heapq
import json
import random
import re
import select
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

chance = random.Random(1)  # noqa: S311  what is asked; it protects nothing
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)\r\n")
_RETRY = re.compile(rb"(?i)\r\nretry-after: *(\d+)\r\n")


class Caller:
    """One connection, with at most one request under way."""

    __slots__ = ("buffer", "sent", "socket")

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setblocking(False)
        self.buffer = b""
        self.sent = 0.0

    def ask(self, request: bytes) -> None:
        """Send a request, whose time starts now."""
        self.sent = time.perf_counter()
        self.socket.send(request)

    def answer(self) -> bytes | None:
        """Return a whole answer if there is one; raise `ConnectionError` if there will be none."""
        try:
            data = self.socket.recv(65_536)
        except BlockingIOError:
            return None
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
    began = time.perf_counter() + warm_up
    latencies: dict[str, list[float]] = {}
    later: list[tuple[float, int]] = []
    for caller in callers.values():
        caller.ask(chance.choice(requests))
    while (now := time.perf_counter()) < began + seconds and callers:
        while later and later[0][0] <= now:
            callers[heapq.heappop(later)[1]].ask(chance.choice(requests))
        for number, _ in poll.poll(0.01):
            caller = callers[number]
            try:
                answer = caller.answer()
            except ConnectionError:
                poll.unregister(number)
                del callers[number]
                latencies.setdefault("lost", []).append(time.perf_counter() - caller.sent)
                continue
            if answer is None:
                continue
            moment = time.perf_counter()
            if caller.sent >= began:
                status = answer[9:12].decode()
                latencies.setdefault(status, []).append(moment - caller.sent)
            wait = _RETRY.search(answer) if polite else None
            if wait:
                heapq.heappush(later, (moment + int(wait[1]), number))
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
    parser.add_argument("--key-file", type=Path, required=True)
    parser.add_argument("--recommender", required=True)
    parser.add_argument("--dimensions", type=int, default=2)
    parser.add_argument("--connections", type=int, nargs="+", default=[500, 2_000, 4_000])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--polite", action="store_true", help="wait as Retry-After says")
    args = parser.parse_args()
    where = urlsplit(args.url)
    address = (where.hostname or "127.0.0.1", where.port or 80)
    key = args.key_file.read_text().strip()
    requests = [_request(key, args.recommender, args.dimensions) for _ in range(1_000)]
    for connections in args.connections:
        latencies = measure(
            address,
            requests,
            connections=connections,
            seconds=args.seconds,
            polite=args.polite,
        )
        for status, values in sorted(latencies.items()):
            half, most = percentile(values, 0.5) * 1e3, percentile(values, 0.99) * 1e3
            print(
                f"{connections:6} connections  {status}: {len(values) / args.seconds:8.0f} a second"
                f"  half within {half:7.1f} ms  99% within {most:7.1f} ms",
                flush=True,
            )


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
