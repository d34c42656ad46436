"""The way to other vendors over HTTP: questions and feedback, each with a deadline.

How patient, how much and how often is `exchange`'s business. Nothing is logged about a question or
its answer; `PeerUnavailable` says in one word why there is none.
"""

import time
from collections.abc import Callable, Mapping
from urllib.parse import quote

from pydantic_core import to_json

from discreet.families.p_dap.forwarding import Forward, Forwarded
from discreet.errors import PeerUnavailable
from discreet.peers.exchange import Exchange
from discreet.peers.wire import MOST_BYTES, read_forwarded

TIMEOUT = 0.3
FEEDBACK_TIMEOUT = 2.0
"""Feedback is passed on beside the request path, where there is more time."""
MOST_AT_ONCE = 64
"""Questions to one vendor at the same time; more are not asked, so that a slow vendor cannot
occupy the whole worker."""
_SETTLED = frozenset({200, 400, 404, 409, 410, 422})
"""Statuses after which passing the same feedback on again would change nothing."""

AddressOf = Callable[[str, str], str | None]


class HttpVendors:
    """Asks vendors by name. `address_of` gives a vendor's URL for one of our recommenders."""

    def __init__(
        self,
        *,
        keys: Mapping[str, str],
        address_of: AddressOf,
        timeout: float = TIMEOUT,
        changed: Callable[[str, bool], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address_of = address_of
        self._exchange = Exchange(
            keys=keys,
            changed=changed,
            seconds=timeout,
            most_bytes=MOST_BYTES,
            most_at_once=MOST_AT_ONCE,
            clock=clock,
        )

    def reachable(self, vendor: str) -> bool:
        """Tell, without waiting, whether the vendor may be asked now."""
        return self._exchange.reachable(vendor)

    def distrust(self, *, vendor: str) -> None:
        """Count an answer that cannot be true as a failure."""
        self._exchange.distrust(peer=vendor)

    async def forward(self, *, vendor: str, forward: Forward) -> Forwarded:
        """Ask for an item; whatever goes wrong is a `PeerUnavailable`."""
        content = {
            "level": forward.level,
            "centre": forward.centre,
            "epsilon": forward.epsilon,
            "training": forward.training,
            "stream": forward.stream,
        }

        def read(status: int, body: bytes) -> Forwarded:
            if status != 200:
                raise PeerUnavailable("the vendor refused", reason="refused")
            return read_forwarded(body)

        url = self._url(vendor, forward.recommender, "forwards")
        return await self._exchange.ask(peer=vendor, url=url, content=to_json(content), read=read)

    async def feedback(self, *, vendor: str, recommender: str, handle: str, reward: float) -> None:
        """Pass feedback on. What the vendor will never accept counts as passed on."""

        def read(status: int, body: bytes) -> None:
            if status not in _SETTLED:
                raise PeerUnavailable("the vendor refused", reason="refused")

        url = self._url(vendor, recommender, "feedback")
        content = to_json({"handle": handle, "reward": reward})
        await self._exchange.ask(
            peer=vendor, url=url, content=content, read=read, seconds=FEEDBACK_TIMEOUT
        )

    async def close(self) -> None:
        """Let go of every connection."""
        await self._exchange.close()

    def _url(self, vendor: str, recommender: str, what: str) -> str:
        address = self._address_of(recommender, vendor)
        if address is None:
            raise PeerUnavailable("no such vendor of this recommender", reason="closed")
        return f"{address}/peers/recommenders/{quote(recommender, safe='')}/{what}"
