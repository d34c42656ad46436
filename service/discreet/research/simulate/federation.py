"""Served federated clusters: local servers and a global one, all in one process.

Every server is the shipped decisions over a store of its own. Only the wire is left out: what would
be a request to the global server's `/peers` is a call of the part behind that route.
"""

import json
from collections.abc import Callable, Sequence

from discreet.errors import DiscreetError
from discreet.families.fclub.document import FederatedClustersDocument
from discreet.families.fclub.sync.global_server import ArrivedUpdates, UpdatesFromServers
from discreet.families.questions import Ask, Candidate
from discreet.research.simulate.server import SimulatedClock, SimulatedServer
from discreet.research.worlds.environments import Floats

NAME = "shop"
GLOBAL = "global"
EXCHANGE_SECONDS = 0.25
"""Between two looks of a server at whether it is time to speak to the global one."""
_REFUSED = 400


class ToGlobalServer:
    """A local server's way to the global one; it counts what the paper calls communications.

    That is one for every noisy update that is sent, and one for every cluster that is received.
    """

    def __init__(self, part: UpdatesFromServers, *, label: str) -> None:
        self._part = part
        self._label = label
        self.communications = 0

    def reachable(self, peer: str, *, urgent: bool = False) -> bool:
        """It always is."""
        return True

    async def post(
        self, *, peer: str, url: str, content: bytes, urgent: bool = False
    ) -> tuple[int, bytes]:
        """Answer as the global server's route would."""
        message = json.loads(content)
        try:
            if url.endswith("/noisy-updates"):
                return 200, await self._accept(message)
            merged = self._part.merged_for(
                label=self._label, source=message["source"], seen=message["seen"]
            )
        except DiscreetError as error:
            return _REFUSED, str(error).encode()
        if merged is None:
            return 200, b"null"
        self.communications += len(json.loads(merged)["counts"])
        return 200, merged

    async def _accept(self, message: dict[str, object]) -> bytes:
        updates = message.pop("updates")
        assert isinstance(updates, list)
        wanted = await self._part.accept(
            ArrivedUpdates(
                label=self._label,
                updates=[
                    (one["number"], one["members"], one["steps"], one["deviation"])
                    for one in updates
                ],
                **message,  # type: ignore[arg-type]  # written by the sender of this very module
            )
        )
        self.communications += len(updates)
        return json.dumps({"next": wanted}).encode()

    def distrust(self, *, peer: str, urgent: bool = False) -> None:
        """Nobody lies here."""


class ServedFederation:
    """Users on local servers, which share through a global one unless they keep to themselves."""

    def __init__(
        self,
        *,
        local_servers: Sequence[SimulatedServer],
        global_server: SimulatedServer,
        gateways: Sequence[ToGlobalServer],
        servers: Sequence[int],
        clock: SimulatedClock,
    ) -> None:
        self.local_servers = local_servers
        self.global_server = global_server
        self._gateways = gateways
        self._servers = servers
        self._clock = clock
        self._next_exchange = 0.0

    @classmethod
    async def open(
        cls,
        *,
        document: FederatedClustersDocument,
        servers: Sequence[int],
        seed: Sequence[int],
        rate: float,
    ) -> "ServedFederation":
        """Open a local server with this document for every number in `servers`, one a user."""
        clock = SimulatedClock(rate)
        global_server = await SimulatedServer.open(seed=[*seed, 0], clock=clock)
        merging = FederatedClustersDocument(
            algorithm="fclub", role="global", dimensions=document.dimensions
        )
        await global_server.put(NAME, merging)
        part = (await global_server.services.registry.find(NAME)).part(UpdatesFromServers)
        local_servers, gateways = [], []
        for number in range(max(servers) + 1):
            gateway = ToGlobalServer(part, label=f"server-{number}")
            local = await SimulatedServer.open(seed=[*seed, 1 + number], clock=clock, peers=gateway)
            await local.put(NAME, document)
            local_servers.append(local)
            gateways.append(gateway)
        return cls(
            local_servers=local_servers,
            global_server=global_server,
            gateways=gateways,
            servers=servers,
            clock=clock,
        )

    @property
    def communications(self) -> int:
        """Return how often servers have spoken to each other."""
        return sum(gateway.communications for gateway in self._gateways)

    async def play(self, user: int, items: Floats, respond: Callable[[int], float]) -> int:
        """Recommend one of the items to a user, and learn the response."""
        self._clock.tick()
        await self._exchange()
        server = self.local_servers[self._servers[user]]
        candidates = [Candidate(str(row), tuple(x)) for row, x in enumerate(items.tolist())]
        answer = await server.ask(Ask(NAME, f"user {user}", candidates=candidates))
        chosen = int(answer.items[0])
        await server.record(answer, respond(chosen))
        return chosen

    async def _exchange(self) -> None:
        """Let every local server speak to the global one, if it is time."""
        if self._clock() < self._next_exchange:
            return
        self._next_exchange = self._clock() + EXCHANGE_SECONDS
        await self.global_server.release_due()
        for local in self.local_servers:
            (recommender,) = local.services.registry.loaded()
            await recommender.tend()

    async def close(self) -> None:
        """Let go of every server."""
        for server in (*self.local_servers, self.global_server):
            await server.close()
