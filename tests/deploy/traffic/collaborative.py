"""collaborative: profiles that devices sent, and a model that is trained from them."""

from tests.deploy.traffic.stage import OFTEN, Stage

BOOKS = [f"book-{number}" for number in range(12)]


def prepare(stage: Stage) -> None:
    """A release trains on the profiles that came since the last one."""
    stage.put(stage.a, "library", {"algorithm": "collaborative", "items": BOOKS, "releases": OFTEN})


def step(stage: Stage, number: int) -> None:
    """A new profile, and a visit by its owner."""
    client = f"device-{number}"
    shelf = BOOKS[:6] if number % 2 else BOOKS[6:]
    profile = {"client": client, "items": stage.rng.sample(shelf, 4)}
    stage.post("/recommenders/library/profiles", profile)
    stage.visit("library", client, likes=0.6)
