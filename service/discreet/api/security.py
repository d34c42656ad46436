"""Who may call what: a bearer key, and the scopes that a route accepts."""

from collections.abc import Iterable

from discreet.decisions.keys import KeyRing
from discreet.errors import NotAllowed, NotAuthenticated

Scopes = tuple[str, ...]
"""Any one of them is enough."""

_BEARER = b"bearer "
_LONGEST = 512


def bearer(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the key in the Authorization header, or raise `NotAuthenticated`."""
    for name, value in headers:
        if name == b"authorization":
            if value[:7].lower() != _BEARER or len(value) > _LONGEST:
                break
            return value[7:].strip().decode("latin-1")
    raise NotAuthenticated("send the header Authorization: Bearer KEY")


async def authorise(keys: KeyRing, headers: Iterable[tuple[bytes, bytes]], scopes: Scopes) -> None:
    """Return if the caller's key has one of the scopes; otherwise raise which it lacks."""
    held = await keys.scopes_of(bearer(headers))
    if held is None:
        raise NotAuthenticated("unknown or revoked API key")
    if held.isdisjoint(scopes):
        raise NotAllowed(f"this call needs a key with the scope {' or '.join(scopes)}")
