"""p-dap with a vendor: contexts, retries, budgets that end, feedback that is wrong."""

from typing import Any

from tests.deploy.traffic.stage import OFTEN, Stage

DIMENSIONS = 2


def _document(**changes: Any) -> dict[str, Any]:
    return {
        "algorithm": "p-dap",
        "items": [f"film-{number}" for number in range(6)],
        "context": {"dimensions": DIMENSIONS},
        "partition": {"base": 20},
        "releases": OFTEN,
        **changes,
    }


def prepare(stage: Stage) -> None:
    """`films` asks its vendor, `tight` has little to spend, `bare` protects no context."""
    stage.put(stage.b, "films", _document(items=["zither", "zebra"]))
    stage.put(
        stage.a,
        "films",
        _document(
            vendors=[{"name": "b", "url": stage.b.url}],
            exploration={"rate": 0.5},
            privacy={
                "answers": {"epsilon": 1.0, "budget": {"epsilon": 50.0}},
                "feedback": {"epsilon": 20.0, "budget": {"epsilon": 1e6}},
            },
        ),
    )
    stage.put(
        stage.a,
        "tight",
        _document(
            privacy={
                "answers": {"epsilon": 0.5, "budget": {"epsilon": 4.0}},
                "feedback": {"epsilon": 1.0, "budget": {"epsilon": 2.0}},
            }
        ),
    )
    stage.put(stage.a, "bare", _document(privacy={"answers": "exact"}))


def step(stage: Stage, number: int) -> None:
    """A few visitors; one of them twice, one of them with an id that nobody issued."""
    for each in range(4):
        context = [stage.rng.random() for _ in range(DIMENSIONS)]
        stage.visit("films", f"client-{number}-{each}", likes=context[0], context=context)
    context = [stage.rng.random() for _ in range(DIMENSIONS)]
    stage.visit("tight", f"client-{number % 3}", context=context)
    stage.visit("bare", f"client-{number}", context=context)
    again = {"recommender": "films", "client": "ada", "context": context, "event_id": f"e{number}"}
    answer = stage.post("/recommend", again)
    assert stage.post("/recommend", again) == answer
    feedback = {"recommendation_id": answer["recommendation_id"], "reward": 1}
    assert stage.post("/feedback", feedback)["duplicate"] is False
    assert stage.post("/feedback", feedback)["duplicate"] is True
    forged = stage.a.client.post("/feedback", json={"recommendation_id": "A" * 80, "reward": 1})
    assert forged.status_code == 400
