"""API keys: random secrets, kept only as digests, with scopes.

A key is 32 random bytes, so one round of SHA-256 is enough at rest: there is nothing to guess.
"""

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from discreet.decisions.registry import KEY, RecommenderRegistry, Snapshot
from discreet.errors import InvalidArgument
from discreet.state.stores import Store

SCOPES = frozenset({"serve", "admin", "peer", "metrics"})


def digest_of(secret: str) -> str:
    """Return what is kept of a key."""
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A key as it can be shown: its id is the beginning of its digest."""

    id: str
    label: str
    scopes: frozenset[str]


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
            stored = {
                name.removeprefix(KEY): frozenset(json.loads(content)["scopes"])
                for name, content in snapshot.documents.items()
                if name.startswith(KEY)
            }
            self._known = {**stored, **self._given}
            self._epoch = snapshot.epoch
        return self._known.get(digest_of(secret))

    async def label_of(self, secret: str) -> str | None:
        """Return what a stored key is called: how an instance that calls us is known here.

        Two keys with one label are one caller, so that a key can be replaced.
        """
        documents = (self._registry.trusted() or await self._registry.current()).documents
        content = documents.get(KEY + digest_of(secret))
        return None if content is None else str(json.loads(content)["label"])

    async def create(self, *, label: str, scopes: frozenset[str]) -> str:
        """Make a key and return its secret, which is never to be seen again."""
        unknown = sorted(scopes - SCOPES)
        if unknown or not scopes:
            raise InvalidArgument("scopes", f"must be some of {', '.join(sorted(SCOPES))}")
        secret = "dk_" + secrets.token_urlsafe(32)
        content = json.dumps({"label": label, "scopes": sorted(scopes)}).encode()
        await self._store.put_document(
            name=KEY + digest_of(secret), document=content, expected=None
        )
        await self._registry.settle()
        return secret

    async def list(self) -> list[KeyRecord]:
        """Return the stored keys."""
        snapshot = await self._registry.current()
        return [
            KeyRecord(
                id=name.removeprefix(KEY)[:12],
                label=json.loads(content)["label"],
                scopes=frozenset(json.loads(content)["scopes"]),
            )
            for name, content in sorted(snapshot.documents.items())
            if name.startswith(KEY)
        ]

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
