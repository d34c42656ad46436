"""contextual whose clients say nothing: awaited decisions, and a log that cannot be written."""

from tests.deploy.traffic.stage import OFTEN, Stage

MOST_OPEN = 64


def prepare(stage: Stage) -> None:
    """`shop` awaits few rewards at a time; a file lies where its decision log should go."""
    (stage.a.data / "decisions").touch()
    stage.put(
        stage.a,
        "shop",
        {
            "algorithm": "contextual",
            "items": ["apron", "basket"],
            "context": {"dimensions": 1},
            "reward": {"wait": "20s", "default": 0, "most_open": MOST_OPEN},
            "log": {"to": "file"},
            "releases": OFTEN,
        },
    )


def step(stage: Stage, number: int) -> None:
    """A crowd that looks and says nothing: more than may be awaited in all, on any shard."""
    stage.post(
        "/recommend/batch",
        {
            "requests": [
                {"recommender": "shop", "client": f"looker-{number}-{each}", "context": [0.5]}
                for each in range(2 * MOST_OPEN)
            ]
        },
    )
