"""A store under test, with what a test may do to it from outside."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from discreet.state.stores import Store


@dataclass
class Place:
    """A fresh store, a way to let time pass in it, and where other clients find the same data.

    A store in memory has one client: its `url` is None.
    """

    store: Store
    elapse: Callable[[float], Awaitable[None]]
    url: str | None
    namespace: str
