"""Every key that Discreet writes, and which of them share a slot.

A script may touch the keys of one hash tag only, so that everything runs unchanged on a cluster:

    ledger, markers       {principal}   a debit and what makes it idempotent
    cell, claim           {address}     statistics and the feedback already counted in them
    event                 {event}       a caller's event id and its answer
    index                 {index}       which cells exist
    queue                 {queue}       letters to other instances
    blob, page            {key}         values replaced whole, and values written in place
    roster                {roster}      numbers of names
    lease                 {lease}       who does the background work
    documents, epoch,     {config}      small, read whole
    secrets

Digests inside a tag are base64, because a raw byte could be the brace that ends the tag. After
the tag nothing is parsed, so a claim follows as it is: claims are the most numerous keys.
"""

import re
from binascii import b2a_base64

from discreet.errors import InvalidArgument

DEFAULT_NAMESPACE = "discreet"
_NAMESPACE = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Keys:
    """The keys of one deployment; several may share a store under different namespaces."""

    def __init__(self, namespace: str = DEFAULT_NAMESPACE) -> None:
        if not _NAMESPACE.fullmatch(namespace):
            raise InvalidArgument("namespace", "must be 1 to 64 of A-Z a-z 0-9 . _ -")
        prefix = namespace.encode()
        self._ledger = prefix + b":l:{"
        self._markers = prefix + b":m:{"
        self._cell = prefix + b":c:{"
        self._claim = prefix + b":f:{"
        self._event = prefix + b":e:{"
        self._index = prefix + b":i:{"
        self._queue = prefix + b":q:{"
        self._blob = prefix + b":b:{"
        self._page = prefix + b":p:{"
        self._roster = prefix + b":r:{"
        self._lease = prefix + b":h:{"
        self.documents = prefix + b":documents:{config}"
        self.epoch = prefix + b":epoch:{config}"
        self.secrets = prefix + b":secrets:{config}"

    def ledger(self, principal: bytes) -> bytes:
        """Return the key of three packed columns. Never expires."""
        return self._ledger + encoded(principal) + b"}"

    def markers(self, principal: bytes) -> bytes:
        """Return the key of a sorted set: paid-for markers by the time at which they lapse."""
        return self._markers + encoded(principal) + b"}"

    def cell(self, address: bytes) -> bytes:
        """Return the key of packed sums."""
        return self._cell + encoded(address) + b"}"

    def claim(self, address: bytes, claim: bytes) -> bytes:
        """Return the key of one counted reward."""
        return self._claim + encoded(address) + b"}" + claim

    def event(self, event: bytes) -> bytes:
        """Return the key of a hash: fingerprint and answer."""
        return self._event + encoded(event) + b"}"

    def index(self, index: bytes) -> bytes:
        """Return the key of a hash: address to level."""
        return self._index + encoded(index) + b"}"

    def queue(self, queue: bytes) -> bytes:
        """Return the key of a hash: letter to content."""
        return self._queue + encoded(queue) + b"}"

    def blob(self, key: bytes) -> bytes:
        """Return the key of a version and a content."""
        return self._blob + encoded(key) + b"}"

    def page(self, page: bytes) -> bytes:
        """Return the key of bytes that are written in place."""
        return self._page + encoded(page) + b"}"

    def roster(self, roster: bytes) -> bytes:
        """Return the key of a hash: name to number."""
        return self._roster + encoded(roster) + b"}"

    def lease(self, lease: bytes) -> bytes:
        """Return the key of a lease's holder. Expires with the lease."""
        return self._lease + encoded(lease) + b"}"


def encoded(digest: bytes) -> bytes:
    """Return a digest in letters that cannot end a hash tag, without padding."""
    return b2a_base64(digest, newline=False).rstrip(b"=")
