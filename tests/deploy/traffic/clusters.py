"""fclub: a local server that serves people, and a global one that merges its letters."""

from tests.deploy.traffic.stage import Stage

ITEMS = [
    {"id": "east", "features": [0.9, 0.0]},
    {"id": "west", "features": [-0.9, 0.0]},
    {"id": "north", "features": [0.0, 0.9]},
]


def prepare(stage: Stage) -> None:
    """Letters are short and frequent here, so that there is something to see within seconds."""
    document = {"algorithm": "fclub", "dimensions": 2}
    stage.put(stage.b, "roads", {**document, "role": "global"})
    stage.put(
        stage.a,
        "roads",
        {
            **document,
            "role": "local",
            "items": ITEMS,
            "global_server": {"name": "b", "url": stage.b.url},
            "sharing": {"epsilon": 10.0, "first_letter": 2, "growth": 0.05},
        },
    )


def step(stage: Stage, number: int) -> None:
    """Two kinds of people, who like opposite things."""
    for each in range(4):
        stage.visit("roads", f"driver-{each}", likes=0.9 if each % 2 else 0.2)
