"""API keys: random secrets, kept only as digests, with scopes and bounds.

A key is 32 random bytes, so one round of SHA-256 is enough at rest: there is nothing to guess.
Keys that operators make are few, and every worker holds them all. Keys on people's devices are
many: they lie one by one in the store (`devices`) and are looked up when they are used.

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

from discreet.decisions.devices import DEVICE_PREFIX, Devices
from discreet.decisions.grants import SCOPES, UNREADABLE, KeyGrant, require_label
from discreet.decisions.registry import KEY, RecommenderRegistry, Snapshot
from discreet.errors import InvalidArgument
from discreet.state.stores import Store

log = logging.getLogger(__name__)

KEY_SCHEMA = 3
"""Raised by whatever a reader must understand to use a key: something that narrows it."""
_UNBOUND_SCHEMA = 1
"""What a key needs that is not bound to anything: older versions can use it as well."""
_BOUND_SCHEMA = 2
"""What a key needs that is bound to recommenders, and has no rate of its own."""
_ID_CHARACTERS = 12
MOST_RATE = 1_000_000


def digest_of(secret: str) -> str:
    """Return what is kept of a key."""
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A key as it can be shown: its id is the beginning of its digest."""

    id: str
    label: str
    scopes: frozenset[str]
    recommenders: frozenset[str] | None = None
    rate: float | None = None

    @property
    def grant(self) -> KeyGrant:
        """What the key allows."""
        return KeyGrant(self.id, self.scopes, self.recommenders, rate=self.rate)


def read_key(digest: str, content: bytes) -> KeyRecord:
    """Return a stored key, or raise `ValueError`, which says why it cannot be used."""
    try:
        fields = json.loads(content)
        schema, label, scopes = fields.get("schema", 1), fields["label"], fields["scopes"]
        bound, rate = fields.get("recommenders"), fields.get("rate")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ValueError("it is damaged") from None
    if type(schema) is not int or schema > KEY_SCHEMA:
        raise ValueError("it was made by a newer version")
    if not (isinstance(label, str) and _names(scopes) and (bound is None or _names(bound))):
        raise ValueError("it is damaged")
    if not (rate is None or (type(rate) in (int, float) and 0 < rate <= MOST_RATE)):
        raise ValueError("it is damaged")
    bounds = None if bound is None else frozenset(bound)
    return KeyRecord(digest[:_ID_CHARACTERS], label, frozenset(scopes) & SCOPES, bounds, rate)


def _names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


class KeyRing:
    """Who may do what: keys from the environment, and keys in the store."""

    def __init__(
        self,
        *,
        store: Store,
        registry: RecommenderRegistry,
        devices: Devices,
        given: Mapping[str, frozenset[str]],
    ) -> None:
        self._store = store
        self._registry = registry
        self._devices = devices
        digests = {digest_of(secret): scopes for secret, scopes in given.items()}
        self._given = {
            digest: KeyGrant(digest[:_ID_CHARACTERS], scopes) for digest, scopes in digests.items()
        }
        self._known: dict[str, KeyGrant] = dict(self._given)
        self._epoch: int | None = None

    async def grant_of(self, secret: str) -> KeyGrant | None:
        """Return what a key allows, or None if there is no such key."""
        if secret.startswith(DEVICE_PREFIX):
            return await self._devices.grant_of(secret)
        snapshot = self._registry.trusted()
        if snapshot is None:
            given = self._given.get(digest_of(secret))
            if given is not None:
                # A key from the environment needs no store to be recognised.
                return given
            snapshot = await self._registry.current()
        return self.recognise(secret, snapshot)

    def recognise(self, secret: str, snapshot: Snapshot) -> KeyGrant | None:
        """Return what a key allows under a snapshot; without awaiting, for the request path."""
        if snapshot.epoch != self._epoch:
            self._known = {**_usable_keys(snapshot), **self._given}
            self._epoch = snapshot.epoch
        return self._known.get(digest_of(secret))

    async def label_of(self, secret: str) -> str | None:
        """Return what a stored key is called: how an instance that calls us is known here.

        Two keys with one label are one caller, so that a key can be replaced.
        """
        documents = (self._registry.trusted() or await self._registry.current()).documents
        digest = digest_of(secret)
        content = documents.get(KEY + digest)
        try:
            return None if content is None else read_key(digest, content).label
        except ValueError:
            return None

    async def create(
        self,
        *,
        label: str,
        scopes: frozenset[str],
        recommenders: frozenset[str] | None = None,
        rate: float | None = None,
    ) -> str:
        """Make a key and return its secret, which is never to be seen again.

        With `recommenders` it opens nothing of any other; they need not exist yet. `rate` is how
        many requests a second each worker takes from it.
        """
        require_label(label)
        unknown = sorted(scopes - SCOPES)
        if unknown or not scopes:
            raise InvalidArgument("scopes", f"must be some of {', '.join(sorted(SCOPES))}")
        if recommenders is not None and not recommenders:
            raise InvalidArgument("recommenders", "must name at least one, or be left out for all")
        if rate is not None and not 0 < rate <= MOST_RATE:
            raise InvalidArgument("rate", f"must be above 0 and at most {MOST_RATE:,}")
        secret = "dk_" + secrets.token_urlsafe(32)
        fields: dict[str, object] = {"label": label, "scopes": sorted(scopes)}
        fields["schema"] = _UNBOUND_SCHEMA
        if recommenders is not None:
            fields.update(schema=_BOUND_SCHEMA, recommenders=sorted(recommenders))
        if rate is not None:
            fields.update(schema=KEY_SCHEMA, rate=rate)
        await self._store.put_document(
            name=KEY + digest_of(secret), document=json.dumps(fields).encode(), expected=None
        )
        await self._registry.settle()
        return secret

    async def list(self) -> list[KeyRecord]:
        """Return the stored keys; one that cannot be read has no scopes and can be revoked.

        Keys on people's devices are listed by client: `Devices.list`.
        """
        snapshot = await self._registry.current()
        records = []
        for name, content in sorted(snapshot.documents.items()):
            if name.startswith(KEY):
                digest = name.removeprefix(KEY)
                try:
                    records.append(read_key(digest, content))
                except ValueError:
                    unreadable = KeyRecord(digest[:_ID_CHARACTERS], UNREADABLE, frozenset())
                    records.append(unreadable)
        return records

    async def revoke(self, key_id: str) -> None:
        """Remove the key whose id this is; no worker accepts it once this has returned."""
        snapshot = await self._registry.current()
        found = [name for name in snapshot.documents if name.startswith(KEY + key_id)]
        if len(key_id) < _ID_CHARACTERS or len(found) != 1:
            raise InvalidArgument(
                "key", "no stored key has that id; `discreet keys list` shows them"
            )
        name = found[0]
        await self._store.remove_document(name=name, expected=snapshot.documents[name])
        await self._registry.settle()


def _usable_keys(snapshot: Snapshot) -> dict[str, KeyGrant]:
    """Return what every stored key allows that can be read, by digest."""
    usable = {}
    for name, content in snapshot.documents.items():
        if name.startswith(KEY):
            digest = name.removeprefix(KEY)
            try:
                usable[digest] = read_key(digest, content).grant
            except ValueError as reason:
                log.error("the key %s opens nothing: %s", digest[:_ID_CHARACTERS], reason)
    return usable
