"""Served instances that are joined as vendors, all in one process.

Everything is what really serves: each vendor is a server with a store of its own, and asks the
others through the gateway that the decisions know. Only the wire is left out: what would be a
request to another instance's `/peers` is a call of the function behind that route.
"""

import json
from collections.abc import Sequence
from typing import Any

from discreet.decisions.forwards import ForwardRequests
from discreet.errors import DiscreetError, PeerUnavailable
from discreet.families.p_dap.document import AdaptivePartitionDocument, VendorDocument
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.research.simulate.server import (
    ARRIVALS_PER_SECOND,
    SimulatedClock,
    SimulatedServer,
)
from discreet.research.worlds.contexts import Respond
from discreet.research.worlds.environments import Floats

NAME = "shop"
_REFUSED = 400


class InProcessVendors:
    """One instance's way to the others."""

    def __init__(self, *, requester: str) -> None:
        self._requester = requester
        self._forwards: dict[str, ForwardRequests] = {}

    def join(self, *, vendor: str, forwards: ForwardRequests) -> None:
        """Make another instance known."""
        self._forwards[vendor] = forwards

    def reachable(self, peer: str, *, urgent: bool = False) -> bool:
        """Tell whether the instance was joined."""
        return peer in self._forwards

    async def post(
        self, *, peer: str, url: str, content: bytes, urgent: bool = False
    ) -> tuple[int, bytes]:
        """Answer as the other instance's route would."""
        if peer not in self._forwards:
            raise PeerUnavailable("that vendor was not joined", reason="closed")
        name, what = url.split("/")[-2:]
        try:
            answer = await self._answer(self._forwards[peer], name, what, json.loads(content))
        except DiscreetError as error:
            return _REFUSED, str(error).encode()
        return 200, json.dumps(answer).encode()

    async def _answer(
        self, forwards: ForwardRequests, name: str, what: str, content: Any
    ) -> dict[str, Any]:
        if what == "forwards":
            item = await forwards.answer(
                requester=self._requester,
                recommender=name,
                centre=tuple(content["centre"]),
                epsilon=content["epsilon"],
            )
            return {"handle": item.handle, "expires_at": item.expires_at}
        await forwards.record(
            requester=self._requester,
            recommender=name,
            handle=content["handle"],
            reward=content["reward"],
        )
        return {"accepted": True}

    def distrust(self, *, peer: str, urgent: bool = False) -> None:
        """Nobody lies here."""


class ServedVendors:
    """Vendors as served: each with its own items, asking one another."""

    def __init__(
        self,
        *,
        servers: Sequence[SimulatedServer],
        documents: Sequence[AdaptivePartitionDocument],
    ) -> None:
        self.servers = servers
        self.forwarded = 0
        self._position: list[dict[str, int]] = []
        start = 0
        for document in documents:
            items = [item.id for item in document.items]
            self._position.append({item: start + at for at, item in enumerate(items)})
            start += len(items)

    @classmethod
    async def open(
        cls,
        *,
        documents: Sequence[AdaptivePartitionDocument],
        seed: Sequence[int],
        rate: float = ARRIVALS_PER_SECOND,
    ) -> "ServedVendors":
        """Open an instance for every document, and join each with all others."""
        clock = SimulatedClock(rate)  # one for all: a handle expires by one calendar
        gateways = [InProcessVendors(requester=_name(number)) for number in range(len(documents))]
        servers = []
        for number, (document, gateway) in enumerate(zip(documents, gateways, strict=True)):
            server = await SimulatedServer.open(seed=[*seed, number], clock=clock, peers=gateway)
            others = [
                VendorDocument(name=_name(other), url=f"http://{_name(other)}.invalid")
                for other in range(len(documents))
                if other != number
            ]
            await server.put(NAME, document.model_copy(update={"vendors": others}))
            servers.append(server)
        for number, gateway in enumerate(gateways):
            for other, server in enumerate(servers):
                if other != number:
                    gateway.join(vendor=_name(other), forwards=server.services.forwards)
        return cls(servers=servers, documents=documents)

    async def play(self, *, vendor: int, context: Floats, respond: Respond) -> int:
        """Serve a user of this vendor; an item of another's is opened there, as its shop would."""
        server = self.servers[vendor]
        answer = await server.recommend(NAME, context)
        owner, name = vendor, answer.items[0]
        if answer.vendor is not None:
            self.forwarded += 1
            owner = int(answer.vendor.removeprefix("vendor-"))
            name = (await self.servers[owner].services.forwards.open(name)).item
        item = self._position[owner][name]
        await server.record(answer, respond(item))
        if answer.vendor is not None:
            recommender = await server.services.registry.find(NAME)
            assert isinstance(recommender, PartitionRecommender)
            await recommender.vendors.settle()
        return item

    async def close(self) -> None:
        """Let go of every server."""
        for server in self.servers:
            await server.close()


def _name(number: int) -> str:
    return f"vendor-{number}"
