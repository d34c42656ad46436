"""Names that the store may keep: keyed digests of what callers call their clients and events.

The key (a pepper) is a secret that lives beside the ledgers and is never rotated: another pepper
would give every client a fresh ledger, which is a reset by another name.
"""

import hashlib
import struct
from collections.abc import Callable, Iterable

DIGEST_BYTES = 16
_LENGTH = struct.Struct("<Q")


class Principals:
    """Turns client and event ids into digests that mean nothing without the pepper."""

    def __init__(self, pepper: bytes) -> None:
        self._client = hashlib.blake2b(key=pepper, digest_size=DIGEST_BYTES, person=b"client")
        self._event = hashlib.blake2b(key=pepper, digest_size=DIGEST_BYTES, person=b"event")
        self._holder = hashlib.blake2b(key=pepper, digest_size=DIGEST_BYTES, person=b"holder")
        self._code = hashlib.blake2b(key=pepper, digest_size=DIGEST_BYTES, person=b"code")
        self._certificate = hashlib.blake2b(key=pepper, digest_size=32, person=b"certificate")
        self._pseudonym = hashlib.blake2b(key=pepper, digest_size=DIGEST_BYTES, person=b"pseudonym")
        self._mark = hashlib.blake2b(key=pepper, digest_size=DIGEST_BYTES, person=b"mark")
        self._request = hashlib.blake2b(key=pepper, digest_size=DIGEST_BYTES, person=b"request")

    def client(self, recommender: str, client: str, *, group: str | None = None) -> bytes:
        """The ledger of a client with a recommender, or with all recommenders of a ledger group.

        It follows the recommender's *name*, or the group's: removing a recommender and creating it
        anew must not open fresh ledgers for the same people.
        """
        return self.clients(recommender, group=group)(client)

    def clients(self, recommender: str, *, group: str | None = None) -> Callable[[str], bytes]:
        """Return what names the ledgers of a recommender's clients, as `client` does."""
        begun = self._client.copy()
        # Names have neither NUL nor a colon, so no pair can be split in two ways, and no
        # recommender has a group's ledger.
        owner = recommender if group is None else f"group:{group}"
        begun.update(owner.encode() + b"\0")

        def name(client: str) -> bytes:
            digest = begun.copy()
            digest.update(client.encode())
            return digest.digest()

        return name

    def event(self, event_id: str) -> bytes:
        """A caller's event id. Events are named across recommenders: feedback gives only the id."""
        digest = self._event.copy()
        digest.update(event_id.encode())
        return digest.digest()

    def holder(self, client: str) -> bytes:
        """A client with all recommenders: whom a device's key is bound to."""
        digest = self._holder.copy()
        digest.update(client.encode())
        return digest.digest()

    def code(self, code: str) -> bytes:
        """A code that a device trades for a key."""
        digest = self._code.copy()
        digest.update(code.encode(errors="surrogatepass"))
        return digest.digest()

    def certificate(self, content: bytes) -> bytes:
        """The seal of a certificate: whoever has not the pepper can neither make nor change one.

        The pepper is never rotated, so that a seal can be checked years later.
        """
        digest = self._certificate.copy()
        digest.update(content)
        return digest.digest()

    def pseudonym(self, principal: bytes) -> bytes:
        """What the decision log calls a client: not what the ledgers do."""
        digest = self._pseudonym.copy()
        digest.update(principal)
        return digest.digest()

    def marks(self, event_ids: Iterable[str], part: bytes) -> list[bytes]:
        """Under what events are debited, each once; `part` is of a fixed length."""
        begun = self._mark.copy()
        begun.update(part)
        marks = []
        for each in event_ids:
            mark = begun.copy()
            mark.update(each.encode())
            marks.append(mark.digest())
        return marks

    def request(self, parts: Iterable[bytes]) -> bytes:
        """A fingerprint of what is public of a request, to find an event id that was used twice."""
        digest = self._request.copy()
        for part in parts:
            digest.update(_LENGTH.pack(len(part)) + part)
        return digest.digest()
