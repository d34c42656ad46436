"""Everything that a run examines, found by reflection and not listed by hand.

Each module of `mechanisms` may have a function `claims`, a function `faults`, or both. Each family
that is registered must have a module (or a package) of its algorithm's name in `families`, with
both. A family without one is reported as unaudited, and the audit fails.
"""

import pkgutil
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from discreet.audit import families, mechanisms
from discreet.audit.claims import Claim, PlantedFault
from discreet.families.registration import FAMILIES


def _mechanisms() -> Iterator[ModuleType]:
    for found in pkgutil.iter_modules(mechanisms.__path__, f"{mechanisms.__name__}."):
        yield import_module(found.name)


def _module_of(algorithm: str) -> str:
    return f"{families.__name__}.{algorithm.replace('-', '_')}"


def unaudited(algorithms: Iterable[str] | None = None) -> list[str]:
    """Return the algorithms that nobody has written an audit for; by default, of all families."""
    wanted = FAMILIES if algorithms is None else algorithms
    return [each for each in wanted if find_spec(_module_of(each)) is None]


def _modules() -> Iterator[ModuleType]:
    yield from _mechanisms()
    missing = unaudited()
    for algorithm in FAMILIES:
        if algorithm not in missing:
            yield import_module(_module_of(algorithm))


def all_claims() -> Iterator[Claim]:
    """Yield every claim: first the mechanisms', then each family's."""
    for module in _modules():
        yield from getattr(module, "claims", tuple)()


def all_faults() -> Iterator[PlantedFault]:
    """Yield every fault that the examinations must notice, in the same order."""
    for module in _modules():
        yield from getattr(module, "faults", tuple)()
