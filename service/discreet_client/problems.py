"""What can go wrong, as exceptions: problem documents (RFC 9457), and no answer at all.

ClientError
  Unreachable            nobody answered in time, or what answered is no Discreet
  ProblemError                the server said what is wrong
    InvalidRequest       400, 413, 422: say something else
    NotAllowedByKey      401, 403: use another key
    BudgetSpent          403: the client's privacy budget is spent, and the recommender refuses
    NotFound             404, 410: there is no such thing, or not any more
    RequestConflict      409: it contradicts what was said before
    ServerBusy           429: later; nothing was charged
    ServerUnavailable    5xx: later; `event_id` makes the retry free
"""

from collections.abc import Mapping
from typing import Any


class ClientError(Exception):
    """Anything that this client raises."""


class Unreachable(ClientError):
    """No answer in time, or one that cannot be read. `event_id` makes a retry free."""

    def __init__(self, reason: str, *, event_id: str | None = None) -> None:
        super().__init__(reason)
        self.event_id = event_id


class ProblemError(ClientError):
    """A problem document. `type` is stable; `detail` says what to change; `raw` is all of it."""

    def __init__(
        self, status: int, document: Mapping[str, Any], *, retry_after: float | None = None
    ) -> None:
        self.status = status
        self.type = str(document.get("type", ""))
        self.title = str(document.get("title", f"status {status}"))
        self.detail = str(document.get("detail", ""))
        self.retry_after = retry_after
        self.raw = dict(document)
        super().__init__(f"{self.title}: {self.detail}" if self.detail else self.title)

    @property
    def event_id(self) -> str | None:
        """The event under which a retry is free, where the server names one."""
        given = self.raw.get("event_id")
        return given if isinstance(given, str) else None


class InvalidRequest(ProblemError):
    """The request cannot be used as it is."""


class NotAllowedByKey(ProblemError):
    """The key is missing, unknown, or not for this."""


class BudgetSpent(ProblemError):
    """The client's privacy budget is spent, and the recommender refuses rather than degrades."""


class NotFound(ProblemError):
    """There is no such recommender, item or recommendation, or not any more."""


class RequestConflict(ProblemError):
    """It contradicts what was counted or answered before."""


class ServerBusy(ProblemError):
    """Too many requests. Nothing was charged."""


class ServerUnavailable(ProblemError):
    """The server, or its store, cannot answer now."""


def problem(
    status: int, document: Mapping[str, Any], *, retry_after: float | None = None
) -> ProblemError:
    """Return the exception for a problem document."""
    kinds: dict[int, type[ProblemError]] = {
        401: NotAllowedByKey,
        403: NotAllowedByKey,
        404: NotFound,
        409: RequestConflict,
        410: NotFound,
        429: ServerBusy,
    }
    kind = kinds.get(status, ServerUnavailable if status >= 500 else InvalidRequest)
    if str(document.get("type", "")).endswith(":budget-exhausted"):
        kind = BudgetSpent
    return kind(status, document, retry_after=retry_after)
