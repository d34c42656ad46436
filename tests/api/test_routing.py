"""Handlers are given the part that they ask for, and routes say who may call them."""

from typing import Annotated, Any, ClassVar

import httpx
import pytest
from fastapi import APIRouter

from discreet.api.routing import (
    BEARER,
    ClientRecords,
    Forwards,
    Registry,
    Requester,
    ScopedRoute,
    WorkerMetrics,
    described,
    live,
    part_of,
)
from discreet.families.p_dap.sync import Guests
from tests.api.conftest import Caller, calling

pytestmark = pytest.mark.anyio


class Missing:
    """Something that no family offers."""

    PURPOSE: ClassVar[str] = "things that nobody has"


router = APIRouter(route_class=ScopedRoute, tags=["tests"])


@router.get("/parts", **described("serve"))
async def parts(
    registry: Registry, clients: ClientRecords, forwards: Forwards, metrics: WorkerMetrics
) -> Any:
    return [type(part).__name__ for part in (registry, clients, forwards, metrics)]


@router.get("/who", **described("peer"))
async def who(requester: Requester) -> Any:
    return requester


@router.get("/recommenders/{name}/guests", **described("serve", 404))
async def guests(found: Annotated[Guests, part_of(Guests)]) -> Any:
    return type(found).__name__


@router.get("/recommenders/{name}/missing", **described("serve", 404))
async def missing(found: Annotated[Missing, part_of(Missing)]) -> Any:
    raise AssertionError("there is none")


@router.post("/echo", **described(None))
async def echo(body: dict[str, int]) -> Any:
    return body


@pytest.fixture(scope="module")
async def caller(anyio_backend: str) -> Any:
    async with calling() as one:
        one.app.include_router(router)
        yield one


async def test_a_handler_is_given_what_its_arguments_name(caller: Caller) -> None:
    found = (await caller.get("/parts")).json()
    assert found == ["RecommenderRegistry", "Clients", "ForwardRequests", "Metrics"]


async def test_a_part_of_a_family_is_found_by_its_class(caller: Caller) -> None:
    assert (await caller.get("/recommenders/films/guests")).json() == "Guests"
    unknown = await caller.get("/recommenders/none/guests")
    assert unknown.status_code == 404
    unsupported = await caller.get("/recommenders/films/missing")
    assert unsupported.status_code == 404
    assert unsupported.json()["detail"] == "not supported by p-dap: things that nobody has"


async def test_a_requester_is_known_by_the_label_of_its_key(caller: Caller) -> None:
    key = await live_keys(caller).create(label="shop-b", scopes=frozenset({"peer"}))
    answer = await caller.get("/who", headers={"Authorization": f"Bearer {key}"})
    assert answer.json() == "shop-b"


def live_keys(caller: Caller) -> Any:
    return caller.live["services"].keys


async def test_a_body_is_json_whatever_it_is_called_and_has_one_reading(caller: Caller) -> None:
    async def post(content: bytes) -> httpx.Response:
        headers = {"Content-Type": "text/plain", "Authorization": ""}
        return await caller.post("/echo", content=content, headers=headers)

    assert (await post(b'{"a": 1}')).json() == {"a": 1}
    assert (await post(b'{"a": 1, "a": 2}')).status_code == 400


def test_a_declaration_has_its_scopes_and_the_problems_that_follow() -> None:
    declared = described(("serve", "admin"), 404)
    assert declared["openapi_extra"] == {
        "x-scopes": ["serve", "admin"],
        "security": [{BEARER: []}],
    }
    assert set(declared["responses"]) == {401, 403, 404, 422, 429, 500, 503}
    assert described(None)["openapi_extra"] == {"x-scopes": []}
    assert set(described(None)["responses"]) == {500}
    assert described("admin", created=dict)["responses"][201]["model"] is dict


def test_what_the_lifespan_opened_is_the_requests_state() -> None:
    request = type("Request", (), {"scope": {"state": {"metrics": 1}}})()
    assert live(request)["metrics"] == 1


@pytest.mark.parametrize(
    ("method", "path", "field", "known"),
    [
        ("GET", "/recommenders/films?item=false", "item", "items"),
        ("GET", "/recommenders/films/items?limit=1&limit=2", "limit", "must stand once"),
        ("GET", "/recommenders/films/items?offset=3", "offset", "after, limit"),
        ("DELETE", "/recommenders/films?force=true", "force", "none"),
        ("POST", "/recommenders/films/items/import?replace=1", "replace", "none"),
        ("POST", "/recommend?limit=3", "limit", "none"),
        ("POST", "/feedback/batch?dry_run", "dry_run", "none"),
        ("POST", "/enrolments/redeem?code=1", "code", "none"),
    ],
)
async def test_a_query_that_means_nothing_is_refused(
    caller: Caller, method: str, path: str, field: str, known: str
) -> None:
    answer = await caller.request(method, path, json={} if method == "POST" else None)
    assert answer.status_code == 422
    (wrong,) = answer.json()["errors"]
    assert wrong["field"] == field
    assert known in wrong["message"]
    assert (await caller.get("/recommenders/films")).status_code == 200


async def test_whoever_looks_after_a_server_may_add_to_an_address(caller: Caller) -> None:
    for path in ("/health/live", "/health/ready", "/metrics", "/docs", "/"):
        assert (await caller.get(f"{path}?now=1")).status_code == 200
