"""Where lines of the decision log go, and how long they stay there."""

import asyncio
import calendar
import json
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from discreet.families.contract import Recommender
from discreet.families.documents import duration_seconds
from discreet.state.stores import Store

_HOUR = 3_600
_NAME = re.compile(r"(?P<name>.+)[.](?P<hour>\d{8}T\d{2})[.](?P<keep>\d+[hdw])[.]\d+[.]jsonl")
_READ_TOGETHER = 1_000


class LogSink(Protocol):
    """A place for lines."""

    async def write(self, recommender: Recommender[Any], keep: str, lines: Sequence[bytes]) -> None:
        """Write lines, to be kept so long."""
        ...

    async def tidy(self, recommenders: Sequence[Recommender[Any]]) -> None:
        """Remove what is too old."""
        ...

    async def forget(self, recommender: Recommender[Any], pseudonym: str) -> int:
        """Remove a client's lines if that can be done here; return how many."""
        ...


class StandardOutput:
    """Lines for whatever collects them, which has a retention of its own."""

    async def write(self, recommender: Recommender[Any], keep: str, lines: Sequence[bytes]) -> None:
        """Write lines."""

        def out() -> None:
            sys.stdout.buffer.write(b"".join(line + b"\n" for line in lines))
            sys.stdout.buffer.flush()

        await asyncio.to_thread(out)

    async def tidy(self, recommenders: Sequence[Recommender[Any]]) -> None:
        """Nothing is kept here."""

    async def forget(self, recommender: Recommender[Any], pseudonym: str) -> int:
        """What was collected is out of reach."""
        return 0


class LogFiles:
    """A file for every recommender, hour and worker: NAME.20260131T12.30d.4711.jsonl.

    Its name says how long it is kept, so that it goes in time though the document may have changed,
    or the recommender be gone: within an hour and a minute after its first line is so old, as long
    as a server runs with this folder. Only the owner may read it.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock

    async def write(self, recommender: Recommender[Any], keep: str, lines: Sequence[bytes]) -> None:
        """Append lines to the file of this hour."""
        hour = time.strftime("%Y%m%dT%H", time.gmtime(self._clock()))
        path = self._folder / f"{recommender.name}.{hour}.{keep}.{os.getpid()}.jsonl"
        await asyncio.to_thread(self._append, path, b"".join(line + b"\n" for line in lines))

    def _append(self, path: Path, content: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as file:
            file.write(content)

    async def tidy(self, recommenders: Sequence[Recommender[Any]]) -> None:
        """Remove files whose first line is older than they are kept."""
        await asyncio.to_thread(self._remove_old)

    def _remove_old(self) -> None:
        for path in self._folder.glob("*.jsonl") if self._folder.is_dir() else ():
            found = _NAME.fullmatch(path.name)
            if found is None:
                continue
            began = calendar.timegm(time.strptime(found["hour"], "%Y%m%dT%H"))
            ends = began + _HOUR + duration_seconds(found["keep"])
            if self._clock() >= ends:
                path.unlink(missing_ok=True)

    async def forget(self, recommender: Recommender[Any], pseudonym: str) -> int:
        """Files may be on other machines, and are being written: an erasure leaves them."""
        return 0


class LogStream:
    """A stream in the store for every recommender; it goes with the recommender."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def write(self, recommender: Recommender[Any], keep: str, lines: Sequence[bytes]) -> None:
        """Append lines."""
        await self._store.append_stream(
            stream=recommender.decision_stream, lines=lines, keep=duration_seconds(keep)
        )

    async def tidy(self, recommenders: Sequence[Recommender[Any]]) -> None:
        """Remove old lines of the recommenders that still write here."""
        for one in recommenders:
            document = one.stored.document.log
            if document is not None and document.to == "stream":
                keep = duration_seconds(document.keep)
                await self._store.trim_stream(stream=one.decision_stream, keep=keep)

    async def forget(self, recommender: Recommender[Any], pseudonym: str) -> int:
        """Remove a client's lines."""
        stream, removed, last = recommender.decision_stream, 0, b""
        while lines := await self._store.read_stream(
            stream=stream, after=last, most=_READ_TOGETHER
        ):
            last = lines[-1][0]
            theirs = [number for number, line in lines if _client(line) == pseudonym]
            await self._store.remove_from_stream(stream=stream, numbers=theirs)
            removed += len(theirs)
        return removed


def _client(line: bytes) -> str | None:
    found = json.loads(line).get("client")
    return found if isinstance(found, str) else None
