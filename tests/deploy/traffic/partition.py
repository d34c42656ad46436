"""p-dap with a vendor: contexts, retries, budgets that end, feedback that is wrong."""

from typing import Any

from tests.deploy.traffic.stage import Stage

DIMENSIONS = 2


def _document(**changes: Any) -> dict[str, Any]:
    return {
        "algorithm": "p-dap",
        "items": [f"film-{number}" for number in range(6)],
        "context": {"dimensions": DIMENSIONS},
        "partition": {"base": 20},
        **changes,
    }


def prepare(stage: Stage) -> None:
    """`films` asks its vendor, `tight` has little to spend, `bare` protects nobody."""
    stage.put(stage.b, "films", _document(items=["zither", "zebra"]))
    stage.put(
        stage.a,
        "films",
        _document(
            vendors=[{"name": "b", "url": stage.b.url}],
            exploration={"rate": 0.5},
            privacy={"epsilon": 1.0, "budget": {"epsilon": 50.0}},
        ),
    )
    stage.put(
        stage.a,
        "tight",
        _document(
            privacy={
                "epsilon": 0.5,
                "budget": {"epsilon": 4.0, "delta": 1e-6},
                "accounting": "zcdp",
            }
        ),
    )
    stage.put(stage.a, "bare", _document(privacy={"mode": "none"}))


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
    told = {"recommendation_id": answer["recommendation_id"], "reward": 1}
    assert stage.post("/feedback", told)["duplicate"] is False
    assert stage.post("/feedback", told)["duplicate"] is True
    forged = stage.a.client.post("/feedback", json={"recommendation_id": "A" * 80, "reward": 1})
    assert forged.status_code == 400
