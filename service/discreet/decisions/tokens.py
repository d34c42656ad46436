"""Sealed tokens: the service keeps nothing about a pending decision, the caller carries it.

A `recommendation_id` is authenticated encryption of address, arms, propensities, cost and time.
The caller can neither read it (propensities and cells are other people's statistics) nor alter
it. Keys rotate: the first seals, all open; a token names its key by a short fingerprint.

AES-GCM-SIV rather than AES-GCM: nonces are random, and at thousands of tokens a second a random
96-bit nonce under plain GCM would leave its safe number of messages within days.
"""

import base64
import binascii
import hashlib
import os
import struct
from binascii import b2a_base64
from collections.abc import Sequence
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

from discreet.families.p_dap.contract import Address, Choice, Decision
from discreet.errors import InvalidArgument, TokenForged

KEY_BYTES = 32
GENERATION_BYTES = 8
DECISION_BYTES = 12
ADDRESS_BYTES = 16
_NONCE_BYTES = 12
_FINGERPRINT_BYTES = 4
_MOST_CHARACTERS = 16_384

_HEAD = struct.Struct(f"<B{GENERATION_BYTES}s{DECISION_BYTES}sIBB{ADDRESS_BYTES}sQH")
_CHOICE = struct.Struct("<If")
_VERSION = 1
_URL_SAFE = bytes.maketrans(b"+/", b"-_")


class Pending(NamedTuple):
    """What a token carries: enough to learn from feedback, and nothing about who asked.

    `note` is whatever else the decision needs when feedback comes; most need nothing.
    """

    generation: bytes
    decision_id: bytes
    expires_at: int
    decision: Decision
    nano_epsilon: int = 0
    note: bytes = b""


def new_decision_id() -> bytes:
    """A name for one decision, so that its feedback counts once."""
    return os.urandom(DECISION_BYTES)


def new_decision_ids(count: int) -> list[bytes]:
    """So many of them, asked for at once."""
    content = os.urandom(DECISION_BYTES * count)
    return [
        content[start : start + DECISION_BYTES] for start in range(0, len(content), DECISION_BYTES)
    ]


class Sealer:
    """Seals bytes for one purpose each; opening with another purpose is a forgery."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys:
            raise InvalidArgument("token_keys", "at least one key is needed to seal tokens")
        if any(len(key) != KEY_BYTES for key in keys):
            raise InvalidArgument("token_keys", f"each key must be {KEY_BYTES} bytes")
        prints = [hashlib.sha256(key).digest()[:_FINGERPRINT_BYTES] for key in keys]
        self._ciphers = dict(zip(prints, map(AESGCMSIV, keys), strict=True))
        self._print = prints[0]
        self._cipher = self._ciphers[prints[0]]

    def seal(self, content: bytes, *, purpose: bytes) -> bytes:
        """Encrypt and authenticate."""
        return self.seal_each([content], purpose=purpose)[0]

    def seal_each(self, contents: Sequence[bytes], *, purpose: bytes) -> list[bytes]:
        """Encrypt and authenticate each by itself; asking for all nonces at once is quicker."""
        nonces = os.urandom(_NONCE_BYTES * len(contents))
        mark, encrypt = self._print, self._cipher.encrypt
        sealed = []
        for place, content in enumerate(contents):
            start = place * _NONCE_BYTES
            nonce = nonces[start : start + _NONCE_BYTES]
            sealed.append(mark + nonce + encrypt(nonce, content, purpose))
        return sealed

    def open(self, sealed: bytes, *, purpose: bytes) -> bytes:
        """Return the content, or raise `TokenForged`."""
        cipher = self._ciphers.get(sealed[:_FINGERPRINT_BYTES])
        body = _FINGERPRINT_BYTES + _NONCE_BYTES
        if cipher is None or len(sealed) < body + 16:
            raise TokenForged("recommendation_id was not issued by this service")
        try:
            return cipher.decrypt(sealed[_FINGERPRINT_BYTES:body], sealed[body:], purpose)
        except InvalidTag:
            raise TokenForged("recommendation_id was not issued by this service") from None


_PURPOSE = b"discreet decision"


def seal_decision(sealer: Sealer, pending: Pending) -> str:
    """Return the `recommendation_id` of a decision."""
    return seal_decisions(sealer, [pending])[0]


def seal_decisions(sealer: Sealer, many: Sequence[Pending]) -> list[str]:
    """Return the `recommendation_id` of each decision."""
    contents = []
    for generation, decision_id, expires_at, decision, nano_epsilon, note in many:
        choices, (key, level) = decision.choices, decision.address
        content = _HEAD.pack(
            _VERSION,
            generation,
            decision_id,
            expires_at,
            decision.personalised,
            level,
            key,
            nano_epsilon,
            len(choices),
        )
        for choice in choices:
            content += _CHOICE.pack(*choice)
        contents.append(content + note)
    return [
        b2a_base64(each, newline=False).translate(_URL_SAFE).rstrip(b"=").decode("ascii")
        for each in sealer.seal_each(contents, purpose=_PURPOSE)
    ]


def open_decision(sealer: Sealer, token: str) -> Pending:
    """Return what a `recommendation_id` carries, or raise `TokenForged`."""
    if len(token) > _MOST_CHARACTERS:
        raise TokenForged("recommendation_id was not issued by this service")
    try:
        # Canonical base64 only: otherwise several spellings of one token would be accepted.
        padded = token.encode("ascii") + b"=" * (-len(token) % 4)
        sealed = base64.b64decode(padded, altchars=b"-_", validate=True)
        canonical = base64.urlsafe_b64encode(sealed) == padded
    except (binascii.Error, ValueError, UnicodeEncodeError):
        canonical = False
    if not canonical:
        raise TokenForged("recommendation_id was not issued by this service")
    content = sealer.open(sealed, purpose=_PURPOSE)
    version, generation, decision_id, expires_at, personalised, level, key, nano, count = (
        _HEAD.unpack_from(content)
    )
    if version != _VERSION:
        raise TokenForged("recommendation_id was issued by another version of this service")
    end = _HEAD.size + count * _CHOICE.size
    choices = tuple(
        Choice(slot=slot, propensity=propensity)
        for slot, propensity in _CHOICE.iter_unpack(content[_HEAD.size : end])
    )
    return Pending(
        generation=generation,
        decision_id=decision_id,
        expires_at=expires_at,
        decision=Decision(
            choices=choices,
            address=Address(key=key, level=level),
            personalised=bool(personalised),
        ),
        nano_epsilon=nano,
        note=content[end:],
    )
