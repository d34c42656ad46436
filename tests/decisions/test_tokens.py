"""Tokens open only as they were sealed."""

import base64
import os

import pytest

from discreet.decisions.tokens import Sealer, open_decision, seal_decisions
from discreet.errors import InvalidArgument, TokenForged
from discreet.families.questions import Choice, PendingDecision

PENDING = PendingDecision(
    generation=b"generate",
    decision_id=b"decision-id.",
    expires_at=2_000_000_000,
    principal=bytes(range(16)),
    personalised=True,
    choices=(Choice(slot=3, propensity=0.25), Choice(slot=70_000, propensity=0.5)),
    note=b"a note",
)


def seal(sealer: Sealer) -> str:
    (token,) = seal_decisions(sealer, [PENDING])
    return token


def key() -> bytes:
    return os.urandom(32)


def test_what_was_sealed_comes_back() -> None:
    sealer = Sealer([key()])
    assert open_decision(sealer, seal(sealer)) == PENDING


def test_a_token_shows_nothing_of_its_content() -> None:
    sealer = Sealer([key()])
    raw = base64.urlsafe_b64decode(seal(sealer) + "==")
    assert b"generate" not in raw
    assert b"decision-id." not in raw
    assert b"a note" not in raw
    assert bytes(range(16)) not in raw


def test_two_tokens_of_one_decision_differ() -> None:
    sealer = Sealer([key()])
    assert seal(sealer) != seal(sealer)


def test_every_altered_character_is_a_forgery() -> None:
    sealer = Sealer([key()])
    token = seal(sealer)
    for position, character in enumerate(token):
        altered = token[:position] + ("A" if character != "A" else "B") + token[position + 1 :]
        with pytest.raises(TokenForged):
            open_decision(sealer, altered)


@pytest.mark.parametrize(
    "token", ["", "A", "x" * 20_000, "not base64 !", "é", "AAAA" * 30, "=" * 8]
)
def test_nonsense_is_a_forgery(token: str) -> None:
    with pytest.raises(TokenForged):
        open_decision(Sealer([key()]), token)


def test_another_spelling_of_the_same_bytes_is_a_forgery() -> None:
    sealer = Sealer([key()])
    token = seal(sealer)
    with pytest.raises(TokenForged):
        open_decision(sealer, token + "==")


def test_rotation_opens_old_tokens_and_retirement_refuses_them() -> None:
    old, new = key(), key()
    token = seal(Sealer([old]))
    assert open_decision(Sealer([new, old]), token) == PENDING
    with pytest.raises(TokenForged):
        open_decision(Sealer([new]), token)


def test_a_seal_for_one_purpose_does_not_open_for_another() -> None:
    sealer = Sealer([key()])
    (sealed,) = sealer.seal([b"content"], purpose=b"one")
    assert sealer.open(sealed, purpose=b"one") == b"content"
    with pytest.raises(TokenForged):
        sealer.open(sealed, purpose=b"another")


@pytest.mark.parametrize("keys", [[], [b"short"]])
def test_bad_keys_are_named(keys: list[bytes]) -> None:
    with pytest.raises(InvalidArgument, match="token_keys"):
        Sealer(keys)
