"""fclub: a local server that serves people, and a global one that merges its noisy updates."""

from tests.deploy.traffic.stage import OFTEN, Stage

ITEMS = [
    {"id": "east", "features": [0.9, 0.0]},
    {"id": "west", "features": [-0.9, 0.0]},
    {"id": "north", "features": [0.0, 0.9]},
]
PEOPLE = 24


def prepare(stage: Stage) -> None:
    """Updates are frequent and hardly noisy, so that there is something to see within seconds."""
    document = {"algorithm": "fclub", "dimensions": 2, "releases": OFTEN}
    stage.put(stage.b, "roads", {**document, "role": "global"})
    stage.put(
        stage.a,
        "roads",
        {
            **document,
            "role": "local",
            "items": ITEMS,
            "global_server": {"name": "b", "url": stage.b.url},
            "learning": {"kinds": 2},
            "sharing": {"first_update": 2, "growth": 0.05},
            "privacy": {"feedback": {"epsilon": 50.0, "budget": {"epsilon": 1e6}}},
        },
    )


def step(stage: Stage, number: int) -> None:
    """Two kinds of people, who like opposite things; enough of them to exceed the noise."""
    for each in range(4 * number, 4 * number + 4):
        stage.visit("roads", f"driver-{each % PEOPLE}", likes=0.9 if each % 2 else 0.2)
