"""API keys: random secrets, kept only as digests, with scopes.

A key is 32 random bytes, so one round of SHA-256 is enough at rest: there is nothing to guess.

A stored key says which version of this module must be understood to use it (`schema`). Fields that
are new and harmless are ignored; a record that needs a newer reader, or cannot be read at all,
opens nothing, is listed as such and can be revoked, and every other key goes on working.
"""

import hashlib
import json
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from discreet.decisions.registry import KEY, RecommenderRegistry, Snapshot
from discreet.errors import InvalidArgument
from discreet.state.stores import Store

log = logging.getLogger(__name__)

SCOPES = frozenset({"serve", "admin", "peer", "metrics"})
KEY_SCHEMA = 1
"""Raised by whatever a reader must understand to use a key: something that narrows it."""
UNREADABLE = "(unreadable)"
"""The label under which a key is listed that this version cannot read."""


def digest_of(secret: str) -> str:
    """Return what is kept of a key."""
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A key as it can be shown: its id is the beginning of its digest."""

    id: str
    label: str
    scopes: frozenset[str]


def read_key(content: bytes) -> tuple[str, frozenset[str]]:
    """Return a stored key's label and scopes, or raise `ValueError`, which says why not."""
    try:
        fields = json.loads(content)
        schema, label, scopes = fields.get("schema", 1), fields["label"], fields["scopes"]
    except (ValueError, LookupError, TypeError, AttributeError):
        raise ValueError("it is damaged") from None
    if type(schema) is not int or schema > KEY_SCHEMA:
        raise ValueError("it was made by a newer version")
    well_formed = isinstance(label, str) and isinstance(scopes, list)
    if not well_formed or not all(isinstance(each, str) for each in scopes):
        raise ValueError("it is damaged")
    return label, frozenset(scopes) & SCOPES


class KeyRing:
    """Who may do what: keys from the environment, and keys in the store."""

    def __init__(
        self,
        *,
        store: Store,
        registry: RecommenderRegistry,
        given: Mapping[str, frozenset[str]],
    ) -> None:
        self._store = store
        self._registry = registry
        self._given = {digest_of(secret): scopes for secret, scopes in given.items()}
        self._known: dict[str, frozenset[str]] = dict(self._given)
        self._epoch: int | None = None

    async def scopes_of(self, secret: str) -> frozenset[str] | None:
        """Return the scopes of a key, or None if there is no such key."""
        snapshot = self._registry.trusted()
        if snapshot is None:
            given = self._given.get(digest_of(secret))
            if given is not None:
                # A key from the environment needs no store to be recognised.
                return given
            snapshot = await self._registry.current()
        return self.recognise(secret, snapshot)

    def recognise(self, secret: str, snapshot: Snapshot) -> frozenset[str] | None:
        """Return the scopes of a key under a snapshot; without awaiting, for the request path."""
        if snapshot.epoch != self._epoch:
            self._known = {**_usable_keys(snapshot), **self._given}
            self._epoch = snapshot.epoch
        return self._known.get(digest_of(secret))

    async def label_of(self, secret: str) -> str | None:
        """Return what a stored key is called: how an instance that calls us is known here.

        Two keys with one label are one caller, so that a key can be replaced.
        """
        documents = (self._registry.trusted() or await self._registry.current()).documents
        content = documents.get(KEY + digest_of(secret))
        try:
            return None if content is None else read_key(content)[0]
        except ValueError:
            return None

    async def create(self, *, label: str, scopes: frozenset[str]) -> str:
        """Make a key and return its secret, which is never to be seen again."""
        unknown = sorted(scopes - SCOPES)
        if unknown or not scopes:
            raise InvalidArgument("scopes", f"must be some of {', '.join(sorted(SCOPES))}")
        secret = "dk_" + secrets.token_urlsafe(32)
        content = json.dumps(
            {"schema": KEY_SCHEMA, "label": label, "scopes": sorted(scopes)}
        ).encode()
        await self._store.put_document(
            name=KEY + digest_of(secret), document=content, expected=None
        )
        await self._registry.settle()
        return secret

    async def list(self) -> list[KeyRecord]:
        """Return the stored keys; one that cannot be read has no scopes and can be revoked."""
        snapshot = await self._registry.current()
        records = []
        for name, content in sorted(snapshot.documents.items()):
            if name.startswith(KEY):
                try:
                    label, scopes = read_key(content)
                except ValueError:
                    label, scopes = UNREADABLE, frozenset()
                records.append(KeyRecord(name.removeprefix(KEY)[:12], label, scopes))
        return records

    async def revoke(self, key_id: str) -> None:
        """Remove the key whose id this is; no worker accepts it once this has returned."""
        snapshot = await self._registry.current()
        found = [name for name in snapshot.documents if name.startswith(KEY + key_id)]
        if len(key_id) < 12 or len(found) != 1:
            raise InvalidArgument(
                "key", "no stored key has that id; `discreet keys list` shows them"
            )
        await self._store.remove_document(name=found[0])
        await self._registry.settle()


def _usable_keys(snapshot: Snapshot) -> dict[str, frozenset[str]]:
    """Return the scopes of every stored key that can be read, by digest."""
    usable = {}
    for name, content in snapshot.documents.items():
        if name.startswith(KEY):
            try:
                usable[name.removeprefix(KEY)] = read_key(content)[1]
            except ValueError as reason:
                log.error("the key %s opens nothing: %s", name.removeprefix(KEY)[:12], reason)
    return usable
