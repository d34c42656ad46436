"""Sealed tokens: the service keeps nothing about a pending decision, the caller carries it.

A `recommendation_id` is authenticated encryption of what learning from feedback will need
(`PendingDecision`). The caller can neither read it nor alter it. Keys rotate: the first seals, all
open; a token names its key by a short fingerprint.

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

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

from discreet.errors import InvalidArgument, TokenForged
from discreet.families.questions import Choice, PendingDecision
from discreet.families.stored import GENERATION_BYTES
from discreet.state.principals import DIGEST_BYTES

KEY_BYTES = 32
DECISION_BYTES = 12
_NONCE_BYTES = 12
_FINGERPRINT_BYTES = 4
_MOST_CHARACTERS = 16_384

_HEAD = struct.Struct(f"<B{GENERATION_BYTES}s{DECISION_BYTES}sI{DIGEST_BYTES}s?H")
_CHOICE = struct.Struct("<If")
_VERSION = 2
_PURPOSE = b"discreet decision"
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_INVALID = "is not a recommendation_id of this service"


def new_decision_ids(count: int) -> list[bytes]:
    """Return names for so many decisions, so that feedback on each counts once."""
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

    def seal(self, contents: Sequence[bytes], *, purpose: bytes) -> list[bytes]:
        """Encrypt and authenticate each by itself."""
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
            raise TokenForged(_INVALID)
        try:
            return cipher.decrypt(sealed[_FINGERPRINT_BYTES:body], sealed[body:], purpose)
        except InvalidTag:
            raise TokenForged(_INVALID) from None


def seal_decisions(sealer: Sealer, many: Sequence[PendingDecision]) -> list[str]:
    """Return the `recommendation_id` of each decision."""
    contents = []
    for generation, decision_id, expires_at, principal, personalised, choices, note in many:
        content = _HEAD.pack(
            _VERSION, generation, decision_id, expires_at, principal, personalised, len(choices)
        )
        for choice in choices:
            content += _CHOICE.pack(*choice)
        contents.append(content + note)
    return [
        b2a_base64(each, newline=False).translate(_URL_SAFE).rstrip(b"=").decode("ascii")
        for each in sealer.seal(contents, purpose=_PURPOSE)
    ]


def open_decision(sealer: Sealer, token: str) -> PendingDecision:
    """Return what a `recommendation_id` carries, or raise `TokenForged`."""
    if len(token) > _MOST_CHARACTERS:
        raise TokenForged(_INVALID)
    try:
        # Canonical base64 only: otherwise several spellings of one token would be accepted.
        padded = token.encode("ascii") + b"=" * (-len(token) % 4)
        sealed = base64.b64decode(padded, altchars=b"-_", validate=True)
        canonical = base64.urlsafe_b64encode(sealed) == padded
    except (binascii.Error, ValueError, UnicodeEncodeError):
        canonical = False
    if not canonical:
        raise TokenForged(_INVALID)
    content = sealer.open(sealed, purpose=_PURPOSE)
    if content[0] != _VERSION:
        raise TokenForged("recommendation_id was issued by another version of this service")
    _, generation, decision_id, expires_at, principal, personalised, count = _HEAD.unpack_from(
        content
    )
    end = _HEAD.size + count * _CHOICE.size
    return PendingDecision(
        generation=generation,
        decision_id=decision_id,
        expires_at=expires_at,
        principal=principal,
        personalised=personalised,
        choices=tuple(map(Choice._make, _CHOICE.iter_unpack(content[_HEAD.size : end]))),
        note=content[end:],
    )
