"""p-rec: rounds, many voters, and clients who get what like-minded voters vote for."""

from tests.deploy.traffic.stage import Stage

VOTERS = 60


def prepare(stage: Stage) -> None:
    """The voters' budget pays for some runs; then clients are answered by chance."""
    stage.put(
        stage.a,
        "polls",
        {
            "algorithm": "p-rec",
            "objects": 2,
            "horizon": 4,
            "peers": 30,
            "voters": 1_000,
            "privacy": {"budget": {"epsilon": 200.0, "delta": 1e-4}},
        },
    )


def step(stage: Stage, number: int) -> None:
    """A round, its votes, one vote that comes too late, and some clients."""
    name = f"round-{number}"
    rounds = "/recommenders/polls/rounds"
    stage.post(rounds, {"id": name, "objects": ["yes", "no"]})
    votes = {f"voter-{each}": "yes" if each % 3 else "no" for each in range(VOTERS)}
    stage.post("/recommenders/polls/votes", {"round": name, "votes": votes})
    for each in range(3):
        stage.visit("polls", f"reader-{each}", likes=0.7)
    late = {"round": "round-0", "voter": "late", "object": "yes"}
    stage.a.client.post("/recommenders/polls/votes", json=late)
