"""Keys and scopes, at every address."""

from collections import defaultdict

import pytest

from discreet.api.security import bearer
from discreet.app import create_app
from discreet.errors import NotAuthenticated
from discreet.settings import Settings
from tests.api.conftest import KEY, Caller

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("value", [b"Bearer abc", b"bearer abc", b"BEARER  abc "])
def test_a_bearer_key_is_found(value: bytes) -> None:
    assert bearer([(b"host", b"x"), (b"authorization", value)]) == "abc"


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"authorization", b"Basic abc")],
        [(b"authorization", b"abc")],
        [(b"authorization", b"Bearer " + b"x" * 600)],
    ],
)
def test_anything_else_is_no_key(headers: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(NotAuthenticated):
        bearer(headers)


SCOPES = {
    ("POST", "/recommend"): "serve or profile",
    ("POST", "/feedback"): "serve",
    ("POST", "/recommend/batch"): "serve or profile",
    ("POST", "/feedback/batch"): "serve",
    ("GET", "/clients/{client}/budget"): "serve",
    ("GET", "/clients/{client}/statement"): "statement or serve or admin",
    ("DELETE", "/clients/{client}"): "admin",
    ("GET", "/recommenders"): "admin",
    ("PUT", "/recommenders/{name}"): "admin",
    ("PATCH", "/recommenders/{name}"): "admin",
    ("GET", "/recommenders/{name}"): "admin",
    ("DELETE", "/recommenders/{name}"): "admin",
    ("GET", "/recommenders/{name}/guarantee"): "serve or admin or profile",
    ("GET", "/recommenders/{name}/catalogue"): "serve or profile",
    ("GET", "/recommenders/{name}/popular"): "serve or profile",
    ("POST", "/recommenders/{name}/profiles"): "serve or profile",
    ("POST", "/enrolments"): "serve or admin",
    ("POST", "/enrolments/redeem"): "",
    ("GET", "/devices"): "serve or admin",
    ("DELETE", "/devices/{device}"): "serve or admin",
    ("GET", "/keys"): "admin",
    ("DELETE", "/keys/{key}"): "admin",
    ("GET", "/recommenders/{name}/items"): "admin",
    ("POST", "/recommenders/{name}/items"): "admin",
    ("POST", "/recommenders/{name}/items/import"): "admin",
    ("PATCH", "/recommenders/{name}/items/{item}"): "admin",
    ("DELETE", "/recommenders/{name}/items/{item}"): "admin",
    ("GET", "/recommenders/{name}/model/map"): "serve or admin",
    ("POST", "/handles/open"): "serve",
    ("GET", "/metrics"): "metrics or admin",
    ("GET", "/health/live"): "",
    ("GET", "/health/ready"): "",
}
"""Who may call what, written down a second time. Families' own routes are in their own tests."""
LEAST_CALLS = 40


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], str]:
    """Return the scopes of every route, as the service declares them."""
    return {
        (method.upper(), path): " or ".join(operation["x-scopes"])
        for path, methods in create_app(Settings()).openapi()["paths"].items()
        for method, operation in methods.items()
    }


@pytest.fixture(scope="module")
def calls(found: dict[tuple[str, str], str]) -> list[tuple[str, str, str]]:
    """Return a call of every route that needs a key."""
    made = [
        (method, path.format_map(defaultdict(lambda: "x", name="other")), scope)
        for (method, path), scope in found.items()
        if scope and not path.startswith("/personalizer/")  # its errors have another shape
    ]
    assert len(made) >= LEAST_CALLS
    return made


def test_every_route_declares_the_scopes_that_it_should(found: dict[tuple[str, str], str]) -> None:
    assert {call: found.get(call) for call in SCOPES} == SCOPES
    for (method, path), scope in found.items():
        if path.startswith("/peers/"):
            assert scope == "peer", (method, path)
        elif (method, path) not in SCOPES:
            assert scope in ("serve", "admin"), (method, path)


async def test_no_key_and_a_wrong_key_are_401(
    caller: Caller, calls: list[tuple[str, str, str]], subtests: pytest.Subtests
) -> None:
    for method, path, _ in calls:
        with subtests.test(f"{method} {path}"):
            caller.address = f"{method} {path}"  # somebody else, who need not wait ever longer
            for headers in ({"Authorization": ""}, {"Authorization": "Bearer wrong"}):
                answer = await caller.request(method, path, headers=headers)
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"] == "Bearer"
                assert answer.json()["type"] == "urn:discreet:problem:not-authenticated"


@pytest.fixture(scope="module")
async def keys(caller: Caller) -> dict[str, str]:
    ring = caller.live["services"].keys
    return {
        scope: await ring.create(label=scope, scopes=frozenset({scope}))
        for scope in ("serve", "admin", "metrics", "peer")
    }


async def test_only_the_right_scope_gets_in(
    caller: Caller,
    keys: dict[str, str],
    calls: list[tuple[str, str, str]],
    subtests: pytest.Subtests,
) -> None:
    for method, path, scope in calls:
        with subtests.test(f"{method} {path}"):
            for held, key in keys.items():
                headers = {"Authorization": f"Bearer {key}"}
                answer = await caller.request(method, path, headers=headers)
                if held in scope.split(" or "):
                    assert answer.status_code not in (401, 403)
                else:
                    assert answer.status_code == 403
                    assert scope in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/", "/docs", "/openapi.json"])
async def test_some_addresses_need_no_key(caller: Caller, path: str) -> None:
    answer = await caller.get(path, headers={"Authorization": ""})
    assert answer.status_code == 200


async def test_a_key_is_asked_for_before_the_body_is_looked_at(caller: Caller) -> None:
    for path in ("/recommend", "/recommenders/films/items"):
        answer = await caller.post(path, content=b"nonsense", headers={"Authorization": "Bearer x"})
        assert answer.status_code == 401


async def test_a_revoked_key_is_refused_at_once(caller: Caller) -> None:
    ring = caller.live["services"].keys
    key = await ring.create(label="gone", scopes=frozenset({"admin"}))
    headers = {"Authorization": f"Bearer {key}"}
    assert (await caller.get("/recommenders", headers=headers)).status_code == 200
    (record,) = [one for one in await ring.list() if one.label == "gone"]
    await ring.revoke(record.id)
    assert (await caller.get("/recommenders", headers=headers)).status_code == 401
    assert (await caller.get("/recommenders")).status_code == 200, KEY
