"""Every key that Discreet writes, and which of them share a slot.

In a cluster a script may touch the keys of one hash tag only. All but debits and feedback, which go
together on a single server (`debits`), keep to that everywhere:

    ledger, markers, claim,     {shard}     feedback is claimed, paid for and added in one step;
    sums, counts, erasures,                 a decision is opened with the debit for its answer
    release, open, contents,
    fence
    event                       {event}     a caller's event id and its answer
    queue                       {queue}     messages to other instances
    blob, page                  {key}       values replaced whole, and values written in place
    roster                      {roster}    numbers of names
    stream                      {stream}    lines that are kept for some time
    lease                       {lease}     who does the background work
    schema, identity, epoch,    {config}    small, read whole
    documents, secrets

Digests inside a tag are base64, because a raw byte could be the brace that ends the tag. After
the tag nothing is parsed, so digests follow as they are: ledgers and claims are the most numerous.
A digest that something else follows has its length before it, so that no two things share a key.

A *directory* is a set of names, and beside it one value for each name, under the directory's key
followed by the name. Sums are kept in directories: blocks by name, own sums by principal.
"""

import re
from binascii import b2a_base64

from discreet.errors import InvalidArgument
from discreet.state.slots import SHARD_TAGS
from discreet.state.stores import shard_of

DEFAULT_NAMESPACE = "discreet"
_NAMESPACE = re.compile(r"[A-Za-z0-9._-]{1,64}")


class StoreKeys:
    """The keys of one deployment; several may share a store under different namespaces."""

    def __init__(self, namespace: str = DEFAULT_NAMESPACE) -> None:
        if not _NAMESPACE.fullmatch(namespace):
            raise InvalidArgument("namespace", "must be 1 to 64 of A-Z a-z 0-9 . _ -")
        self.namespace = namespace
        prefix = namespace.encode() + b":"
        self._shards = [prefix + b"{" + tag + b"}" for tag in SHARD_TAGS]
        self._prefix = prefix
        self.schema = prefix + b"schema:{config}"
        self.identity = prefix + b"identity:{config}"
        self.documents = prefix + b"documents:{config}"
        self.epoch = prefix + b"epoch:{config}"
        self.secrets = prefix + b"secrets:{config}"

    def fence(self, shard: int) -> bytes:
        """Return the key of a shard's fence: the store's identity, and how many writes it took."""
        return self._shards[shard] + b"w"

    def ledger(self, principal: bytes) -> bytes:
        """Return the key of a hash: what a principal has spent, ever, in windows and by day.

        Never expires.
        """
        return self._shards[shard_of(principal)] + b"l" + principal

    def ledger_and_markers(self, principal: bytes) -> tuple[bytes, bytes]:
        """Return both, for the many debits that have markers."""
        shard = self._shards[shard_of(principal)]
        return shard + b"l" + principal, shard + b"m" + principal

    def markers(self, principal: bytes) -> bytes:
        """Return the key of a sorted set: paid-for markers by the time at which they lapse."""
        return self._shards[shard_of(principal)] + b"m" + principal

    def claim(self, principal: bytes, claim: bytes) -> bytes:
        """Return the key of one counted reward. Expires with the claim."""
        return self._shards[shard_of(principal)] + b"c" + _sized(principal) + claim

    def sums(self, shard: int, generation: bytes) -> bytes:
        """Return the key of a directory: sums that gather for the next release, by block."""
        return self._shards[shard] + b"s" + _sized(generation)

    def own(self, shard: int, generation: bytes) -> bytes:
        """Return the key of a directory: own sums, by principal."""
        return self._shards[shard] + b"o" + _sized(generation)

    def erasures(self, shard: int, generation: bytes) -> bytes:
        """Return the key of a hash: principal to when its own sums were last erased."""
        return self._shards[shard] + b"x" + generation

    def frozen(self, shard: int, generation: bytes) -> bytes:
        """Return the key of a set: the numbers of releases whose sums are set aside.

        The key followed by a number and a colon is the directory of those sums, by block.
        """
        return self._shards[shard] + b"f" + _sized(generation)

    def counts(self, shard: int, generation: bytes) -> bytes:
        """Return the key of a hash: principal to number of records since the last freeze."""
        return self._shards[shard] + b"n" + generation

    def release(self, shard: int, generation: bytes) -> bytes:
        """Return the key of the number of the last release that was frozen."""
        return self._shards[shard] + b"r" + generation

    def open(self, shard: int, generation: bytes) -> bytes:
        """Return the key of a sorted set: open decisions by the time at which they are due."""
        return self._shards[shard] + b"q" + generation

    def contents(self, shard: int, generation: bytes) -> bytes:
        """Return the key of a hash: open decisions to their contents, and which of their items
        have been counted."""
        return self._shards[shard] + b"d" + generation

    def event(self, event: bytes) -> bytes:
        """Return the key of a hash: fingerprint and answer."""
        return self._tagged(b"e", event)

    def queue(self, queue: bytes) -> bytes:
        """Return the key of a hash: name to message."""
        return self._tagged(b"q", queue)

    def blob(self, key: bytes) -> bytes:
        """Return the key of a version and a content."""
        return self._tagged(b"b", key)

    def page(self, page: bytes) -> bytes:
        """Return the key of bytes that are written in place."""
        return self._tagged(b"p", page)

    def roster(self, roster: bytes) -> bytes:
        """Return the key of a hash: name to number."""
        return self._tagged(b"r", roster)

    def stream(self, stream: bytes) -> bytes:
        """Return the key of a stream of lines, each removed when it is old enough."""
        return self._tagged(b"x", stream)

    def lease(self, lease: bytes) -> bytes:
        """Return the key of a lease's holder. Expires with the lease."""
        return self._tagged(b"h", lease)

    def _tagged(self, kind: bytes, digest: bytes) -> bytes:
        tag = b2a_base64(digest, newline=False).rstrip(b"=")
        return self._prefix + kind + b":{" + tag + b"}"


def frozen_sums(frozen: bytes, number: int) -> bytes:
    """Return the key of a directory: sums set aside for a release, by block."""
    return b"%b%d:" % (frozen, number)


def open_name(principal: bytes, decision: bytes) -> bytes:
    """Return the name of an open decision; with a claim, of one of its items."""
    return _sized(principal) + decision


def read_open_name(name: bytes) -> tuple[bytes, bytes]:
    """Return the principal and the decision of a name."""
    end = 1 + name[0]
    return name[1:end], name[end:]


def _sized(digest: bytes) -> bytes:
    return bytes((len(digest),)) + digest
