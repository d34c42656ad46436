"""What other instances may ask over HTTP, and what they are told."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from discreet.families.p_dap.document import AdaptivePartitionDocument
from tests.api.conftest import FILMS, Caller, calling

pytestmark = pytest.mark.anyio

FORWARD = {"centre": [0.25, 0.75], "epsilon": 0.5}


@pytest.fixture(scope="module")
async def vendor(anyio_backend: str) -> AsyncIterator[tuple[Caller, dict[str, str]]]:
    """A running application, and a peer's headers."""
    async with calling() as caller:
        key = await caller.live["services"].keys.create(label="a", scopes=frozenset({"peer"}))
        yield caller, {"Authorization": f"Bearer {key}"}


Vendor = tuple[Caller, dict[str, str]]


async def forward(vendor: Vendor, name: str = "films", **changes: Any) -> httpx.Response:
    caller, headers = vendor
    path = f"/peers/recommenders/{name}/forwards"
    return await caller.post(path, json={**FORWARD, **changes}, headers=headers)


async def test_a_forward_is_answered_with_a_handle(vendor: Vendor) -> None:
    caller, headers = vendor
    answer = await forward(vendor)
    assert answer.status_code == 200
    body = answer.json()
    assert set(body) == {"handle", "expires_at"}
    path = "/peers/recommenders/films/feedback"
    for reward in (1, 1, 0):
        received = await caller.post(
            path, json={"handle": body["handle"], "reward": reward}, headers=headers
        )
        assert (received.status_code, received.json()) == (200, {"accepted": True})
    opened = await caller.post("/handles/open", json={"handle": body["handle"]})
    assert set(opened.json()) == {"recommender", "item", "expires_at"}
    assert opened.json()["item"]["id"] in FILMS["items"]  # type: ignore[operator]


@pytest.mark.parametrize("given", [None, 0, 1], ids=["no reward", "dislike", "like"])
async def test_an_asking_vendor_cannot_find_out_which_reward_the_user_gave_to_us(
    vendor: Vendor, given: int | None
) -> None:
    """The attack: it holds the handle, and reports one reward, then the other."""
    caller, headers = vendor
    handle = (await forward(vendor)).json()["handle"]
    if given is not None:
        said = {"recommendation_id": handle, "reward": given}
        assert (await caller.post("/feedback", json=said)).json()["duplicate"] is False
    for reward in (0, 1, 0.5):
        tried = await caller.post(
            "/peers/recommenders/films/feedback",
            json={"handle": handle, "reward": reward},
            headers=headers,
        )
        assert (tried.status_code, tried.json()) == (200, {"accepted": True})
    # What counts is what came first.
    kept = await caller.post("/feedback", json={"recommendation_id": handle, "reward": given or 0})
    assert kept.json()["duplicate"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"centre": []}, "centre"),
        ({"centre": [0.5]}, "centre"),
        ({"centre": [0.5, 2]}, "centre[1]"),
        ({"centre": ["0.5", 0.5]}, "centre[0]"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 51}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"client": "x"}, "client"),
    ],
)
async def test_fields_that_cannot_be_used_are_named(
    vendor: Vendor, changes: dict[str, Any], field: str
) -> None:
    answer = await forward(vendor, **changes)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == field


async def test_an_unknown_recommender_is_404(vendor: Vendor) -> None:
    assert (await forward(vendor, "nothing")).status_code == 404


async def test_a_handle_that_is_none_is_400(vendor: Vendor) -> None:
    caller, headers = vendor
    for path, body in (
        ("/handles/open", {"handle": "x"}),
        ("/peers/recommenders/films/feedback", {"handle": "x", "reward": 1}),
    ):
        peers = headers if path.startswith("/peers") else None
        answer = await caller.post(path, json=body, headers=peers)
        assert answer.status_code == 400
        assert answer.json()["type"] == "urn:discreet:problem:invalid-recommendation-id"


async def test_a_key_can_be_replaced_under_the_same_label(vendor: Vendor) -> None:
    """Whoever asked is known by the label, so that feedback may come under a newer key."""
    caller, _ = vendor
    handle = (await forward(vendor)).json()["handle"]
    keys = caller.live["services"].keys
    newer = await keys.create(label="a", scopes=frozenset({"peer"}))
    other = await keys.create(label="c", scopes=frozenset({"peer"}))
    body = {"handle": handle, "reward": 1}
    for key, status in ((other, 400), (newer, 200)):
        answer = await caller.post(
            "/peers/recommenders/films/feedback",
            json=body,
            headers={"Authorization": f"Bearer {key}"},
        )
        assert answer.status_code == status


async def test_a_key_from_the_environment_is_no_peers(vendor: Vendor) -> None:
    caller, _ = vendor
    answer = await caller.post("/peers/recommenders/films/forwards", json=FORWARD)
    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("vendors", "field"),
    [
        ([{"name": "b", "url": "ftp://b.example"}], "vendors[0].url"),
        ([{"name": "b", "url": "http://"}], "vendors[0].url"),
        ([{"name": "b", "url": "http://user:word@b.example"}], "vendors[0].url"),
        ([{"name": "b", "url": "http://b.example?x=1"}], "vendors[0].url"),
        ([{"name": "b", "url": "http://b.example:99999"}], "vendors[0].url"),
        ([{"name": "b", "url": "http://b.example/a b"}], "vendors[0].url"),
        ([{"name": "b c", "url": "http://b.example"}], "vendors[0].name"),
        ([{"name": "b", "url": "http://b.example", "key": "k"}], "vendors[0].key"),
        ([{"name": f"v{n}", "url": "http://b.example"} for n in range(17)], "vendors"),
    ],
)
async def test_vendors_that_cannot_be_used_are_refused(
    vendor: Vendor, vendors: list[dict[str, str]], field: str
) -> None:
    caller, _ = vendor
    answer = await caller.put("/recommenders/other", json={**FILMS, "vendors": vendors})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == field


def test_two_vendors_of_one_name_are_refused() -> None:
    twice = [{"name": "b", "url": "http://b.example"}] * 2
    with pytest.raises(ValueError, match="distinct names"):
        AdaptivePartitionDocument.model_validate({**FILMS, "vendors": twice})


def test_an_address_may_have_a_path_and_loses_its_last_slash() -> None:
    vendors = [{"name": "b", "url": "https://b.example:8443/discreet/"}]
    document = AdaptivePartitionDocument.model_validate({**FILMS, "vendors": vendors})
    assert document.vendors[0].url == "https://b.example:8443/discreet"
