"""Callers by their address: what counts as one, and how wrong keys and codes from it slow down.

Keys are random and long, so guessing one is hopeless; keys that people chose, and enrolment codes,
are shorter. Each wrong one from an address is answered later than the one before, up to five
seconds; half of that is forgotten every minute. Only wrong ones wait: whoever has a right key is
answered at once, also from behind the same proxy.
"""

import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

FREE = 10
"""Wrong ones that are answered at once: a typing error, a revoked key in a loop."""
FIRST_SECONDS = 0.1
LONGEST_SECONDS = 5.0
HALF_LIFE_SECONDS = 60.0
MOST_NETWORKS = 10_000


def network_of(host: str) -> str:
    """Return what counts as one address: an IPv4 address, or an IPv6 network of 64 bits, which is
    what one customer usually has."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.IPv6Address(int(address) >> 64 << 64))
    return host


class WrongKeys:
    """Counts wrong keys by address, in one worker; the oldest addresses are forgotten first."""

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._seen: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By network: how many there were, of which some are forgotten since a moment."""

    def delay(self, network: str) -> float:
        """Note a wrong key; return after how many seconds that should be said."""
        now = self._clock()
        count, since = self._seen.pop(network, (0.0, now))
        count = count * 0.5 ** ((now - since) / HALF_LIFE_SECONDS) + 1.0
        self._seen[network] = (count, now)
        if len(self._seen) > MOST_NETWORKS:
            self._seen.popitem(last=False)
        if count <= FREE:
            return 0.0
        doublings = min((count - FREE) / 5.0, 10.0)
        return float(min(FIRST_SECONDS * 2.0**doublings, LONGEST_SECONDS))
