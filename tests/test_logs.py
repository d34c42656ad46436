"""Logs are JSON lines that keep other people's words, and exceptions' messages, to themselves."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from discreet import logs
from discreet.errors import TokenForged
from discreet.logs import RequestLog


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    out = io.StringIO()
    logs.configure("info", out)
    yield out
    root.handlers = handlers
    root.setLevel(level)
    logging.captureWarnings(False)
    for name in ("gunicorn.access", "uvicorn.access"):
        logging.getLogger(name).disabled = False


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json(stream: io.StringIO) -> None:
    logging.getLogger("discreet.x").warning("a %s\nb", "c", extra={"request_id": "r"})
    (line,) = lines(stream)
    assert line["event"] == "a c\nb"
    assert (line["level"], line["logger"], line["request_id"]) == ("warning", "discreet.x", "r")
    assert line["time"].endswith("Z")


def test_what_is_below_the_level_is_not_written(stream: io.StringIO) -> None:
    logging.getLogger("discreet.x").debug("quiet")
    assert lines(stream) == []


@pytest.mark.parametrize("name", ["redis", "asyncio", "httpx", "py.warnings", "servicex"])
def test_libraries_lose_their_text(stream: io.StringIO, name: str) -> None:
    logging.getLogger(name).error("canary %s", "canary")
    (line,) = lines(stream)
    assert "canary" not in json.dumps(line)
    assert (line["logger"], line["level"]) == (name, "error")


def test_the_servers_own_words_are_kept(stream: io.StringIO) -> None:
    logging.getLogger("gunicorn.error").error("Worker (pid:%s) exited", 7)
    assert lines(stream)[0]["event"] == "Worker (pid:7) exited"


@pytest.mark.parametrize("name", ["gunicorn.access", "uvicorn.access"])
def test_access_lines_of_the_server_are_off(stream: io.StringIO, name: str) -> None:
    logging.getLogger(name).info("GET /clients/canary")
    assert lines(stream) == []


def test_an_exception_shows_its_type_and_place_but_not_its_message(stream: io.StringIO) -> None:
    try:
        try:
            raise KeyError("canary")
        except KeyError as error:
            raise ValueError("canary") from error
    except ValueError:
        logging.getLogger("discreet.x").exception("failed")
    (line,) = lines(stream)
    assert [one["type"] for one in line["exception"]] == ["ValueError", "KeyError"]
    assert "test_logs.py" in line["exception"][0]["at"][0]
    assert "canary" not in json.dumps(line)


def test_our_own_messages_are_safe_to_show(stream: io.StringIO) -> None:
    try:
        raise TokenForged("not ours")
    except TokenForged:
        logging.getLogger("discreet.x").exception("failed")
    assert lines(stream)[0]["exception"][0]["message"] == "not ours"


def test_an_operating_systems_error_says_what_but_not_which(stream: io.StringIO) -> None:
    try:
        open("/canary/none")  # noqa: SIM115
    except OSError:
        logging.getLogger("discreet.x").exception("failed")
    (line,) = lines(stream)
    assert line["exception"][0]["message"] == "No such file or directory"
    assert "/canary/" not in json.dumps(line["exception"][0]["message"])


def test_a_failed_task_is_reported_without_what_it_held(stream: io.StringIO) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        logs.guard(loop)

        async def fail() -> None:
            raise KeyError("canary")

        task = loop.create_task(fail(), name="canary")
        await asyncio.sleep(0.01)
        del task

    asyncio.run(run())
    assert "canary" not in stream.getvalue()
    (line,) = lines(stream)
    assert line["exception"][0]["type"] == "KeyError"
    assert line["event"] == "Task exception was never retrieved"


def request_line(stream: io.StringIO, **changes: Any) -> None:
    fields: dict[str, Any] = {
        "method": "GET",
        "route": "/clients/{client}",
        "status": 200,
        "seconds": 0.00123,
        "request_id": "abc",
        **changes,
    }

    async def write() -> None:
        RequestLog(stream).write(**fields)
        await asyncio.sleep(0)

    asyncio.run(write())


class Writes(io.StringIO):
    """Counts how often something was written."""

    count = 0

    def write(self, text: str) -> int:
        self.count += 1
        return super().write(text)


def test_lines_of_one_turn_leave_together() -> None:
    stream = Writes()
    line = {"method": "GET", "route": "/", "seconds": 0.1}

    async def write() -> None:
        log = RequestLog(stream)
        for turn in ("a", "b"):
            for number in range(3):
                log.write(status=503, request_id=f"{turn}{number}", **line)
            await asyncio.sleep(0)

    asyncio.run(write())
    assert stream.count == 2
    assert [one["request_id"] for one in lines(stream)] == ["a0", "a1", "a2", "b0", "b1", "b2"]


def test_a_requests_line_has_the_template_and_no_more(stream: io.StringIO) -> None:
    request_line(stream)
    (line,) = lines(stream)
    assert set(line) == {
        "time", "level", "logger", "event", "method", "route", "status", "duration_seconds",
        "request_id", "pid",
    }  # fmt: skip
    assert line["duration_seconds"] == 0.00123


def test_an_invented_method_is_not_repeated(stream: io.StringIO) -> None:
    request_line(stream, method='CANARY"')
    assert lines(stream)[0]["method"] == "OTHER"


def test_failures_are_written_at_any_level(stream: io.StringIO) -> None:
    logging.getLogger().setLevel("ERROR")
    request_line(stream)
    request_line(stream, status=503)
    (line,) = lines(stream)
    assert (line["status"], line["level"]) == (503, "error")
