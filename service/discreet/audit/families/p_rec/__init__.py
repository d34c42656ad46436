"""Claims and planted faults of recommenders by voters' weights.

    runs      one voter in all answers of a client's run: exact
    served    what the proof presumes about votes, draws and payments, through the decisions

Answers are themselves the release of the votes; the draw of one is examined in `mechanisms.votes`.
"""

from collections.abc import Iterator

from discreet.audit.claims import Claim, PlantedFault
from discreet.audit.families.p_rec import runs, served


def claims() -> Iterator[Claim]:
    """Yield every claim."""
    yield from runs.claims()
    yield from served.claims()


def faults() -> Iterator[PlantedFault]:
    """Yield every planted fault."""
    yield from runs.faults()
    yield from served.faults()
