"""Nothing private in logs, metrics or error bodies, whatever goes wrong.

Canaries stand for what must not leak: client ids, contexts, rewards, event ids, keys, unknown
paths and queries. Every address is driven into every kind of failure, and then everything that the
service wrote is searched. Canaries are words that no request id (hexadecimal) can contain, and
runs of twelve digits, which a duration or an id contains by chance in fewer than one run in 10**8.
"""

import io
import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from discreet import logs
from discreet.logs import RequestLog
from tests.api.conftest import Caller, calling
from tests.api.stores import GONE, MoodyStore

pytestmark = pytest.mark.anyio

CLIENT = "canary-client-zqxv"
EVENT = "canary-event-wkyj"
KEY = "canary-key-qjzw"
CONTEXT = [0.735192846137, 0.264819370526]
REWARD = 0.418372659014
CANARIES = ["canary", "zqxv", "wkyj", "qjzw", "735192846137", "264819370526", "418372659014"]


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Everything that is logged, at the most talkative level, formatted as in production."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    stream = io.StringIO()
    logs.configure("debug", stream)
    yield stream
    root.handlers = handlers
    root.setLevel(level)
    logging.captureWarnings(False)
    for name in ("gunicorn.access", "uvicorn.access"):
        logging.getLogger(name).disabled = False


def bodies() -> list[tuple[str, str, Any]]:
    """Return calls that carry canaries: good ones and ones with every kind of mistake."""
    good = {"recommender": "films", "client": CLIENT, "context": CONTEXT}
    token = "canary" + "A" * 150
    return [
        ("POST", "/recommend", good),
        ("POST", "/recommend", {**good, "event_id": EVENT}),
        ("POST", "/recommend", {**good, "event_id": EVENT, "limit": 2}),
        ("POST", "/recommend", {**good, "recommender": "canary"}),
        ("POST", "/recommend", {**good, "context": [*CONTEXT, 0.5]}),
        ("POST", "/recommend", {**good, "context": [7.3519284, "canary"]}),
        ("POST", "/recommend", {**good, "client": CLIENT + "\x00"}),
        ("POST", "/recommend", {**good, "client": CLIENT * 20}),
        ("POST", "/recommend", {**good, "candidates": ["canary"]}),
        ("POST", "/recommend", {**good, "limit": "canary"}),
        ("POST", "/recommend", f'{{"client": "{CLIENT}", '),
        ("POST", "/recommend", f'{{"client": "{CLIENT}", "client": "{CLIENT}"}}'),
        ("POST", "/recommend/batch", {"requests": [good, {**good, "limit": CLIENT}, CLIENT]}),
        ("POST", "/recommend/batch", {"requests": CLIENT}),
        ("POST", "/feedback", {"recommendation_id": token, "reward": REWARD}),
        ("POST", "/feedback", {"event_id": EVENT, "reward": REWARD}),
        ("POST", "/feedback", {"event_id": EVENT, "reward": REWARD / 2}),
        ("POST", "/feedback", {"event_id": EVENT + "?", "reward": REWARD}),
        ("POST", "/feedback", {"event_id": EVENT, "reward": REWARD * 10}),
        ("POST", "/feedback", {"event_id": EVENT, "reward": str(REWARD)}),
        ("POST", "/feedback/batch", {"feedback": [{"event_id": EVENT, "reward": REWARD}]}),
        ("GET", f"/clients/{CLIENT}/budget?recommender=films", None),
        ("GET", f"/clients/{CLIENT}/budget?recommender=canary", None),
        ("GET", f"/clients/{CLIENT}/budget", None),
        ("DELETE", f"/clients/{CLIENT}", None),
        ("DELETE", f"/clients/{CLIENT * 20}", None),
        ("GET", f"/nothing/{CLIENT}?q={CLIENT}", None),
        ("PATCH", f"/clients/{CLIENT}", None),
        ("GET", "/recommenders/canary", None),
        ("PUT", "/recommenders/films", {"algorithm": "canary", "items": [CLIENT]}),
        ("DELETE", "/recommenders/films/items/canary", None),
    ]


async def drive(caller: Caller, **headers: str) -> list[httpx.Response]:
    answers = []
    for method, path, body in bodies():
        content = {"content": body} if isinstance(body, str) else {"json": body}
        answers.append(await caller.request(method, path, headers=headers, **content))
    return answers


def found(text: str) -> list[str]:
    return [canary for canary in CANARIES if canary in text]


def test_a_canary_would_be_found() -> None:
    assert found(f"client={CLIENT}") == ["canary", "zqxv"]
    assert found(str(CONTEXT)) == ["735192846137", "264819370526"]
    assert found(str(REWARD)) == ["418372659014"]


async def test_nothing_private_is_written_anywhere(log: io.StringIO) -> None:
    store = MoodyStore()
    async with calling(store) as caller:
        app_log = io.StringIO()
        _redirect(caller, app_log)
        # The sum of all rewards is shown on purpose; one alone would be its own sum.
        await caller.ask("somebody else", event_id="another")
        await caller.post("/feedback", json={"event_id": "another", "reward": 0.25})
        answers = await drive(caller)
        answers += await drive(caller, Authorization=f"Bearer {KEY}")
        store.mood = KeyError(CLIENT, CONTEXT)
        answers += await drive(caller)
        store.mood = GONE
        answers += await drive(caller)
        store.mood = None
        metrics = await caller.get("/metrics")
    statuses = {answer.status_code for answer in answers}
    assert statuses >= {200, 400, 401, 404, 405, 409, 422, 500, 503}
    for answer in answers:
        if answer.status_code != 200:
            # A lost answer names the caller's own event, under which a retry is free.
            lost = answer.status_code == 503
            said = answer.text.replace(f'"event_id":"{EVENT}"', "") if lost else answer.text
            assert not found(said), answer.text
    assert app_log.getvalue().count("\n") >= len(answers)
    assert "a request failed" in log.getvalue()
    assert not found(app_log.getvalue())
    # Where the store is, whoever runs the service may read: it is why nothing was answered.
    assert "the store failed at" in log.getvalue()
    assert not found(log.getvalue().replace("canary-host", ""))
    assert metrics.status_code == 200
    assert not found(metrics.text)


def _redirect(caller: Caller, stream: io.StringIO) -> None:
    """Let the application's request lines go to `stream`."""
    caller.app._requests = RequestLog(stream)
