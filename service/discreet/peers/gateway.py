"""Messages to other instances: bounded in time, size and number.

A message has one deadline, connecting included, and its answer a greatest length. It is tried again
once, and only if nothing of it can have been sent. A peer that fails several times in a row is left
out for a while (`circuit`): apart for questions, which a request waits for (`urgent`), and for
deliveries, so that a peer which is slow to take the one still gets the other. Redirects are not
followed, certificates are verified, proxies from the environment are ignored: a key goes to
addresses that the operator has named (`addresses`) and nowhere else.

Nothing is logged about a message or its answer; `PeerUnavailable` says in one word why there is
none. What messages mean is the families' business (their `sync` modules).
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import httpx

from discreet.errors import PeerUnavailable
from discreet.peers.addresses import Origin, origin_of
from discreet.peers.circuit import CircuitBreaker

log = logging.getLogger(__name__)
logging.getLogger("httpx").setLevel(logging.WARNING)  # it would write a line for every message

SECONDS = 5.0
URGENT_SECONDS = 0.3
MOST_AT_ONCE = 64
"""Questions, or deliveries, to one peer at the same time: a slow one cannot occupy the worker."""
MOST_BYTES = 16 * 2**20
"""Of an answer."""
MOST_URGENT_BYTES = 16 * 2**10
"""Of an answer that a request waits for. An honest one has a few hundred."""


@dataclass(slots=True)
class _Messages:
    """The questions to a peer, or the deliveries."""

    circuit: CircuitBreaker
    waiting: int = 0


@dataclass(slots=True)
class _Peer:
    questions: _Messages
    deliveries: _Messages
    headers: Mapping[str, str]
    origins: frozenset[Origin | None]
    """Where the key may be sent."""

    def messages(self, *, urgent: bool) -> _Messages:
        return self.questions if urgent else self.deliveries


class HttpPeerGateway:
    """Sends messages to peers by name, with the keys that they issued to us.

    `changed` is called with a peer's name, "questions" or "deliveries", and whether their circuit
    is open, when that changes.
    """

    def __init__(
        self,
        *,
        keys: Mapping[str, str],
        addresses: Mapping[str, Sequence[str]],
        changed: Callable[[str, str, bool], None] | None = None,
        seconds: float = SECONDS,
        urgent_seconds: float = URGENT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._urgent_seconds = urgent_seconds

        def messages(name: str, what: str) -> _Messages:
            noted = None if changed is None else partial(changed, name, what)
            return _Messages(CircuitBreaker(clock=clock, changed=noted))

        self._peers = {
            name: _Peer(
                questions=messages(name, "questions"),
                deliveries=messages(name, "deliveries"),
                headers={
                    "authorization": f"Bearer {key}",
                    "content-type": "application/json",
                    "accept-encoding": "identity",
                },
                origins=frozenset(map(origin_of, addresses.get(name, ()))),
            )
            for name, key in keys.items()
        }
        self._client = httpx.AsyncClient(
            follow_redirects=False,
            trust_env=False,
            timeout=None,  # noqa: S113  every message has a deadline of its own
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
        )

    def reachable(self, peer: str, *, urgent: bool = False) -> bool:
        """Tell, without waiting, whether the peer may be spoken to now."""
        found = self._peers.get(peer)
        if found is None:
            return False
        messages = found.messages(urgent=urgent)
        return messages.waiting < MOST_AT_ONCE and messages.circuit.admits()

    def distrust(self, *, peer: str, urgent: bool = False) -> None:
        """Count the answer that `post` has just returned as a failure: it cannot be used."""
        found = self._peers.get(peer)
        if found is not None:
            found.messages(urgent=urgent).circuit.disbelieved()

    async def post(
        self, *, peer: str, url: str, content: bytes, urgent: bool = False
    ) -> tuple[int, bytes]:
        """Send a message; return the answer's status and body, or raise `PeerUnavailable`.

        A status of 500 or above is a failure of the peer's. Any other answer is for the caller to
        judge, with `distrust` if it makes no sense.
        """
        found = self._peers.get(peer)
        if found is None:
            raise PeerUnavailable("there is no key for this peer", reason="closed")
        if (origin := origin_of(url)) is None or origin not in found.origins:
            log.warning(
                "the key for %s is not sent: its address is neither in peer_addresses nor in the "
                "configuration file",
                peer,
            )
            raise PeerUnavailable("this address is not allowed", reason="closed")
        messages = found.messages(urgent=urgent)
        if messages.waiting >= MOST_AT_ONCE:
            raise PeerUnavailable("too many messages at once", reason="busy")
        circuit = messages.circuit
        if not circuit.enter():
            raise PeerUnavailable("the peer is left out for a while", reason="closed")
        messages.waiting += 1
        try:
            async with asyncio.timeout(self._urgent_seconds if urgent else self._seconds):
                answer = await self._send(
                    url, content, found.headers, MOST_URGENT_BYTES if urgent else MOST_BYTES
                )
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
            # What a peer sends must not make a request fail here.
            circuit.failed()
            log.exception("a peer's answer could not be handled")
            raise PeerUnavailable("an answer that cannot be read", reason="malformed") from None
        except BaseException:
            circuit.abandoned()
            raise
        finally:
            messages.waiting -= 1
        circuit.succeeded()
        return answer

    async def close(self) -> None:
        """Let go of every connection."""
        await self._client.aclose()

    async def _send(
        self, url: str, content: bytes, headers: Mapping[str, str], most: int
    ) -> tuple[int, bytes]:
        try:
            return await self._send_once(url, content, headers, most)
        except httpx.ConnectError:
            # Nothing was sent, so that sending it again cannot be sending it twice.
            return await self._send_once(url, content, headers, most)

    async def _send_once(
        self, url: str, content: bytes, headers: Mapping[str, str], most: int
    ) -> tuple[int, bytes]:
        async with self._client.stream("POST", url, content=content, headers=headers) as response:
            if response.status_code >= 500:
                raise PeerUnavailable("the peer could not answer", reason="refused")
            body = bytearray()
            # Raw: an answer that was compressed all the same is not expanded.
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > most:
                    raise PeerUnavailable("too long an answer", reason="malformed")
            return response.status_code, bytes(body)
