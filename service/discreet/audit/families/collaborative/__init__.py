"""Claims and planted faults of collaborative recommenders.

    profiles      what leaves a client's device: exact losses of every item of two catalogues
    closed_loop   one person's feedback in two worlds that are forced into one view: exact

Answers follow profiles as they were sent, and promise nothing about them.
"""

from collections.abc import Iterator

from discreet.audit.claims import Claim, PlantedFault
from discreet.audit.families.collaborative import closed_loop, profiles


def claims() -> Iterator[Claim]:
    """Yield every claim."""
    yield from profiles.claims()
    yield from closed_loop.claims()


def faults() -> Iterator[PlantedFault]:
    """Yield every planted fault."""
    yield from profiles.faults()
    yield from closed_loop.faults()
