"""The way to other instances, as families see it: over HTTP when serving, else not at all."""

from typing import Protocol

from discreet.errors import PeerUnavailable


class PeerGateway(Protocol):
    """Sends messages to peers by name, with the keys that they issued to us."""

    def reachable(self, peer: str, *, urgent: bool = False) -> bool:
        """Tell, without waiting, whether the peer may be spoken to now.

        A peer that does not take deliveries may still answer questions, the `urgent` messages, and
        the reverse.
        """
        ...

    async def post(
        self, *, peer: str, url: str, content: bytes, urgent: bool = False
    ) -> tuple[int, bytes]:
        """Send a message; return the answer's status and body, or raise `PeerUnavailable`.

        An `urgent` one has a request waiting for it, and therefore less time.
        """
        ...

    def distrust(self, *, peer: str, urgent: bool = False) -> None:
        """Count an answer that cannot be read or believed as a failure."""
        ...


class NoPeers:
    """Nobody to speak to."""

    def reachable(self, peer: str, *, urgent: bool = False) -> bool:
        """Nobody is."""
        return False

    async def post(
        self, *, peer: str, url: str, content: bytes, urgent: bool = False
    ) -> tuple[int, bytes]:
        """Nobody answers."""
        raise PeerUnavailable("there are no peers here", reason="closed")

    def distrust(self, *, peer: str, urgent: bool = False) -> None:
        """Nobody is trusted."""
