"""Two vendors in one process: a gateway that calls the other's decisions directly."""

import math
from dataclasses import dataclass, field

from discreet.families.p_dap.forwarding import Forward, Forwarded
from discreet.families.p_dap.document import AdaptivePartitionDocument
from discreet.families.p_dap.forwards import answer_forward, hear_feedback
from discreet.decisions.recommend import Ask, Recommendation, recommend
from discreet.decisions.runtime import Runtime
from discreet.errors import DiscreetError, PeerUnavailable
from discreet.privacy.noise import NoiseSource, SystemNoise
from discreet.state.memory import MemoryStore
from tests.decisions.conftest import Clock, document

MANY = 400
"""Draws in which an arm with probability 1/2 fails to turn up with probability 2**-400."""


@dataclass
class Wire:
    """A gateway to other runtimes that remembers what was said, and can be cut."""

    name: str
    others: dict[str, Runtime] = field(default_factory=dict)
    forwards: list[Forward] = field(default_factory=list)
    answers: list[Forwarded] = field(default_factory=list)
    cut: bool = False
    hidden: bool = False
    distrusted: int = 0
    lie: Forwarded | None = None

    def reachable(self, vendor: str) -> bool:
        return vendor in self.others and not self.hidden

    async def forward(self, *, vendor: str, forward: Forward) -> Forwarded:
        self.forwards.append(forward)
        if self.cut:
            raise PeerUnavailable("cut", reason="slow")
        answer = self.lie or await answer_forward(
            self.others[vendor], requester=self.name, forward=forward
        )
        self.answers.append(answer)
        return answer

    async def feedback(self, *, vendor: str, recommender: str, handle: str, reward: float) -> None:
        if self.cut:
            raise PeerUnavailable("cut", reason="slow")
        try:
            await hear_feedback(
                self.others[vendor],
                requester=self.name,
                recommender=recommender,
                handle=handle,
                reward=reward,
            )
        except DiscreetError as error:
            raise AssertionError(f"the vendor refused feedback: {error}") from error

    def distrust(self, *, vendor: str) -> None:
        self.distrusted += 1


async def open_runtime(
    clock: Clock,
    vendors: Wire | None = None,
    *,
    store: MemoryStore | None = None,
    noise: NoiseSource | None = None,
) -> Runtime:
    return await Runtime.open(
        store=store or MemoryStore(clock=clock),
        noise=noise or SystemNoise(),
        lease_seconds=math.inf,
        survey_seconds=math.inf,
        vendors=vendors,
        clock=clock,
    )


def asking(**changes: object) -> AdaptivePartitionDocument:
    """The asking side: one item of its own, and one vendor."""
    fields: dict[str, object] = {
        "items": ["own"],
        "vendors": [{"name": "b", "url": "http://b.example"}],
        "privacy": {"epsilon": 1.0, "budget": {"epsilon": 1_000.0}},
        **changes,
    }
    return document(**fields)


async def ask(runtime: Runtime, client: str = "x", **changes: object) -> Recommendation:
    fields: dict[str, object] = {"context": [0.3, 0.6], **changes}
    return await recommend(runtime, Ask(recommender="films", client=client, **fields))  # type: ignore[arg-type]


async def ask_for_vendor(runtime: Runtime, **changes: object) -> Recommendation:
    """Ask until the vendor is drawn."""
    for _ in range(MANY):
        answer = await ask(runtime, **changes)
        if answer.vendor is not None:
            return answer
    raise AssertionError("the vendor was never drawn")
