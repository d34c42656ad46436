"""How long an admitted request waits for its worker, in the worker's own CPU time.

    python -m tests.chaos.waits --connections 250 1000 4000

One worker's front door on a socket, in this process, over a store in memory; the callers are
another process, and ask again as soon as they are answered. What is measured is the CPU time of
the worker's thread, from the turn of the event loop in which a request was read to its answer: it
is the same however busy the machine is with other things.
"""

import argparse
import asyncio
import gc
import resource
import subprocess
import sys
import time
from typing import Any

from discreet.connections import HttpLimits
from discreet.protocol import DirectExchange, DirectProtocol
from tests.front import fronting, post

MOST = 5_000
CALLERS = """
import select, socket, sys, time
port, connections, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
request, poll, sockets = sys.stdin.buffer.read(), select.epoll(), {}
for _ in range(connections):
    made = socket.create_connection(("127.0.0.1", port))
    made.setblocking(False)
    sockets[made.fileno()] = made
    poll.register(made.fileno(), select.EPOLLIN)
for each in sockets.values():
    each.send(request)
until = time.monotonic() + seconds
while time.monotonic() < until:
    for number, _ in poll.poll(0.05):
        if sockets[number].recv(65536):
            sockets[number].send(request)
"""


class Turn:
    """When the turn of the event loop began that is being read in, in CPU time of this thread."""

    def __init__(self) -> None:
        self._began: float | None = None

    def began(self) -> float:
        """Return it; the first who asks in a turn is read first."""
        if self._began is None:
            self._began = time.thread_time()
            asyncio.get_running_loop().call_soon(self._end)
        return self._began

    def _end(self) -> None:
        self._began = None


def watch(waits: list[float]) -> None:
    """Note the wait of every request that is admitted from now on."""
    turn, exchange_ = Turn(), DirectProtocol._exchange

    async def timed(self: Any, exchange: DirectExchange, began: float) -> None:
        await exchange_(self, exchange, began)
        waits.append(time.thread_time() - self.read_at)

    received = DirectProtocol.data_received

    def data_received(self: Any, data: bytes) -> None:
        self.read_at = turn.began()
        received(self, data)

    DirectProtocol._exchange = timed  # type: ignore[method-assign]
    DirectProtocol.data_received = data_received  # type: ignore[method-assign]


async def measure(connections: int, seconds: float, waits: list[float]) -> None:
    """Let so many callers ask for so long."""
    limits = HttpLimits(connections=MOST, connections_by_address=MOST)
    async with fronting(limits) as front:
        gc.collect()
        gc.freeze()  # as a worker does
        words = [str(front.port), str(connections), str(seconds)]
        callers = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CALLERS, *words, stdin=subprocess.PIPE
        )
        await callers.communicate(post())


def main() -> None:
    """Measure, and print a line for every number of connections."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--connections", type=int, nargs="+", default=[250, 1_000, 4_000])
    parser.add_argument("--seconds", type=float, default=10.0)
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * MOST, 2 * MOST))
    import uvloop

    waits: list[float] = []
    watch(waits)
    for connections in args.connections:
        waits.clear()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(measure(connections, args.seconds, waits))
        ordered = sorted(waits)
        half, most = (ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.99))
        print(
            f"{connections:6} connections: {len(waits)} admitted, half within {half * 1e3:.1f} ms "
            f"and 99% within {most * 1e3:.1f} ms of the worker's CPU time",
            flush=True,
        )


if __name__ == "__main__":
    main()
