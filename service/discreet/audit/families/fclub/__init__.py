"""Claims and planted faults of federated clusters.

    observations   what one observation, or one person, moves, and which noise hides that
    closed_loop    one person in two worlds that are forced into one view: exact

The reading `observation` promises nothing in a closed loop, and no claim of that kind is made.
"""

from collections.abc import Iterator

from discreet.audit.claims import Claim, PlantedFault
from discreet.audit.families.fclub import closed_loop, observations


def claims() -> Iterator[Claim]:
    """Yield every claim."""
    yield from observations.claims()
    yield from closed_loop.claims()


def faults() -> Iterator[PlantedFault]:
    """Yield every planted fault."""
    yield from observations.faults()
    yield from closed_loop.faults()
