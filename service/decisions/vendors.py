"""Other vendors as arms of our own recommender: what is asked of them, and what is believed."""

from typing import Protocol

from service.algorithms.forwarding import Forward, Forwarded, RunningSum
from service.errors import VendorUnavailable

__all__ = [
    "Forward",
    "Forwarded",
    "NoVendors",
    "RunningSum",
    "VendorGateway",
    "VendorUnavailable",
]


class VendorGateway(Protocol):
    """The way to other vendors: over HTTP when serving, within the process in simulations."""

    def reachable(self, vendor: str) -> bool:
        """Tell, without waiting, whether the vendor may be asked now."""
        ...

    async def forward(self, *, vendor: str, forward: Forward) -> Forwarded:
        """Ask a vendor for an item; raise `VendorUnavailable` if none can be had in time."""
        ...

    async def feedback(self, *, vendor: str, recommender: str, handle: str, reward: float) -> None:
        """Tell a vendor how its item was received; raise `VendorUnavailable` to try again later."""
        ...

    def distrust(self, *, vendor: str) -> None:
        """Note that what the vendor said cannot be true: it counts as a failure."""
        ...


class NoVendors:
    """Nobody to ask."""

    def reachable(self, vendor: str) -> bool:
        return False

    async def forward(self, *, vendor: str, forward: Forward) -> Forwarded:
        raise VendorUnavailable("no vendors are joined to this process")

    async def feedback(self, *, vendor: str, recommender: str, handle: str, reward: float) -> None:
        raise VendorUnavailable("no vendors are joined to this process")

    def distrust(self, *, vendor: str) -> None: ...
