"""Adaptive partition as its paper publishes it: P-DAP and GP-DAP, and DAP, CAP and DUP beside them.

P. Zhou, Y. Zhou, D. Wu, H. Jin: Differentially Private Online Learning for Cloud-Based Video
Recommendation with Multimedia Big Data in Social Networks. IEEE Transactions on Multimedia 18(6),
2016. Here is Algorithm 1 (ExP-DAP), what a vendor does for its own users, line by line, with the
geometric privacy of section VI; `p_dap_others` is Algorithm 2, and `p_dap_vendors` lets vendors
with both meet.

| paper's symbol | name here | range |
|---|---|---|
| x_i(t) | `context` | [0,1]^d |
| d | `dimensions` | >= 1 |
| K, M_i | own items, the slots below `items` | >= 1 |
| M_-i | `vendors`, the slots from `items` on | >= 0 |
| l | `cell.level` | 0, 1, ... |
| M_C, N_kC, r_kC | `arrivals`, `counts`, `means` of a cell | >= 0, >= 0, any |
| N_1kC | counts of the slots from `items + vendors` on | >= 0 |

Constants and control functions: `p_dap_cells.PartitionParameters`.

How it is read where the paper is silent or contradicts itself
- K_i, printed as an intersection, is the union of the own items and the other vendors.
- The split exponent of line 19, printed b, is the p of the text.
- "There is some k" in lines 4, 6 and 8: the one that was tried least.
- ln(t) in the control functions is ln(T): a learner need not know what time it is elsewhere.
- G_2 is printed with a term Gamma/4 * m^(alpha l), Gamma = theta ln^2(T) ln(theta T ln(T) /
  sigma) / epsilon. At T = 30,000, four vendors and epsilon 0.01 that asks for more than 100,000
  forwards to every vendor from every cell, so that line 8 would never be left. It is left out.
- CAP, the centralised rival, is this algorithm with one learner that sees every arrival and owns
  every vendor's items: `vendors` 0 and mode none.
- DUP, the uniform rival, is mode none with `uniform_level`: cells of one size, never split. With
  its own paper's size it explores for all of 30,000 arrivals; `explorable_level` gives it larger
  cells, which it explores for at most half of the time.
- DAP is mode none. In all of them, G_1 and the split rule are the same.

Guarantee card
- Protects: nobody. For simulations and comparison only; a server must not pass it off as private.
- The paper claims (Theorem 4) epsilon-DP of the answers to one user in that user's context. The
  claim does not hold: lines 4 to 9 answer a deterministic function of the cell, so does line 16,
  and Lemma 2 takes L * m^-alpha for the sensitivity although its own Definition 3 lets contexts
  differ by 1 and the utilities are empirical means of two different cells, which may differ by
  the whole range.
"""

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.privacy.choice import ExponentialMechanism
from discreet.privacy.noise import NoiseSource
from discreet.research.published.p_dap_cells import Cell, Cells, Floats, PartitionParameters

Slots = npt.NDArray[np.intp]

_MOST_RANGE = 1_300.0
"""Above this epsilon over sensitivity, exponentials no longer fit the sampler's tables. The best
arm's weight is then e^650 times a worthless arm's, and means that differ by a hundredth by e^6."""


class PublishedAdaptivePartition:
    """Algorithm 1 with mode uniform (P-DAP), geometric (GP-DAP) or none (DAP, CAP, DUP).

    The slots after the own items stand for other vendors: first one a vendor for evaluated
    forwards (lines 8, 9 and 16), then one a vendor for training forwards (lines 6 and 7). What is
    learned about the former may be noisy and outside [0, 1]; of the latter only the number counts.
    """

    def __init__(
        self,
        parameters: PartitionParameters,
        *,
        dimensions: int,
        items: int,
        vendors: int = 0,
        noise: NoiseSource,
    ) -> None:
        if items < 1:
            raise InvalidArgument("items", "must be at least 1")
        if vendors < 0:
            raise InvalidArgument("vendors", "must not be negative")
        self.parameters = parameters
        slots = np.arange(items + 2 * vendors)
        self._items, self._evaluated, self._trained = np.split(slots, [items, items + vendors])
        self.cells = Cells(parameters, dimensions=dimensions, slots=len(slots))
        self._noise = noise
        self._mechanisms: dict[int, ExponentialMechanism] = {}

    def decide(self, context: Floats) -> tuple[Cell, int]:
        """Return the active cell and the chosen slot: lines 3 to 16."""
        cell = self.cells.active(context)
        return cell, self._choose(cell, cell.means())

    def _choose(self, cell: Cell, means: Floats) -> int:
        # Lines 4 and 5, 6 and 7, 8 and 9: whoever was not tried enough here is tried.
        least = self.parameters.control(cell.level)
        for slots in (self._items, self._trained, self._evaluated):
            short = slots[cell.counts[slots] < least]
            if len(short):
                return int(short[cell.counts[short].argmin()])
        # Lines 11 to 14. Without privacy (DAP) the best mean is selected itself.
        utilities = means[self._items]
        if self.parameters.mode == "none":
            chosen = int(utilities.argmax())
        else:
            chosen = self.mechanism(cell.level).choose(utilities=utilities, noise=self._noise).value
        # Lines 15 and 16: the best vendor is called if it is better than what was drawn.
        if len(self._evaluated):
            vendor = int(self._evaluated[means[self._evaluated].argmax()])
            if utilities[chosen] < means[vendor]:
                return vendor
        return chosen

    def mechanism(self, level: int) -> ExponentialMechanism:
        """Return line 12 at this level; in section VI epsilon is eps_0 * m^(alpha * l)."""
        known = self._mechanisms.get(level)
        if known is None:
            sensitivity = self.parameters.sensitivity
            known = self._mechanisms[level] = ExponentialMechanism(
                epsilon=min(self.parameters.epsilon_at(level), _MOST_RANGE * sensitivity),
                sensitivity=sensitivity,
            )
        return known

    def learn(self, cell: Cell, slot: int, reward: float) -> None:
        """Line 18: M_C, N_kC and the sum behind r_kC. Lines 19 to 21 follow from M_C."""
        if slot < len(self._items) and not 0.0 <= reward <= 1.0:
            raise InvalidArgument("reward", "must be a number from 0 to 1 for an own item")
        cell.add(slot, reward)
