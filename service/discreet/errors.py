"""Every error that Discreet raises on purpose, in one tree.

DiscreetError
├── InvalidArgument          a caller passed a value that cannot be used; names the argument
│   └── SeededNoiseRefused   reproducible noise was offered where real people are protected
├── UnknownEvent             an accountant was shown a release that it cannot price
├── Unpayable                a release of infinite cost was asked for without saying so aloud
├── Underpaid                a decision released more than was charged for it: never answered
├── StateOverflow            a sum would leave its 64-bit field; nothing was added
├── StoreUnavailable         the store did not answer; nothing is released (503)
│   ├── StoreUnread          it did not before anything was asked of it that counts or changes
│   ├── StoreFenced          it lost what it had acknowledged; nothing is released (503)
│   └── StoreDamaged         it holds something that cannot be read (503)
├── StoreUnsuitable          the store may lose ledgers or is of another schema; refuse to start
│   └── StoreEmpty           it holds nothing, and nobody said that it may be begun
├── UnknownRecommender       no such recommender (404)
├── RecommenderUnreadable    its document or model is nothing that this version can read (503)
├── DocumentChanged          If-Match names a document that is no longer there (412)
├── UnknownItem              no such item in this recommender (404 or 422)
├── UnknownDecision          no such event, or its recommender is gone (404)
├── BudgetExhausted          the principal's budget is spent and the recommender refuses (403)
├── NothingToRecommend       no item is available after exclusions (409)
├── TokenForged              a recommendation id that we did not seal (400)
├── TokenExpired             a recommendation id past its time (410)
├── RewardConflict           feedback that contradicts feedback already counted (409)
├── EventReused              an event id that already names another request (409)
├── ClientErased             the client was erased while a request of it was answered (409)
├── UnknownCode              an enrolment code that cannot be traded for a key (404)
├── TooManyDevices           a client with as many device keys as it may have (409)
├── Overloaded               more work than can be finished soon (429)
├── RateExceeded             a key that asks for more than it may (429)
├── PeerUnavailable          another instance was slow, dead, lying or unwilling; never shown
├── NotAuthenticated         no key, or an unknown one (401)
└── NotAllowed               the key lacks the scope, or is bound to something else (403)

Messages say what to change. They never repeat a client id, a context or a reward.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


class DiscreetError(Exception):
    """The root: catching it catches everything that Discreet raises on purpose."""

    def __reduce__(self) -> tuple[Callable[..., "DiscreetError"], tuple[Any, ...]]:
        """Travel between processes as it is, whatever its constructor takes."""
        return _as_it_was, (type(self), self.args, self.__dict__)


def _as_it_was(
    kind: type[DiscreetError], args: tuple[Any, ...], attributes: Mapping[str, Any]
) -> DiscreetError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error


class InvalidArgument(DiscreetError, ValueError):
    """A value that cannot be used; `argument` names it, `reason` says what would be accepted."""

    def __init__(self, argument: str, reason: str) -> None:
        super().__init__(f"{argument}: {reason}")
        self.argument = argument
        self.reason = reason


class SeededNoiseRefused(InvalidArgument):
    """Reproducible noise protects nobody: whoever knows the seed can subtract it."""

    def __init__(self, argument: str = "noise") -> None:
        super().__init__(argument, "must be the operating system's noise, not a seeded source")


class UnknownEvent(DiscreetError, TypeError):
    """A release without a price is refused, never free."""


class Unpayable(DiscreetError):
    """A release of infinite cost; only `privacy: {mode: none}` may ask for it."""


class Underpaid(DiscreetError):
    """What was released would cost more than what was charged; the answer is withheld."""


class StateOverflow(DiscreetError):
    """A sum would leave its 64-bit field; the whole update was refused."""


class StoreUnavailable(DiscreetError):
    """The store did not answer in time; `retry_after` is in seconds.

    What it was asked to write may have been written. A retry under `event_id`, where there is one,
    is not debited again.
    """

    def __init__(
        self,
        message: str = "the store is unavailable",
        retry_after: int = 1,
        event_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.event_id = event_id


class StoreUnread(StoreUnavailable):
    """The store was only to be read: nothing can have been counted or changed."""


class StoreFenced(StoreUnavailable):
    """The store was emptied, went back in time or is another one: only its operator can decide."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retry_after=30)


@contextmanager
def only_reading() -> Iterator[None]:
    """Let a store that does not answer be told of as `StoreUnread`."""
    try:
        yield
    except StoreFenced:
        raise
    except StoreUnavailable as error:
        raise StoreUnread(str(error), error.retry_after) from error


class StoreDamaged(StoreUnavailable):
    """What was asked for is there, and is nothing that can be read; others' may be well."""


class StoreUnsuitable(DiscreetError):
    """The store must not be used as it is: it may evict ledgers, or is of another schema."""


class StoreEmpty(StoreUnsuitable):
    """The store holds nothing: it is new, or it was emptied. Its operator knows which."""


class UnknownRecommender(DiscreetError, LookupError):
    """No recommender of that name."""


class RecommenderUnreadable(DiscreetError, LookupError):
    """A recommender whose stored document or model this version cannot read; another may."""

    retry_after = 5

    def __init__(self, reason: object, name: str = "") -> None:
        super().__init__(
            f"this version cannot read the recommender{name and ' ' + name}: {reason}; PUT it "
            "anew, which loses what it learned, or DELETE it, or use another version"
        )


class DocumentChanged(DiscreetError):
    """Somebody else changed the document that a caller wants to change; nothing was changed."""


class UnknownItem(DiscreetError, LookupError):
    """No such item in this recommender."""


class UnknownDecision(DiscreetError, LookupError):
    """No decision under that event id, or its recommender has been removed."""


class BudgetExhausted(DiscreetError):
    """The principal's budget is spent and the recommender is set to refuse."""


class NothingToRecommend(DiscreetError):
    """No item is left to recommend."""


class TokenForged(DiscreetError):
    """A recommendation id that none of our keys sealed."""


class TokenExpired(DiscreetError):
    """A recommendation id past its time."""


class RewardConflict(DiscreetError):
    """Another reward has already been counted for this decision."""


class ClientErased(DiscreetError):
    """The client was erased while the request was on its way; what it wrote was taken back."""


class EventReused(DiscreetError):
    """The event id already names a different request."""


class UnknownCode(DiscreetError):
    """The code was used, has expired or never was: which of them is not said."""


class TooManyDevices(DiscreetError):
    """The client has as many device keys and open codes as it may have."""


class Overloaded(DiscreetError):
    """There is more to do than can be finished soon; nothing was looked at, counted or debited."""

    retry_after = 1

    def __init__(self) -> None:
        super().__init__("too many requests at the moment; nothing was counted, try again later")


class RateExceeded(DiscreetError):
    """The key has asked for as much as it may for now; `retry_after` is in seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("this key asks for more than it may; nothing was counted, ask less often")
        self.retry_after = retry_after


class PeerUnavailable(DiscreetError):
    """Another instance gave no answer that can be used; we go on without it, or try again later.

    `reason` is one word for metrics: closed, busy, dead, slow, refused, malformed, implausible.
    """

    def __init__(self, message: str, reason: str = "dead") -> None:
        super().__init__(message)
        self.reason = reason


class NotAuthenticated(DiscreetError):
    """No API key, or one that we do not know."""


class NotAllowed(DiscreetError):
    """The API key lacks the scope that this call needs."""
