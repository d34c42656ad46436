"""Heads of requests that were read before: the same bytes mean the same again.

Most callers send one head over and over, but for the length of the body. Parsing it costs more than
deciding what is asked. So a worker keeps what it made of a head whose request was answered: the
route, the headers, the length of the body, and what the key allows. Whoever sends the very same
bytes is spared the rest. What the key allows is looked up anew once anything configured has
changed.

Heads that name their request or trace differ every time and are not kept, nor are those with a
device's key, which is looked up at every use.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.api.routing import DirectRoute
from discreet.api.security import bearer
from discreet.decisions.devices import DEVICE_PREFIX
from discreet.decisions.grants import KeyGrant
from discreet.errors import NotAuthenticated

LONGEST_HEAD = 1_024
MOST_HEADS = 4_096
"""In all some megabytes. When there are more, all are forgotten, and read anew when they come."""
_NAMING = frozenset({b"x-request-id", b"traceparent", b"tracestate"})
END = b"\r\n\r\n"


@dataclass(slots=True, eq=False)
class KnownHead:
    """What was made of a head: `length` of its body, and `grant` as of an epoch of what is
    configured, None until a request with it was authorised."""

    route: DirectRoute
    headers: Sequence[tuple[bytes, bytes]]
    length: int
    grant: KeyGrant | None = None
    epoch: int = -1


class KnownHeads:
    """The heads that one worker knows, by their bytes."""

    def __init__(self) -> None:
        self._heads: dict[bytes, KnownHead] = {}
        self.find = self._heads.get

    def __len__(self) -> int:
        return len(self._heads)

    def keep(self, content: bytes, head: KnownHead) -> None:
        """Remember a head whose request was answered, unless it will not come again."""
        if len(content) > LONGEST_HEAD or any(name in _NAMING for name, _ in head.headers):
            return
        try:
            if bearer(head.headers).startswith(DEVICE_PREFIX):
                return
        except NotAuthenticated:
            return
        if len(self._heads) >= MOST_HEADS:
            self._heads.clear()
        self._heads[content] = head
