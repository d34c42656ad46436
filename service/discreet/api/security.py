"""Who may call what: a bearer key, and the scope that a route asks for."""

from collections.abc import Iterable

from discreet.decisions.runtime import Runtime
from discreet.errors import NotAllowed, NotAuthenticated

_BEARER = b"bearer "
_LONGEST = 512


def bearer(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the key in the Authorization header."""
    for name, value in headers:
        if name == b"authorization":
            if value[:7].lower() != _BEARER or len(value) > _LONGEST:
                break
            return value[7:].strip().decode("latin-1")
    raise NotAuthenticated("send the header Authorization: Bearer KEY")


async def authorise(
    runtime: Runtime, headers: Iterable[tuple[bytes, bytes]], required: str
) -> None:
    """Return if the caller's key has the scope; `admin` includes `metrics`."""
    scopes = await runtime.keys.scopes_of(bearer(headers))
    if scopes is None:
        raise NotAuthenticated("no such key, or it was revoked")
    if required in scopes or (required == "metrics" and "admin" in scopes):
        return
    raise NotAllowed(f"this call needs a key with the scope {required}")
