"""The administrator's explain call over HTTP."""

import pytest

from tests.api.conftest import Caller

pytestmark = pytest.mark.anyio

PATH = "/recommenders/films/explain"


async def test_an_explanation_says_that_it_is_not_protected(caller: Caller) -> None:
    answer = await caller.post(PATH, json={"context": [0.2, 0.7], "most": 2})
    found = answer.json()
    assert answer.status_code == 200
    assert (found["protected"], found["booked"], found["price"]) == (False, False, 1.0)
    assert len(found["items"]) == 2
    assert set(found["items"][0]) == {"id", "utility", "shortlisted", "odds", "odds_unpaid"}


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 422, "context"),
        ({"context": [0.2]}, 422, "context"),
        ({"context": [0.2, 0.7], "client": "ada"}, 422, "client"),
        ({"context": [0.2, 0.7], "most": 0}, 422, "most"),
        ({"context": [0.2, 0.7], "limit": 3}, 422, "limit"),
    ],
)
async def test_what_cannot_be_explained_is_named(
    caller: Caller, body: dict[str, object], status: int, field: str
) -> None:
    answer = await caller.post(PATH, json=body)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (status, field)


async def test_there_must_be_such_a_recommender(caller: Caller) -> None:
    assert (await caller.post("/recommenders/none/explain", json={})).status_code == 404
