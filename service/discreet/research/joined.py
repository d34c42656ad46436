"""Served instances that are joined as vendors, all in one process.

Everything is what really serves: each vendor has a runtime and a store of its own, and asks the
others through the gateway that the decisions know. Only the wire is left out: what would be a
request to another instance's `/peers` is a call of the function behind that route.
"""

from collections.abc import Sequence

from discreet.families.p_dap.document import AdaptivePartitionDocument, VendorDocument
from discreet.families.p_dap.forwards import answer_forward, hear_feedback, open_handle
from discreet.families.p_dap.vendors import Forward, Forwarded
from discreet.decisions.runtime import Runtime
from discreet.errors import PeerUnavailable
from discreet.research.environments import Floats
from discreet.research.players import Clock, Respond, Seat

NAME = "shop"


class InProcessVendors:
    """One instance's way to the others."""

    def __init__(self, *, requester: str) -> None:
        self._requester = requester
        self._runtimes: dict[str, Runtime] = {}

    def join(self, *, vendor: str, runtime: Runtime) -> None:
        """Make another instance known."""
        self._runtimes[vendor] = runtime

    def reachable(self, vendor: str) -> bool:
        """Tell whether the instance was joined."""
        return vendor in self._runtimes

    async def forward(self, *, vendor: str, forward: Forward) -> Forwarded:
        """Ask another instance for an item."""
        return await answer_forward(
            self._runtime(vendor), requester=self._requester, forward=forward
        )

    async def feedback(self, *, vendor: str, recommender: str, handle: str, reward: float) -> None:
        """Tell another instance how its item was received."""
        await hear_feedback(
            self._runtime(vendor),
            requester=self._requester,
            recommender=recommender,
            handle=handle,
            reward=reward,
        )

    def distrust(self, *, vendor: str) -> None:
        """Nobody lies here."""

    def _runtime(self, vendor: str) -> Runtime:
        if vendor not in self._runtimes:
            raise PeerUnavailable("that vendor was not joined")
        return self._runtimes[vendor]


class JoinedInstances:
    """Vendors at play, as served."""

    def __init__(
        self, *, seats: Sequence[Seat], documents: Sequence[AdaptivePartitionDocument]
    ) -> None:
        self.seats = seats
        self.forwarded = 0
        self._position: list[dict[str, int]] = []
        start = 0
        for document in documents:
            items = [item.id for item in document.items]
            self._position.append({item: start + at for at, item in enumerate(items)})
            start += len(items)

    @classmethod
    async def open(
        cls, *, documents: Sequence[AdaptivePartitionDocument], seed: Sequence[int]
    ) -> "JoinedInstances":
        """Open an instance for every document, and join each with all others."""
        clock = Clock()  # one for all: a handle must not expire by another's calendar
        gateways = [InProcessVendors(requester=_name(number)) for number in range(len(documents))]
        seats = []
        for number, (document, gateway) in enumerate(zip(documents, gateways, strict=True)):
            seat = await Seat.open(seed=[*seed, number], clock=clock, vendors=gateway)
            others = [
                VendorDocument(name=_name(other), url=f"http://{_name(other)}.invalid")
                for other in range(len(documents))
                if other != number
            ]
            await seat.place(NAME, document.model_copy(update={"vendors": others}))
            seats.append(seat)
        for number, gateway in enumerate(gateways):
            for other, seat in enumerate(seats):
                if other != number:
                    gateway.join(vendor=_name(other), runtime=seat.runtime)
        return cls(seats=seats, documents=documents)

    async def play(self, *, vendor: int, context: Floats, respond: Respond) -> int:
        """Serve a user of this vendor; an item of another's is opened there, as its shop would."""
        seat = self.seats[vendor]
        answer = await seat.ask(NAME, context)
        owner, name = vendor, answer.items[0]
        if answer.vendor is not None:
            self.forwarded += 1
            owner = int(answer.vendor.removeprefix("vendor-"))
            name = (await open_handle(self.seats[owner].runtime, handle=name)).item
        item = self._position[owner][name]
        await seat.tell(answer, respond(item))
        return item

    async def close(self) -> None:
        """Let go of every runtime."""
        for seat in self.seats:
            await seat.close()


def _name(number: int) -> str:
    return f"vendor-{number}"
