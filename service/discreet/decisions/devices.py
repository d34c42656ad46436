"""Keys on people's devices, and the codes that bring them there.

A device needs a key of its own, and nobody should have to copy one by hand. The shop's server,
which knows who is signed in, asks for a code for that client; the person's device trades it for a
key. A code works once and for ten minutes; the key is bound to the client and to the recommenders
that the code was for, and has the scope `profile`, or `statement`, or both.

At rest there are digests only: of the code (keyed), of the key, of the client (keyed). The client
id itself lies sealed in the code's entry, until the device has it.

*Once, whoever races.* Who trades a code first claims a second event, named after the code, with a
nonce; whoever finds another nonce there was second. A crash after the claim burns the code.

*Revoked means revoked.* A key is listed under its client before it opens anything. Revoking all
takes entries off the list until none is left, a code's entry included; a trade that finds its
code's entry gone, after it has written its key, takes the key back.
"""

import asyncio
import json
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from discreet.decisions.grants import (
    DEVICE_SCOPES,
    PERSONAL_SCOPES,
    UNREADABLE,
    ClientBinding,
    KeyGrant,
    require_label,
)
from discreet.decisions.registry import RecommenderRegistry
from discreet.decisions.tokens import Sealer
from discreet.errors import InvalidArgument, TooManyDevices, UnknownCode
from discreet.state.principals import DIGEST_BYTES, Principals
from discreet.state.stores import Store

log = logging.getLogger(__name__)

DEVICE_PREFIX = "dd_"
DEVICE_SCHEMA = 1
"""Raised by whatever a reader must understand to use a device's key: something that narrows it."""
CODE_SECONDS = 600
MOST_DEVICES = 20
"""Keys and open codes of one client."""
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's: no letter that is read as a digit."""
_MISREAD = str.maketrans("OIL", "011")
_CODE_CHARACTERS = 12
_PURPOSE = b"discreet enrolment"
_GONE = "no such code: it was used, has expired, or was mistyped; ask for a new one"


@dataclass(frozen=True, slots=True)
class EnrolmentCode:
    """A code, shown once, and until when it can be traded (seconds since the epoch)."""

    code: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class EnrolledDevice:
    """What a device is given: its key, never to be seen again, and what it is for."""

    id: str
    key: str
    client: str
    recommenders: frozenset[str]
    scopes: frozenset[str]


@dataclass(frozen=True, slots=True)
class DeviceRecord:
    """A device's key as it can be shown."""

    id: str
    label: str
    recommenders: frozenset[str]
    created_at: int
    scopes: frozenset[str] = DEVICE_SCOPES


class Devices:
    """Gives out codes and keys for devices, and takes keys back."""

    def __init__(
        self,
        *,
        store: Store,
        registry: RecommenderRegistry,
        principals: Principals,
        sealer: Sealer,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._registry = registry
        self._principals = principals
        self._sealer = sealer
        self._clock = clock

    async def offer_code(
        self,
        *,
        client: str,
        recommenders: frozenset[str],
        label: str,
        scopes: frozenset[str] = DEVICE_SCOPES,
    ) -> EnrolmentCode:
        """Return a code that one device may trade for a key for this client."""
        require_label(label)
        await self._check(client, recommenders, scopes)
        code = "".join(secrets.choice(_ALPHABET) for _ in range(_CODE_CHARACTERS))
        event = self._principals.code(code)
        expires_at = int(self._clock()) + CODE_SECONDS
        listed = {"code": True, "expires_at": expires_at}
        await self._list(client, event, listed)
        await self._store.claim_event(event=event, fingerprint=event, ttl=CODE_SECONDS)
        content = {
            "client": client,
            "recommenders": sorted(recommenders),
            "label": label,
            "scopes": sorted(scopes),
        }
        (sealed,) = self._sealer.seal([json.dumps(content).encode()], purpose=_PURPOSE)
        await self._store.answer_event(event=event, answer=sealed, ttl=CODE_SECONDS)
        shown = "-".join(code[start : start + 4] for start in range(0, _CODE_CHARACTERS, 4))
        return EnrolmentCode(shown, expires_at)

    async def redeem(self, code: str) -> EnrolledDevice:
        """Trade a code for a key, once. Raises `UnknownCode` for any code that cannot be traded."""
        typed = code.upper().replace("-", "").replace(" ", "").translate(_MISREAD)
        event = self._principals.code(typed)
        found = await self._store.find_event(event=event)
        if found is None or found.answer is None:
            raise UnknownCode(_GONE)
        nonce = secrets.token_bytes(DIGEST_BYTES)
        used = self._principals.code("used " + typed)
        won = await self._store.claim_event(event=used, fingerprint=nonce, ttl=CODE_SECONDS)
        if won.fingerprint != nonce:
            raise UnknownCode(_GONE)
        content = json.loads(self._sealer.open(found.answer, purpose=_PURPOSE))
        client = content["client"]
        scopes = frozenset(content["scopes"])
        recommenders = frozenset(content["recommenders"])
        device = await self._write(client, recommenders, content["label"], scopes)
        queue = self._queue(client)
        listed = await self._store.messages(queue=queue, most=_ALL)
        await self._store.forget_event(event=event)
        await self._store.remove_message(queue=queue, name=event)
        if event not in listed:
            # All keys of the client were revoked while this one was being made.
            await self.revoke(client=client, device=device.id)
            raise UnknownCode(_GONE)
        return device

    async def create(
        self,
        *,
        client: str,
        recommenders: frozenset[str],
        label: str,
        scopes: frozenset[str] = DEVICE_SCOPES,
    ) -> EnrolledDevice:
        """Make a device's key without a code."""
        require_label(label)
        await self._check(client, recommenders, scopes)
        return await self._write(client, recommenders, label, scopes)

    async def grant_of(self, secret: str) -> KeyGrant | None:
        """Return what a device's key allows, or None. One look into the store."""
        key = _digest_of(secret)
        (held,) = await self._store.load(keys=[key])
        if held is None:
            return None
        try:
            record = json.loads(held.content)
            if record.get("schema", DEVICE_SCHEMA) > DEVICE_SCHEMA:
                raise ValueError("it was made by a newer version")
            kept = ClientBinding(bytes.fromhex(record["holder"]), self._principals.holder)
            scopes = frozenset(record.get("scopes", DEVICE_SCOPES)) & PERSONAL_SCOPES
            return KeyGrant(key.hex(), scopes, frozenset(record["recommenders"]), kept)
        except Exception:  # readers fail in many ways
            log.error("the key of a device opens nothing: it is damaged, or of a newer version")
            return None

    async def list(self, client: str) -> list[DeviceRecord]:
        """Return a client's devices, the oldest first."""
        listed = await self._listed(client)
        devices = [
            DeviceRecord(
                name.hex(),
                held["label"],
                frozenset(held["recommenders"]),
                held["created_at"],
                frozenset(held["scopes"]),
            )
            for name, held in listed.items()
            if "code" not in held
        ]
        return sorted(devices, key=lambda one: (one.created_at, one.id))

    async def revoke(self, *, client: str, device: str) -> bool:
        """Refuse a device's key from now on; tell whether the client had it."""
        try:
            key = bytes.fromhex(device)
        except ValueError:
            return False
        if key not in await self._listed(client):
            return False
        await self._store.erase(keys=[key])
        await self._store.remove_message(queue=self._queue(client), name=key)
        return True

    async def revoke_all(self, client: str) -> int:
        """Refuse every key and code of a client from now on; return how many keys there were."""
        queue, revoked = self._queue(client), 0
        while listed := await self._listed(client):
            await asyncio.gather(
                *(self._store.remove_message(queue=queue, name=name) for name in listed)
            )
            codes = {name for name, held in listed.items() if "code" in held}
            keys = [name for name in listed if name not in codes]
            await asyncio.gather(*(self._store.forget_event(event=code) for code in codes))
            await self._store.erase(keys=keys)
            revoked += len(keys)
        return revoked

    async def _check(
        self, client: str, recommenders: frozenset[str], scopes: frozenset[str]
    ) -> None:
        if not scopes or not scopes <= PERSONAL_SCOPES:
            raise InvalidArgument("scopes", f"must be some of {', '.join(sorted(PERSONAL_SCOPES))}")
        if not recommenders:
            raise InvalidArgument("recommenders", "must name at least one")
        for name in sorted(recommenders):
            await self._registry.find(name)
        now, queue = self._clock(), self._queue(client)
        listed = await self._listed(client)
        lapsed = [name for name, held in listed.items() if held.get("expires_at", now) < now]
        await asyncio.gather(
            *(self._store.remove_message(queue=queue, name=name) for name in lapsed)
        )
        if len(listed) - len(lapsed) >= MOST_DEVICES:
            raise TooManyDevices(
                f"a client has at most {MOST_DEVICES} devices and open codes; revoke one first"
            )

    async def _write(
        self, client: str, recommenders: frozenset[str], label: str, scopes: frozenset[str]
    ) -> EnrolledDevice:
        secret = DEVICE_PREFIX + secrets.token_urlsafe(32)
        key, bound = _digest_of(secret), sorted(recommenders)
        created = {
            "label": label,
            "recommenders": bound,
            "scopes": sorted(scopes),
            "created_at": int(self._clock()),
        }
        await self._list(client, key, created)
        record = {
            "holder": self._principals.holder(client).hex(),
            "recommenders": bound,
            "scopes": sorted(scopes),
        }
        await self._store.save(key=key, content=json.dumps(record).encode())
        return EnrolledDevice(key.hex(), secret, client, recommenders, scopes)

    async def _list(self, client: str, name: bytes, held: dict[str, Any]) -> None:
        content = json.dumps(held).encode()
        await self._store.put_message(queue=self._queue(client), name=name, content=content)

    async def _listed(self, client: str) -> dict[bytes, dict[str, Any]]:
        found = await self._store.messages(queue=self._queue(client), most=_ALL)
        return {name: _read_entry(content) for name, content in found.items()}

    def _queue(self, client: str) -> bytes:
        return self._principals.holder(client)


_ALL = 1_000
"""More than a client can have, unless many requests race each other."""


def _read_entry(content: bytes) -> dict[str, Any]:
    """Return an entry of a client's list. One that cannot be read is a key's, to be revoked."""
    try:
        held = json.loads(content)
        if "code" in held:
            return {"code": True, "expires_at": int(held["expires_at"])}
        return {
            "label": str(held["label"]),
            "recommenders": [str(name) for name in held["recommenders"]],
            "created_at": int(held["created_at"]),
            "scopes": [str(scope) for scope in held.get("scopes", DEVICE_SCOPES)],
        }
    except Exception:  # readers fail in many ways
        return {"label": UNREADABLE, "recommenders": [], "created_at": 0, "scopes": []}


def _digest_of(secret: str) -> bytes:
    content = secret.encode(errors="surrogateescape")
    return blake2b(content, digest_size=DIGEST_BYTES, person=b"device key").digest()
