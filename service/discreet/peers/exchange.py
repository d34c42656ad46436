"""Messages to other instances: bounded in time, size, number and patience.

A message has one deadline, connecting included, and its answer a greatest length. It is tried again
once, and only if nothing of it can have been sent. A peer that fails several times in a row is left
out for a while (`circuit`). Redirects are not followed, certificates are verified, proxies from the
environment are ignored: the key goes to the address in the configuration and nowhere else.

Nothing is logged about a message or its answer; `PeerUnavailable` says in one word why.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import httpx

from discreet.errors import PeerUnavailable
from discreet.peers.circuit import Circuit

log = logging.getLogger(__name__)
logging.getLogger("httpx").setLevel(logging.WARNING)  # it would write a line for every message

SECONDS = 5.0
MOST_AT_ONCE = 8
"""Messages to one peer at the same time; there is no hurry, and others want to be heard."""
MOST_BYTES = 16 * 2**20
"""Of an answer."""

T = TypeVar("T")


@dataclass(slots=True)
class _Peer:
    circuit: Circuit
    headers: Mapping[str, str]
    talking: int = 0


class Exchange:
    """Speaks to peers by name, with the keys that they issued to us."""

    def __init__(
        self,
        *,
        keys: Mapping[str, str],
        changed: Callable[[str, bool], None] | None = None,
        seconds: float = SECONDS,
        most_bytes: int = MOST_BYTES,
        most_at_once: int = MOST_AT_ONCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._most_bytes = most_bytes
        self._most_at_once = most_at_once
        self._peers: dict[str, _Peer] = {}
        for name, key in keys.items():
            told = None if changed is None else _telling(changed, name)
            self._peers[name] = _Peer(
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
            timeout=None,  # noqa: S113  every message has a deadline of its own
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
        )

    def reachable(self, peer: str) -> bool:
        """Tell, without waiting, whether the peer may be spoken to now."""
        found = self._peers.get(peer)
        return found is not None and found.talking < self._most_at_once and found.circuit.admits()

    def distrust(self, *, peer: str) -> None:
        """Count an answer that cannot be true as a failure."""
        found = self._peers.get(peer)
        if found is not None:
            found.circuit.failed()

    async def post(self, *, peer: str, url: str, content: bytes) -> tuple[int, bytes]:
        """Send a message; return the status and the body of the answer.

        An answer of 500 or above is a failure of the peer's. Any other is the peer's word: the
        caller judges it, and says `distrust` if it makes no sense.
        """
        return await self.ask(peer=peer, url=url, content=content, read=_word)

    async def ask(
        self,
        *,
        peer: str,
        url: str,
        content: bytes,
        read: Callable[[int, bytes], T],
        seconds: float | None = None,
    ) -> T:
        """Send a message; return what `read` makes of the answer's status and body.

        What `read` raises `PeerUnavailable` for is a failure of the peer's like any other.
        """
        found = self._peers.get(peer)
        if found is None:
            raise PeerUnavailable("there is no key for this peer", reason="closed")
        if found.talking >= self._most_at_once:
            raise PeerUnavailable("too many messages at once", reason="busy")
        circuit = found.circuit
        if not circuit.enter():
            raise PeerUnavailable("the peer is left out for a while", reason="closed")
        found.talking += 1
        try:
            async with asyncio.timeout(seconds or self._seconds):
                answer = read(*await self._send(url, content, found.headers))
        except TimeoutError:
            circuit.failed()
            raise PeerUnavailable("no answer in time", reason="slow") from None
        except (httpx.HTTPError, httpx.InvalidURL):
            circuit.failed()
            raise PeerUnavailable("no connection", reason="dead") from None
        except PeerUnavailable:
            circuit.failed()
            raise
        except Exception:
            # No request of ours may fail because of what somebody else sent.
            circuit.failed()
            log.exception("a peer's answer could not be handled")
            raise PeerUnavailable("an answer beyond us", reason="malformed") from None
        except BaseException:
            circuit.abandoned()
            raise
        finally:
            found.talking -= 1
        circuit.succeeded()
        return answer

    async def close(self) -> None:
        """Let go of every connection."""
        await self._client.aclose()

    async def _send(
        self, url: str, content: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        try:
            return await self._send_once(url, content, headers)
        except httpx.ConnectError:
            # Nothing was sent, so that asking again cannot be asking twice.
            return await self._send_once(url, content, headers)

    async def _send_once(
        self, url: str, content: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        async with self._client.stream("POST", url, content=content, headers=headers) as response:
            body = bytearray()
            # Raw: an answer that was compressed all the same is not expanded.
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > self._most_bytes:
                    raise PeerUnavailable("too long an answer", reason="malformed")
            return response.status_code, bytes(body)


def _word(status: int, body: bytes) -> tuple[int, bytes]:
    if status >= 500:
        raise PeerUnavailable("the peer could not answer", reason="refused")
    return status, body


def _telling(changed: Callable[[str, bool], None], name: str) -> Callable[[bool], None]:
    return lambda is_open: changed(name, is_open)
