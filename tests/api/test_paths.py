"""Ids in addresses: one segment each, with encoded slashes."""

import pytest

from discreet.api.paths import SegmentConvertor, matched_path
from discreet.api.problems import Refused
from tests.api.conftest import Caller

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("client", ["ada/budget", "a b", "ö/ü", "100%2F", "%", "../x", "//"])
def test_an_encoded_id_is_one_segment(client: str) -> None:
    raw = "".join(f"%{byte:02X}" for byte in client.encode())
    path = matched_path(f"/clients/{raw}/budget".encode())
    start, segment, end = path.removeprefix("/").split("/")
    assert (start, end) == ("clients", "budget")
    convertor = SegmentConvertor()
    assert convertor.convert(segment) == client
    assert convertor.to_string(client) == segment


@pytest.mark.parametrize(
    "raw",
    [
        *(b"/clients/%ff", b"/clients/%ed%a0%80", b"/clients/a%00b"),
        *(b"/clients/a%zz", b"/clients/a%", b"/clients/a%2", b"/clients/%%41"),
    ],
)
def test_what_is_no_text_is_refused(raw: bytes) -> None:
    with pytest.raises(Refused):
        matched_path(raw)


async def test_erasing_a_budget_erases_nobody(caller: Caller) -> None:
    for client in ("ada/budget", "ada"):
        assert (await caller.ask(client, event_id=f"of {client}")).status_code == 200
    assert (await caller.delete("/clients/ada/budget")).status_code == 405
    assert (await caller.delete("/clients/ada/budget/")).status_code == 404
    assert (await caller.delete("/clients/ada%2Fbudget")).json()["events"] == 1
    assert (await caller.delete("/clients/ada")).json()["events"] == 1
    budget = await caller.get("/clients/ada%2Fbudget/budget?recommender=films")
    assert budget.json()["answers"]["spent"]["epsilon"] == 1.0
    assert (await caller.get("/clients/ada/budget/budget?recommender=films")).status_code == 404


async def test_an_address_that_is_no_text_is_a_problem(caller: Caller) -> None:
    answer = await caller.get("/clients/%ff/budget?recommender=films")
    assert answer.status_code == 400
    assert answer.json()["type"] == "urn:discreet:problem:bad-request"
