"""Made-up traffic on every family, so that every series of every dashboard has something to show.

Two instances, `a` and `b`, know each other's keys. A family is a module with `prepare`, which puts
its recommenders, and `step`, a few calls. A new family adds a module, and itself to this list.
"""

from collections.abc import Mapping
from types import ModuleType

from tests.deploy.traffic import (
    clusters,
    collaborative,
    contextual,
    mirror,
    partition,
    voters,
)

FAMILIES: Mapping[str, ModuleType] = {
    "contextual": contextual,
    "p-dap": partition,
    "fclub": clusters,
    "mirror-descent": mirror,
    "p-rec": voters,
    "collaborative": collaborative,
}
