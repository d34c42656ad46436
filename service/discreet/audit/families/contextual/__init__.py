"""Claims and planted faults of the contextual learner.

    records       one record: how far it moves a release, and what it is charged, in both spaces
    closed_loop   one person in two worlds that are forced into one view: exact

The draw of an answer is that of every family with a shortlist; `p_dap.answers` examines its law
for batches, lists and degraded answers, and `closed_loop` here for this family's own decisions.
"""

from collections.abc import Iterator

from discreet.audit.claims import Claim, PlantedFault
from discreet.audit.families.contextual import closed_loop, records


def claims() -> Iterator[Claim]:
    """Yield every claim."""
    yield from records.claims()
    yield from closed_loop.claims()


def faults() -> Iterator[PlantedFault]:
    """Yield every planted fault."""
    yield from records.faults()
    yield from closed_loop.faults()
