"""The outermost layer: no error escapes, and every request leaves one line and one sample."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from discreet.api.gateway import trace_of
from discreet.api.routing import DirectRoute, ScopedRoute
from discreet.app import create_app
from discreet.settings import Settings
from tests.api.conftest import Caller, calling
from tests.api.stores import GONE, MoodyStore

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def moody(anyio_backend: str) -> AsyncIterator[Caller]:
    async with calling(MoodyStore(), most_body_bytes=1_024) as caller:
        yield caller


@pytest.fixture
async def caller(moody: Caller) -> AsyncIterator[Caller]:
    yield moody
    assert isinstance(moody.store, MoodyStore)
    moody.store.mood = None


def in_mood(caller: Caller, mood: Exception) -> None:
    assert isinstance(caller.store, MoodyStore)
    caller.store.mood = mood


@pytest.mark.parametrize(
    ("method", "path", "status", "slug"),
    [
        ("GET", "/nothing", 404, "not-found"),
        ("POST", "/recommend/", 404, "not-found"),
        ("GET", "/recommenders/a/b/c/d", 404, "not-found"),
        ("GET", "/recommend", 405, "method-not-allowed"),
        ("DELETE", "/feedback/batch", 405, "method-not-allowed"),
        ("POST", "/recommenders", 405, "method-not-allowed"),
        ("PUT", "/metrics", 405, "method-not-allowed"),
    ],
)
async def test_unknown_addresses_and_methods_are_problems_too(
    caller: Caller, method: str, path: str, status: int, slug: str
) -> None:
    answer = await caller.request(method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == f"urn:discreet:problem:{slug}"
    if status == 405:
        assert answer.headers["allow"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/recommend", {"recommender": "films", "client": "x", "context": [0, 0]}),
        ("GET", "/clients/x/budget?recommender=films", None),
    ],
)
async def test_a_bug_is_a_500_that_says_nothing(
    caller: Caller, method: str, path: str, body: Any, caplog: pytest.LogCaptureFixture
) -> None:
    in_mood(caller, KeyError("canary"))
    answer = await caller.request(method, path, json=body)
    assert answer.status_code == 500
    assert answer.json()["type"] == "urn:discreet:problem:internal"
    assert "canary" not in answer.text
    (record,) = [one for one in caplog.records if one.name == "discreet.api.gateway"]
    assert record.exc_info is not None
    assert answer.json()["instance"].endswith(record.request_id)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/recommend", {"recommender": "films", "client": "x", "context": [0, 0]}),
        ("GET", "/clients/x/budget?recommender=films", None),
        ("DELETE", "/clients/x", None),
        ("GET", "/health/ready", None),
    ],
)
async def test_a_store_that_is_gone_is_503_with_retry_after(
    caller: Caller, method: str, path: str, body: Any
) -> None:
    in_mood(caller, GONE)
    answer = await caller.request(method, path, json=body)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "2"
    problem = answer.json()
    assert problem["type"] == "urn:discreet:problem:store-unavailable"
    assert "canary" not in answer.text
    assert "nothing was released" in problem["detail"]
    if "nothing was released, counted or changed" in problem["detail"]:
        # The registry's lease has lapsed, so that not even the key was found.
        assert "event_id" not in problem
    else:
        assert " may have been " in problem["detail"]
        assert path != "/health/ready"
        assert (path == "/recommend") == ("event_id" in problem)


async def test_a_batch_over_a_store_that_is_gone_says_so_for_each_entry(caller: Caller) -> None:
    in_mood(caller, GONE)
    entry = {"recommender": "films", "client": "x", "context": [0, 0]}
    answer = await caller.post("/recommend/batch", json={"requests": [entry, entry]})
    if answer.status_code == 200:
        problems = [one["problem"] for one in answer.json()["results"]]
        assert [one["retry_after"] for one in problems] == [2, 2]
    else:
        assert answer.status_code == 503


async def test_alive_does_not_ask_the_store(caller: Caller) -> None:
    in_mood(caller, GONE)
    assert (await caller.get("/health/live")).json() == {"status": "ok"}


@pytest.mark.parametrize("path", ["/recommend", "/feedback/batch", "/recommenders/films/items"])
async def test_a_body_that_is_too_large_is_413(caller: Caller, path: str) -> None:
    for content in (b" " * 1_025, _pieces()):
        answer = await caller.post(path, content=content)
        assert answer.status_code == 413
        assert answer.json()["type"] == "urn:discreet:problem:body-too-large"
        assert "1024" in answer.json()["detail"]
    assert (await caller.post(path, content=b" " * 1_024)).status_code == 400


async def _pieces() -> AsyncIterator[bytes]:
    for _ in range(3):
        yield b" " * 512


async def test_every_answer_has_a_request_id_of_its_own(caller: Caller) -> None:
    answers = [
        await caller.get("/health/live"),
        await caller.get("/nothing"),
        await caller.ask(),
        await caller.ask(context=[]),
    ]
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert len(set(ids)) == 4
    assert answers[3].json()["instance"] == f"urn:discreet:request:{ids[3]}"
    assert answers[1].json()["instance"] == f"urn:discreet:request:{ids[1]}"


PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize(
    ("method", "path", "key"),
    [
        ("POST", "/recommend", "right"),
        ("POST", "/recommend", "wrong"),
        ("GET", "/recommenders", "right"),
        ("GET", "/recommenders/none", "right"),
        ("GET", "/nowhere", "right"),
        ("GET", "/recommenders/%ff", "right"),
    ],
)
async def test_a_callers_own_ids_are_given_back_on_every_answer(
    caller: Caller, method: str, path: str, key: str
) -> None:
    headers = {"X-Request-Id": "order-17.b_2", "traceparent": PARENT}
    if key == "wrong":
        headers["Authorization"] = "Bearer nobody"
    answer = await caller.request(method, path, json={}, headers=headers)
    assert answer.headers["x-request-id"] == "order-17.b_2"
    assert answer.headers["traceparent"] == PARENT


async def test_a_callers_ids_are_in_the_log(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = _Everything()
    monkeypatch.setattr(caller.app, "_requests", written)
    headers = {"X-Request-Id": "order-18", "traceparent": PARENT}
    await caller.get("/recommenders", headers=headers)
    await caller.post("/feedback", headers=headers)
    assert [(line["request_id"], line["trace_id"]) for line in written.lines] == [
        ("order-18", PARENT.split("-")[1])
    ] * 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-request-id", b""),
        ("x-request-id", b"a b"),
        ("x-request-id", b'a"b'),
        ("x-request-id", b"a" * 65),
        ("x-request-id", "ä".encode()),
        ("traceparent", PARENT.upper().encode()),
        ("traceparent", PARENT.encode() + b"-x"),
        ("traceparent", b"ff" + PARENT[2:].encode()),
        ("traceparent", b"00-" + b"0" * 32 + PARENT[35:].encode()),
        ("traceparent", PARENT[:36].encode() + b"0" * 16 + b"-01"),
    ],
)
def test_ids_that_are_malformed_are_forgotten(name: str, value: bytes) -> None:
    trace = trace_of([(name.encode(), value), (b"accept", b"*/*")])
    assert re.fullmatch("[0-9a-f]{16}", trace.request_id)
    assert (trace.parent, trace.trace_id) == (b"", "")
    assert [header for header, _ in trace.headers()] == [b"x-request-id"]


async def test_a_request_leaves_one_line_with_its_template(
    caller: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    await caller.get("/clients/canary/budget?recommender=films")
    await caller.get("/canary")
    capsys.readouterr()
    app = create_app(Settings())
    app._requests = _Everything()  # type: ignore[assignment]
    scope = {"type": "http", "method": "GET", "path": "/clients/canary/budget", "headers": []}
    scope |= {"query_string": b"recommender=films", "state": dict(caller.live)}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        return None

    await app(scope, receive, send)
    (line,) = app._requests.lines  # type: ignore[attr-defined]
    assert line["route"] == "/clients/{client}/budget"
    assert line["status"] == 401
    assert "canary" not in json.dumps(line)


class _Everything:
    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def write(self, *line: Any) -> None:
        names = ("method", "route", "status", "seconds", "request_id", "trace_id")
        self.lines.append(dict(zip(names, line, strict=False)))


async def test_a_caller_who_hangs_up_gets_no_answer_and_leaves_no_error(
    caller: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(Settings())
    app._requests = _Everything()  # type: ignore[assignment]
    key = (b"authorization", caller.headers["authorization"].encode())
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    for method, path in (("POST", "/recommend"), ("PUT", "/recommenders/films")):
        scope = {"type": "http", "method": method, "path": path, "headers": [key]}
        scope |= {"query_string": b"", "state": dict(caller.live)}
        await app(scope, receive, send)
    assert [line["status"] for line in app._requests.lines] == [499, 499]  # type: ignore[attr-defined]
    assert all(message.get("status", 499) == 499 for message in sent)
    assert not caplog.records


def test_a_route_without_a_declared_scope_cannot_be_made() -> None:
    async def endpoint() -> None: ...

    for kind in (ScopedRoute, DirectRoute):
        options = {"answer": endpoint, "many": False} if kind is DirectRoute else {}
        with pytest.raises((KeyError, TypeError)):
            kind("/open", endpoint, openapi_extra=None, **options)
        with pytest.raises(KeyError):
            kind("/open", endpoint, openapi_extra={}, **options)
