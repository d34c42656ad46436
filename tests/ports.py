"""Ports for servers that tests start: nobody else takes one between choosing and listening.

A port that the system picks may be given away again, as the near end of somebody's connection,
before a server listens on it. These lie below the range from which the system picks. Each is held
by a UDP socket on the same number until this process ends, which a TCP server does not mind: tests
that run side by side, in this checkout or in another, find it taken and choose another.
"""

import atexit
import random
import socket

FIRST, LAST = 20_000, 31_999
ATTEMPTS = 10_000

_chosen = random.SystemRandom()
_held: list[socket.socket] = []


@atexit.register
def _let_go() -> None:
    for holding in _held:
        holding.close()


def free_port() -> int:
    """Return a port on the loopback interface that is ours until this process ends."""
    for _ in range(ATTEMPTS):
        port = _chosen.randint(FIRST, LAST)
        holding = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            holding.bind(("127.0.0.1", port))
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            holding.close()
            continue
        _held.append(holding)
        return port
    raise AssertionError(f"no port from {FIRST} to {LAST} is free")


def free_ports(count: int) -> list[int]:
    """Return so many of them."""
    return [free_port() for _ in range(count)]
