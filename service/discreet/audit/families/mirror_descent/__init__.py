"""Claims and planted faults of sparse mirror descent.

    records       one record: how far it moves a release, and what it is charged
    closed_loop   one person in two worlds that are forced into one view: exact

What neighbours tell each other is made from released sums, and needs no claim of its own.
"""

from collections.abc import Iterator

from discreet.audit.claims import Claim, PlantedFault
from discreet.audit.families.mirror_descent import closed_loop, records


def claims() -> Iterator[Claim]:
    """Yield every claim."""
    yield from records.claims()
    yield from closed_loop.claims()


def faults() -> Iterator[PlantedFault]:
    """Yield every planted fault."""
    yield from records.faults()
    yield from closed_loop.faults()
