"""Sealed tokens: the service keeps nothing about a pending decision, the caller carries it.

A `recommendation_id` is authenticated encryption of what learning from feedback will need
(`PendingDecision`). The caller can neither read it nor alter it. Keys rotate: the first seals, all
open; a token names its key by a short fingerprint.

AES-GCM-SIV rather than AES-GCM: nonces are random, and at thousands of tokens a second a random
96-bit nonce under plain GCM would leave its safe number of messages within days.
"""

import hashlib
import os
import struct
from binascii import a2b_base64, b2a_base64
from collections.abc import Sequence
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

from discreet.errors import InvalidArgument, TokenForged
from discreet.families.contract import Recommender
from discreet.families.questions import Choice, Decision, PendingDecision
from discreet.families.stored import GENERATION_BYTES
from discreet.state.principals import DIGEST_BYTES
from discreet.state.stores import OpenDecision

KEY_BYTES = 32
DECISION_BYTES = 12
_NONCE_BYTES = 12
_FINGERPRINT_BYTES = 4
_MOST_CHARACTERS = 16_384

_HEAD = struct.Struct(f"<B{GENERATION_BYTES}s{DECISION_BYTES}sI{DIGEST_BYTES}sBH")
_CHOICE = struct.Struct("<If")
_VERSION = 2
_PERSONALISED, _DEFERRED = 1, 2
_PURPOSE = b"discreet decision"
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_+/", b"+/--")
"""What is no part of a URL is no part of a token either."""
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
    for generation, decision_id, expires_at, principal, personalised, choices, note, defer in many:
        flags = _PERSONALISED * personalised | _DEFERRED * defer
        content = _HEAD.pack(
            _VERSION, generation, decision_id, expires_at, principal, flags, len(choices)
        )
        for choice in choices:
            content += _CHOICE.pack(*choice)
        contents.append(content + note)
    # Written as lines, so that all of them are made fit for a URL at once.
    lines = b"".join(map(b2a_base64, sealer.seal(contents, purpose=_PURPOSE)))
    return lines.translate(_URL_SAFE, b"=").decode("ascii").splitlines()


def open_decision(sealer: Sealer, token: str) -> PendingDecision:
    """Return what a `recommendation_id` carries, or raise `TokenForged`."""
    if len(token) > _MOST_CHARACTERS:
        raise TokenForged(_INVALID)
    try:
        # Canonical base64 only: otherwise several spellings of one token would be accepted.
        padded = (token.encode("ascii") + b"=" * (-len(token) % 4)).translate(_FROM_URL)
        sealed = a2b_base64(padded, strict_mode=True)
        canonical = b2a_base64(sealed, newline=False) == padded
    except ValueError:
        canonical = False
    if not canonical:
        raise TokenForged(_INVALID)
    content = sealer.open(sealed, purpose=_PURPOSE)
    if content[0] != _VERSION:
        raise TokenForged("recommendation_id was issued by another version of this service")
    _, generation, decision_id, expires_at, principal, flags, count = _HEAD.unpack_from(content)
    end = _HEAD.size + count * _CHOICE.size
    return PendingDecision(
        generation=generation,
        decision_id=decision_id,
        expires_at=expires_at,
        principal=principal,
        personalised=bool(flags & _PERSONALISED),
        choices=tuple(map(Choice._make, _CHOICE.iter_unpack(content[_HEAD.size : end]))),
        note=content[end:],
        deferred=bool(flags & _DEFERRED),
    )


IN_FLIGHT_SECONDS = 2
"""How long after its time a decision counts as the default: feedback may be on its way."""


class SealedDecision(NamedTuple):
    """A decision's `recommendation_id`, and what is in it."""

    token: str
    pending: PendingDecision


class DecisionSeals:
    """Seals the decisions of one recommender that are made together, each once.

    Where decisions await a reward, their names follow from the marks under which they are paid for:
    a retry under the same mark opens the same decision again.
    """

    def __init__(
        self,
        sealer: Sealer,
        recommender: Recommender[Any],
        *,
        now: int,
        clients: Sequence[bytes],
        marks: Sequence[bytes],
        deferred: Sequence[bool],
    ) -> None:
        self._sealer = sealer
        self._recommender = recommender
        self._clients = clients
        self._names = (
            [mark[:DECISION_BYTES] for mark in marks]
            if recommender.awaits
            else new_decision_ids(len(clients))
        )
        self._deferred = deferred
        self._generation = recommender.generation
        self._ends = now + recommender.life, now + recommender.ttl
        self._sealed: dict[int, tuple[Decision, SealedDecision]] = {}

    def seal(self, rows: Sequence[int], decisions: Sequence[Decision]) -> list[SealedDecision]:
        """Return the decisions for these questions, by their places, sealed."""
        if not self._recommender.awaits:
            # Nothing was opened before, and nothing comes again.
            made = list(map(self._pending, rows, decisions))
            return list(map(SealedDecision, seal_decisions(self._sealer, made), made))
        missing = [
            (row, decision, self._pending(row, decision))
            for row, decision in zip(rows, decisions, strict=True)
            if row not in self._sealed or self._sealed[row][0] is not decision
        ]
        tokens = seal_decisions(self._sealer, [pending for _, _, pending in missing])
        for (row, decision, pending), token in zip(missing, tokens, strict=True):
            self._sealed[row] = decision, SealedDecision(token, pending)
        return [self._sealed[row][1] for row in rows]

    def open(self, rows: Sequence[int], decisions: Sequence[Decision]) -> list[OpenDecision | None]:
        """Return how the store keeps them while they await a reward, None for those that do not."""
        return [
            opened(self._recommender, one)
            if one.pending.choices and not one.pending.deferred
            else None
            for one in self.seal(rows, decisions)
        ]

    def _pending(self, row: int, decision: Decision) -> PendingDecision:
        deferred = self._deferred[row]
        expires_at = self._ends[deferred]
        if decision.expires_at is not None:
            expires_at = min(expires_at, decision.expires_at)
        return PendingDecision(
            self._generation,
            decision.decision_id or self._names[row],
            expires_at,
            self._clients[row],
            decision.personalised,
            decision.choices,
            decision.note,
            deferred,
        )


def opened(
    recommender: Recommender[Any], one: SealedDecision, *, at: int | None = None
) -> OpenDecision:
    """Return how the store keeps a decision while it awaits a reward.

    One that was deferred begins to wait `at` its activation, and the first activation counts.
    """
    due = one.pending.expires_at
    if at is not None:
        due = min(due, at + recommender.reward.seconds)
    return OpenDecision(
        recommender.generation,
        one.pending.decision_id,
        len(one.pending.choices),
        one.token.encode(),
        float(due + IN_FLIGHT_SECONDS),
        recommender.reward.most_open,
        sooner=at is not None,
    )
