"""Logs: one JSON object a line, on standard error, without private data.

What protects people here is what is left out. A request's line has the route's template, never
its path or query. An exception shows its type and where it was raised; its message only if we
wrote it, because others quote the value that they choked on. Lines from libraries that we did not
write keep their place and level, and lose their text.
"""

import asyncio
import functools
import json
import logging
import os
import sys
import time
import traceback
from typing import Any, TextIO

from discreet.errors import DiscreetError

LEVELS = ("debug", "info", "warning", "error", "critical")
_OURS = ("discreet", "gunicorn", "uvicorn")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@functools.lru_cache(maxsize=4)
def _second(whole: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))


def stamp(seconds: float) -> str:
    """Return a moment as RFC 3339 in UTC, to the millisecond."""
    whole = int(seconds)
    return f"{_second(whole)}.{int((seconds - whole) * 1000):03d}Z"


class JsonFormatter(logging.Formatter):
    """One record, one line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": stamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": self._text(record),
            "pid": record.process,
        }
        request_id = getattr(record, "request_id", None)
        if request_id is not None:
            line["request_id"] = request_id
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = describe(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False)

    @staticmethod
    def _text(record: logging.LogRecord) -> str:
        if record.name.partition(".")[0] in _OURS:
            return record.getMessage()
        return f"text withheld; written at {record.module}:{record.lineno}"


def describe(error: BaseException) -> list[dict[str, Any]]:
    """Return an exception and its causes: types, places, and messages that are our own."""
    chain: list[dict[str, Any]] = []
    current: BaseException | None = error
    while current is not None and len(chain) < 8:
        entry: dict[str, Any] = {"type": type(current).__qualname__}
        if isinstance(current, DiscreetError):
            entry["message"] = str(current)
        elif isinstance(current, OSError) and current.strerror:
            entry["message"] = current.strerror
        entry["at"] = [
            f"{frame.filename}:{frame.lineno} in {frame.name}"
            for frame in traceback.extract_tb(current.__traceback__)[-12:]
        ]
        chain.append(entry)
        current = current.__cause__ or (
            None if current.__suppress_context__ else current.__context__
        )
    return chain


def configure(level: str, stream: TextIO | None = None) -> None:
    """Send everything that is logged in this process to one stream, as JSON lines."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for name in ("gunicorn.error", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = []
        logger.propagate = True
        # The server announces every worker's birth and death at info; once is enough for us.
        logger.setLevel(max(logging.WARNING, root.level))
    for name in ("gunicorn.access", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers = []
        logger.propagate = False
        logger.disabled = True
    logging.captureWarnings(True)


def guard(loop: asyncio.AbstractEventLoop) -> None:
    """Let the event loop report a failed task without printing what the task held."""
    loop.set_exception_handler(_report)


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    logging.getLogger("discreet.loop").error(
        "%s", context["message"].partition("\n")[0], exc_info=error or False
    )


_MOST_KINDS = 1_000


class RequestLog:
    """One line for each request, written by hand because `logging` costs as much as the answer.

    Lines of one turn of the event loop leave in one write, with the moment of the first.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._lines: list[str] = []
        self._moment = ""
        self._same: dict[tuple[str, str, int], str] = {}
        """What lines of one kind have in common."""
        self._pid = os.getpid()
        self._enabled = logging.getLogger("discreet.requests").isEnabledFor(logging.INFO)

    def write(
        self,
        method: str,
        route: str,
        status: int,
        seconds: float,
        request_id: str,
        trace_id: str = "",
    ) -> None:
        """Write the line. Failures on our side are written whatever the level.

        Both ids need no escaping: the gateway has looked at them.
        """
        if not self._enabled and status < 500:
            return
        kind = (method, route, status)
        same = self._same.get(kind)
        if same is None:
            level = "error" if status >= 500 else "info"
            known = method if method in _METHODS else "OTHER"
            same = self._same[kind] = (
                f'"level": "{level}", "logger": "discreet.requests", "event": "request", '
                f'"method": "{known}", "route": "{route}", "status": {status}, "duration_seconds": '
            )
            if len(self._same) > _MOST_KINDS:
                self._same.clear()
        trace = f'"trace_id": "{trace_id}", ' if trace_id else ""
        if not self._lines:
            self._moment = stamp(time.time())
            self._flush_soon()
        self._lines.append(
            f'{{"time": "{self._moment}", {same}{seconds:.6f}, '
            f'"request_id": "{request_id}", {trace}"pid": {self._pid}}}\n'
        )

    def flush(self) -> None:
        """Write what there is."""
        lines, self._lines = self._lines, []
        (self._stream or sys.stderr).write("".join(lines))

    def _flush_soon(self) -> None:
        asyncio.get_running_loop().call_soon(self.flush)
