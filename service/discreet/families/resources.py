"""What a recommender is built with, and what it answers from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from discreet.families.observer import Observer
from discreet.families.peering import PeerGateway
from discreet.privacy.noise import NoiseSource
from discreet.state.principals import Principals
from discreet.state.stores import Store

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Resources:
    """What a recommender is built with. It keeps what it needs."""

    store: Store
    noise: NoiseSource
    observer: Observer
    principals: Principals
    peers: PeerGateway
    clock: Callable[[], float]


@dataclass(frozen=True, slots=True, eq=False)
class Current(Generic[M]):
    """The model that a worker answers from, the number of its release (0: none yet), its time."""

    number: int
    released_at: float
    model: M
