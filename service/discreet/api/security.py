"""Who may call what: a bearer key, the scopes that a route accepts, and what the key is bound to.

A key may be bound to recommenders, and a device's key is bound to one client as well. Where the
recommender stands in the path or the query (`recommender_in`), the route looks; where it stands in
the body, the handler does, and says so. A route that does neither refuses bound keys.
"""

from collections.abc import Iterable
from typing import Literal

from discreet.decisions.grants import KeyGrant
from discreet.decisions.keys import KeyRing
from discreet.errors import NotAllowed, NotAuthenticated, only_reading

Scopes = tuple[str, ...]
"""Any one of them is enough."""

RecommenderIn = Literal["path", "query", "body", "nowhere"]
"""Where a call says which recommender it is about."""

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


async def authorise(
    keys: KeyRing, headers: Iterable[tuple[bytes, bytes]], scopes: Scopes
) -> KeyGrant:
    """Return what the caller's key allows; raise if it has none of the scopes."""
    with only_reading():
        held = await keys.grant_of(bearer(headers))
    if held is None:
        raise NotAuthenticated("unknown or revoked API key")
    if held.scopes.isdisjoint(scopes):
        raise NotAllowed(f"this call needs a key with the scope {' or '.join(scopes)}")
    return held


def require_reach(grant: KeyGrant, where: RecommenderIn, recommender: str | None) -> None:
    """Raise `NotAllowed` if the key is bound to other recommenders than the call is about."""
    if grant.recommenders is None or where == "body":
        return
    if recommender is None:
        raise NotAllowed("this call needs a key that is not bound to recommenders")
    grant.require_recommender(recommender)
