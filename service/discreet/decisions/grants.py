"""What a key allows: scopes, and how far they reach.

A key may be bound to recommenders: then it opens nothing of any other. A key that a person holds
is bound to that person's client id as well. With the scope `profile` it may send, replace and
withdraw that client's profile, and ask for recommendations for it; with the scope `statement` it
may read what was spent of that client's budgets.

The client is kept as a keyed digest, like every client id in the store.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from discreet.errors import InvalidArgument, NotAllowed

SCOPES = frozenset({"serve", "admin", "peer", "metrics"})
"""What a key that an operator makes may have."""
DEVICE_SCOPES = frozenset({"profile"})
"""What a key on a person's device has, unless it was asked for otherwise."""
PERSONAL_SCOPES = DEVICE_SCOPES | {"statement"}
"""What a key that is bound to one client may have: to act for it, or to read its statement."""

LONGEST_LABEL = 100
UNREADABLE = "(unreadable)"
"""The label under which a key is listed that this version cannot read."""


def require_label(label: str) -> None:
    """Raise `InvalidArgument` for a label that cannot be shown as it is in a list or a terminal."""
    if not (label.strip() and len(label) <= LONGEST_LABEL and label.isprintable()):
        reason = f"must be 1 to {LONGEST_LABEL} printable characters, without control characters"
        raise InvalidArgument("label", reason)


@dataclass(frozen=True, slots=True)
class ClientBinding:
    """The one client that a key may act for; `digest` turns a client id into what is kept."""

    kept: bytes
    digest: Callable[[str], bytes]

    def admits(self, client: str) -> bool:
        """Tell whether this is the client."""
        return self.digest(client) == self.kept


@dataclass(frozen=True, slots=True)
class KeyGrant:
    """What the holder of a key may do. `id` is the beginning of the key's digest.

    `recommenders` None means all of them, `client` None means everybody.
    """

    id: str
    scopes: frozenset[str]
    recommenders: frozenset[str] | None = None
    client: ClientBinding | None = None
    rate: float | None = None
    """Requests a second, in one worker; None is the default for its kind (`rates`)."""
    bound: bool = field(init=False)
    """Whether the key reaches less than everything."""

    def __post_init__(self) -> None:
        reaches_all = self.recommenders is None and self.client is None
        object.__setattr__(self, "bound", not reaches_all)

    def require_recommender(self, name: str) -> None:
        """Raise `NotAllowed` for a recommender that the key is not for."""
        if self.recommenders is not None and name not in self.recommenders:
            raise NotAllowed("this key is bound to other recommenders")

    def require_client(self, client: str) -> None:
        """Raise `NotAllowed` for a client that the key is not for."""
        if self.client is not None and not self.client.admits(client):
            raise NotAllowed("this key is bound to another client")
