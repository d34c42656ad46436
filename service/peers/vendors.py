"""The way to other vendors over HTTP: bounded in time, size, number and patience.

One question has one deadline, connecting included. It is tried again once, and only if nothing of
it can have been sent. A vendor that fails several times in a row is left out for a while
(`circuit`). Redirects are not followed, certificates are verified, proxies from the environment
are ignored: the key goes to the address in the configuration and nowhere else.

Nothing here is logged about a question or its answer; `VendorUnavailable` says in one word why.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import quote

import httpx
from pydantic_core import to_json

from service.algorithms.forwarding import Forward, Forwarded
from service.errors import VendorUnavailable
from service.peers.circuit import Circuit
from service.peers.wire import MOST_BYTES, read_forwarded

log = logging.getLogger(__name__)
logging.getLogger("httpx").setLevel(logging.WARNING)  # it would write a line for every question

TIMEOUT = 0.3
FEEDBACK_TIMEOUT = 2.0
"""Feedback is passed on beside the request path, where there is more time."""
MOST_AT_ONCE = 64
"""Questions to one vendor at the same time; more are not asked, so that a slow vendor cannot
occupy the whole worker."""
_SETTLED = frozenset({200, 400, 404, 409, 410, 422})
"""Statuses after which passing the same feedback on again would change nothing."""

AddressOf = Callable[[str, str], str | None]
T = TypeVar("T")


@dataclass(slots=True)
class _Vendor:
    circuit: Circuit
    asking: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)


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
        self._timeout = timeout
        self._vendors: dict[str, _Vendor] = {}
        for name, key in keys.items():
            told = None if changed is None else _telling(changed, name)
            self._vendors[name] = _Vendor(
                circuit=Circuit(clock=clock, changed=told),
                headers={
                    "authorization": f"Bearer {key}",
                    "content-type": "application/json",
                    "accept-encoding": "identity",
                },
            )
        self._client = httpx.AsyncClient(
            follow_redirects=False,
            trust_env=False,
            timeout=None,  # noqa: S113  every call has a deadline of its own
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
        )

    def reachable(self, vendor: str) -> bool:
        """Tell, without waiting, whether the vendor may be asked now."""
        found = self._vendors.get(vendor)
        return found is not None and found.asking < MOST_AT_ONCE and found.circuit.admits()

    def distrust(self, *, vendor: str) -> None:
        """Count an answer that cannot be true as a failure."""
        found = self._vendors.get(vendor)
        if found is not None:
            found.circuit.failed()

    async def forward(self, *, vendor: str, forward: Forward) -> Forwarded:
        """Ask for an item; whatever goes wrong is a `VendorUnavailable`."""
        content = {
            "level": forward.level,
            "centre": forward.centre,
            "epsilon": forward.epsilon,
            "training": forward.training,
            "stream": forward.stream,
        }
        path = f"/peers/recommenders/{quote(forward.recommender, safe='')}/forwards"
        url = self._url(vendor, forward.recommender) + path

        def read(status: int, body: bytes) -> Forwarded:
            if status != 200:
                raise VendorUnavailable("the vendor refused", reason="refused")
            return read_forwarded(body)

        return await self._ask(vendor, url, to_json(content), self._timeout, read)

    async def feedback(self, *, vendor: str, recommender: str, handle: str, reward: float) -> None:
        """Pass feedback on. What the vendor will never accept counts as passed on."""
        path = f"/peers/recommenders/{quote(recommender, safe='')}/feedback"
        url = self._url(vendor, recommender) + path

        def read(status: int, body: bytes) -> None:
            if status not in _SETTLED:
                raise VendorUnavailable("the vendor refused", reason="refused")

        content = to_json({"handle": handle, "reward": reward})
        await self._ask(vendor, url, content, FEEDBACK_TIMEOUT, read)

    async def close(self) -> None:
        """Let go of every connection."""
        await self._client.aclose()

    def _url(self, vendor: str, recommender: str) -> str:
        url = self._address_of(recommender, vendor)
        if url is None:
            raise VendorUnavailable("no such vendor of this recommender", reason="closed")
        return url

    async def _ask(
        self,
        vendor: str,
        url: str,
        content: bytes,
        seconds: float,
        read: Callable[[int, bytes], T],
    ) -> T:
        found = self._vendors.get(vendor)
        if found is None:
            raise VendorUnavailable("there is no key for this vendor", reason="closed")
        if found.asking >= MOST_AT_ONCE:
            raise VendorUnavailable("too many questions at once", reason="busy")
        circuit = found.circuit
        if not circuit.enter():
            raise VendorUnavailable("the vendor is left out for a while", reason="closed")
        found.asking += 1
        try:
            async with asyncio.timeout(seconds):
                answer = read(*await self._post(url, content, found.headers))
        except TimeoutError:
            circuit.failed()
            raise VendorUnavailable("no answer in time", reason="slow") from None
        except httpx.HTTPError:
            circuit.failed()
            raise VendorUnavailable("no connection", reason="dead") from None
        except VendorUnavailable:
            circuit.failed()
            raise
        except Exception:
            # No request of ours may fail because of what somebody else sent.
            circuit.failed()
            log.exception("a vendor's answer could not be handled")
            raise VendorUnavailable("an answer beyond us", reason="malformed") from None
        except BaseException:
            circuit.abandoned()
            raise
        finally:
            found.asking -= 1
        circuit.succeeded()
        return answer

    async def _post(
        self, url: str, content: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        try:
            return await self._post_once(url, content, headers)
        except httpx.ConnectError:
            # Nothing was sent, so that asking again cannot be asking twice.
            return await self._post_once(url, content, headers)

    async def _post_once(
        self, url: str, content: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        async with self._client.stream("POST", url, content=content, headers=headers) as response:
            body = bytearray()
            # Raw: an answer that was compressed all the same is not expanded.
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise VendorUnavailable("too long an answer", reason="malformed")
            return response.status_code, bytes(body)


def _telling(changed: Callable[[str, bool], None], name: str) -> Callable[[bool], None]:
    return lambda is_open: changed(name, is_open)
