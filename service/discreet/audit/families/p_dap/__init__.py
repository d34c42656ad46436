"""Claims and planted faults of the adaptive partition.

    answers                one answer, lists, batches, degraded answers: exact laws
    slots                  lists of which only the first items are drawn for the visitor
    feedback               one record: what it moves and what it is charged
    closed_loop            stories of one person, and what a closed loop has to know
    closed_loop_claims     the stories in two worlds that are forced into one view: exact
    closed_loop_sampled    the same by sampled runs alone

Other vendors' users (guests) are examined as far as their records go into released sums.
"""

from collections.abc import Iterator

from discreet.audit.claims import Claim, PlantedFault
from discreet.audit.families.p_dap import (
    answers,
    answers_planted,
    closed_loop_claims,
    closed_loop_sampled,
    feedback,
    slots,
)


def claims() -> Iterator[Claim]:
    """Yield every claim."""
    for module in (answers, slots, feedback, closed_loop_claims, closed_loop_sampled):
        yield from module.claims()


def faults() -> Iterator[PlantedFault]:
    """Yield every planted fault."""
    for module in (answers_planted, slots, feedback, closed_loop_claims, closed_loop_sampled):
        yield from module.faults()
