"""How a document becomes a learner of the adaptive partition."""

from typing import Protocol

from discreet.families.p_dap.adaptive_partition import AdaptivePartition
from discreet.families.p_dap.contract import Learner
from discreet.families.p_dap.document import AdaptivePartitionDocument


class LearnerFactory(Protocol):
    """How a document becomes a learner. Only a simulation may use another than `learner_for`."""

    def __call__(
        self, *, document: AdaptivePartitionDocument, generation: bytes, arms: int
    ) -> Learner: ...


def learner_for(*, document: AdaptivePartitionDocument, generation: bytes, arms: int) -> Learner:
    """Return the learner with the document's parameters, for statistics of `arms` slots."""
    return AdaptivePartition(
        generation=generation,
        dimensions=document.context.dimensions,
        arms=arms,
        segments=document.partition.segments,
        base=document.partition.base,
        growth=document.partition.growth,
        similarity=document.partition.similarity,
        exploration_rate=document.exploration.rate,
        epsilon=document.privacy.epsilon,
        mode=document.privacy.mode,
    )
