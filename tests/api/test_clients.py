"""What is kept about one client, over HTTP: shown and erased."""

import pytest

from tests.api.conftest import Caller

pytestmark = pytest.mark.anyio

NOTHING = {"epsilon": 0.0, "delta": 0.0}


async def test_an_unknown_client_has_spent_nothing(caller: Caller) -> None:
    budget = await caller.get("/clients/some%2Fone%20new/budget?recommender=films")
    assert budget.json() == {
        "answers": {"spent": NOTHING, "remaining": {"epsilon": 3.0, "delta": 1e-6}},
        "feedback": {"spent": NOTHING, "remaining": {"epsilon": 8.0, "delta": 1e-6}},
    }


async def test_answers_and_feedback_are_paid_from_two_accounts(caller: Caller) -> None:
    path = "/clients/two/budget?recommender=films"
    token = (await caller.ask("two")).json()["recommendation_id"]
    budget = (await caller.get(path)).json()
    assert budget["answers"]["spent"]["epsilon"] == 1.0
    assert budget["feedback"]["spent"] == NOTHING
    await caller.post("/feedback", json={"recommendation_id": token, "reward": 1})
    budget = (await caller.get(path)).json()
    assert budget["answers"]["spent"]["epsilon"] == 1.0
    # One piece of feedback costs what the document says, as far as rounding up allows.
    spent = budget["feedback"]["spent"]
    assert spent["epsilon"] == pytest.approx(1.0, rel=1e-3)
    assert spent["delta"] == 1e-6


async def test_feedback_that_cannot_be_paid_for_is_accepted_and_not_learned(
    caller: Caller,
) -> None:
    # Several pieces in one release share its noise, so that the n-th costs 2 n - 1 times as much.
    tokens = [
        (await caller.ask("keen", exclude=["a"], limit=1)).json()["recommendation_id"]
        for _ in range(8)
    ]
    receipts = [
        (await caller.post("/feedback", json={"recommendation_id": token, "reward": 1})).json()
        for token in tokens
    ]
    learned = [receipt["learned"] for receipt in receipts]
    assert all(receipt["accepted"] for receipt in receipts)
    assert learned[0]
    assert not learned[-1]
    assert learned == sorted(learned, reverse=True)
    budget = (await caller.get("/clients/keen/budget?recommender=films")).json()
    assert budget["feedback"]["spent"]["epsilon"] <= 8.0


async def test_erasing_forgets_answers_and_keeps_what_was_spent(caller: Caller) -> None:
    path = "/clients/some%2Fone%20else"
    await caller.ask("some/one else", event_id="to-be-erased")
    erased = (await caller.delete(path)).json()
    assert (erased["events"], erased["records"]) == (1, 0)
    assert erased["certificate"]["client"] == "some/one else"
    assert "ledger" in erased["certificate"]["remains"]
    proof = {name: erased[name] for name in ("certificate", "seal")}
    assert (await caller.post("/erasures/verify", json=proof)).json() == {"valid": True}
    proof["certificate"]["erased"]["stored_answers"] = 7
    assert (await caller.post("/erasures/verify", json=proof)).json() == {"valid": False}
    assert (await caller.post("/erasures/verify", json={"seal": "x"})).status_code == 422
    again = (await caller.delete(path)).json()
    assert (again["events"], again["certificate"]["erasure"]) == (0, 2)
    budget = (await caller.get(f"{path}/budget?recommender=films")).json()
    assert budget["answers"]["spent"]["epsilon"] == 1.0


async def test_a_budget_needs_a_recommender(caller: Caller) -> None:
    assert (await caller.get("/clients/x/budget?recommender=none")).status_code == 404
    assert (await caller.get("/clients/x/budget")).status_code == 422
