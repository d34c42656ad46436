"""mirror-descent: two nodes that mix their models."""

from tests.deploy.traffic.stage import OFTEN, Stage

FEATURES = 12


def prepare(stage: Stage) -> None:
    """Each is the other's neighbour; releases and mixing come quickly."""
    document = {
        "algorithm": "mirror-descent",
        "features": {"dimension": FEATURES},
        "items": [
            {"id": f"ad-{number}", "features": {"indices": [number], "values": [1.0]}}
            for number in range(4)
        ],
        "releases": OFTEN,
        "mixing_seconds": 0.5,
        "privacy": {"feedback": {"epsilon": 20.0, "budget": {"epsilon": 5_000.0, "delta": 1e-3}}},
    }
    for server, name, other in ((stage.a, "b", stage.b), (stage.b, "a", stage.a)):
        stage.put(server, "ads", {**document, "neighbours": [{"name": name, "url": other.url}]})


def step(stage: Stage, number: int) -> None:
    """People who like the first ad best."""
    for each in range(4):
        stage.visit("ads", f"reader-{number}-{each}", likes=0.8)
