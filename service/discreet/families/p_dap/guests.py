"""The side of a recommender that answers other vendors' users: Algorithm 2, as served.

Guests have cells of their own, because other people come from there, and each asking vendor says
how much its users' cells may be told: a learner for every such epsilon looks at the same cells.
Our own users' statistics are never read for a guest, nor written.
"""

from collections import OrderedDict
from hashlib import blake2b

from discreet.families.p_dap.contract import Learner
from discreet.families.p_dap.document import AdaptivePartitionDocument
from discreet.families.p_dap.learners import LearnerFactory
from discreet.privacy.continual.shared import SharedSum

MOST_LEARNERS = 8
"""Epsilons that are remembered at once. Asking vendors are few, and each has one."""


class Guests:
    """Learners for other vendors' users, and the names under which their statistics are kept."""

    def __init__(
        self,
        *,
        document: AdaptivePartitionDocument,
        generation: bytes,
        arms: int,
        learner_for: LearnerFactory,
    ) -> None:
        self._document = document
        self._arms = arms
        self._learner_for = learner_for
        self._learners: OrderedDict[float, Learner] = OrderedDict()
        self.generation = _derived(generation, b"guests")
        self.streams = _derived(generation, b"streams")
        self.books = _derived(generation, b"books")
        self.sums = SharedSum(epsilon=document.vendor_privacy.epsilon)
        self.paid: set[bytes] = set()
        """Accounts that were seen to have paid for this recommender's sums."""

    def learner(self, epsilon: float) -> Learner:
        """Return the learner whose answers tell at most `epsilon` about a guest's cell.

        Whatever mode our own users have, a guest's answer is protected by the guest's epsilon.
        """
        found = self._learners.get(epsilon)
        if found is None:
            privacy = self._document.privacy.model_copy(
                update={"epsilon": epsilon, "mode": "uniform"}
            )
            found = self._learner_for(
                document=self._document.model_copy(update={"privacy": privacy}),
                generation=self.generation,
                arms=self._arms,
            )
            self._learners[epsilon] = found
            if len(self._learners) > MOST_LEARNERS:
                self._learners.popitem(last=False)
        self._learners.move_to_end(epsilon)
        return found

    @property
    def learners(self) -> tuple[Learner, ...]:
        """The learners in memory."""
        return tuple(self._learners.values())


def _derived(generation: bytes, purpose: bytes) -> bytes:
    return blake2b(generation, digest_size=16, person=purpose).digest()
