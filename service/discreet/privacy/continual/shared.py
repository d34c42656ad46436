"""A continual sum that several processes release together, without a word between them.

The other sums of this package keep their noise in a state that one owner advances. Here rewards
arrive at many workers at once; the store counts and adds them, and numbers the steps by counting.
What is left to agree on is the noise, and this page says which noise belongs to which step:

    release(t) = exact sum of the first t steps + noise(n) for every node n of `nodes(t)`.

A node is named by the last step that it covers. Epochs double (see `doubling`): steps 2**e to
2**(e+1) - 1 are epoch e, with a tree of horizon 2**e of their own; in it, the s-th step completes
the node that covers the last lowbit(s) steps (a Fenwick tree), and a prefix of s steps is the
nodes s, s - lowbit(s), ... The last node of a closed epoch covers the whole epoch.

Guarantee. Neighbouring streams differ in the value of one step, by at most 1 (values are whole
multiples of `GRANULARITY`). A step lies in one epoch, and there in at most e + 1 nodes, one of each
size. Every node's noisy sum is a Laplace release of scale (e + 1)/epsilon, hence
epsilon/(e + 1)-DP, and they compose to epsilon, also when later steps are chosen after seeing
earlier releases (basic composition is adaptive). All releases are sums of noisy nodes, that is,
post-processing. Other epochs release the same numbers with the same law. So the stream costs
epsilon however long it becomes, and whichever of its prefixes are released.

That needs each node's noise to be drawn once and kept: the caller must store it before the first
release that contains it, and the first draw that is stored must win.

How many steps there were is public; so is which stream a step belongs to. Streams that share no
step (other cells, other requesters) therefore cost epsilon together, not each: parallel
composition.
"""

import math
from dataclasses import dataclass

from discreet.errors import InvalidArgument, StateOverflow
from discreet.privacy.continual import contract
from discreet.privacy.continual.dyadic import LaplaceTree
from discreet.privacy.events import LaplaceRelease
from discreet.privacy.noise import NoiseSource

STEPS = 2**20
"""Grid steps in a value of 1; sums and noise are whole numbers of them."""
GRANULARITY = 1 / STEPS
MOST_NOISE = 2**56


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSum:
    """Which noise a running sum of values in [0, 1] needs, at `epsilon` for the whole stream."""

    epsilon: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and 1e-3 <= self.epsilon <= 50):
            raise InvalidArgument("epsilon", "must be from 0.001 to 50")

    @property
    def event(self) -> LaplaceRelease:
        """What releasing all prefixes of all streams without a common step is."""
        return LaplaceRelease(scale=1 / self.epsilon * contract.UP, sensitivity=1.0)

    def nodes(self, step: int) -> tuple[int, ...]:
        """Return the nodes whose noise the release after `step` steps contains."""
        if not 0 <= step <= contract.MOST_HORIZON:
            raise InvalidArgument("step", "must be from 0 to 2**50")
        if step == 0:
            return ()
        epoch = step.bit_length() - 1
        closed = [(2 << earlier) - 1 for earlier in range(epoch)]
        before = (1 << epoch) - 1
        place = step - before
        opened = []
        while place:
            opened.append(before + place)
            place &= place - 1
        return (*closed, *opened)

    def scale(self, node: int) -> float:
        """Return the scale of a node's noise, in units of the values."""
        if node < 1:
            raise InvalidArgument("node", "must be at least 1")
        tree = LaplaceTree(
            horizon=1 << (node.bit_length() - 1),
            multiplier=1 / self.epsilon * contract.UP,
            granularity=GRANULARITY,
        )
        return tree.scale

    def draw(self, node: int, noise: NoiseSource) -> int:
        """Draw a node's noise, in grid steps. To be stored before it is used, and drawn once."""
        drawn = int(noise.discrete_laplace(scale=self.scale(node) * STEPS, size=1)[0])
        if abs(drawn) >= MOST_NOISE:
            raise StateOverflow("a draw left the range in which adding it is exact")
        return drawn

    def variance(self, step: int) -> float:
        """Return the exact variance of the noise in the release after `step` steps."""
        exact = contract.laplace_variance
        return sum(exact(self.scale(node) * STEPS) * GRANULARITY**2 for node in self.nodes(step))
