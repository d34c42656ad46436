"""No server may outlive the tests that started it.

Valkey, gunicorn and browsers are real processes. One that is still there after the tests is a bug
in whoever starts it: on a laptop it would keep a port and a data directory for ever.

Being a child is no mark, since an orphan is adopted by init. So every temporary folder of the run
lies below one of its own, and a process belongs to the run if that folder occurs in its
environment, its command line or its working directory. Valkey overwrites its environment with its
title, but works in its data directory.
"""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import PATIENCE

GRACE_SECONDS = PATIENCE
"""How long a process that was told to stop may take: a machine under load is no failure."""
OUTLIVED = "processes outlived the tests that started them"


@dataclass(frozen=True, slots=True)
class Survivor:
    """A process that should be gone."""

    pid: int
    command: str


def _text(path: Path) -> str:
    """Return a /proc file's text; a process that is gone, or is not ours, has none."""
    try:
        return path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _belongs(process: Path, folder: str) -> bool:
    try:
        working = os.readlink(process / "cwd")
    except OSError:
        return False  # gone, a zombie, or another user's
    marks = (working + "/", _text(process / "cmdline"), _text(process / "environ"))
    return any(folder + "/" in mark for mark in marks)


def processes_of(folder: Path) -> list[Survivor]:
    """Return the live processes that belong to the run whose folder this is, but not ourselves."""
    ours = {os.getpid()}
    return [
        Survivor(int(process.name), _text(process / "cmdline").strip())
        for process in Path("/proc").iterdir()
        if process.name.isdigit()
        and int(process.name) not in ours
        and _belongs(process, str(folder))
    ]


def wait_for_none(folder: Path, *, grace: float | None = None) -> list[Survivor]:
    """Return what is still alive after the grace; it is killed, so that it haunts nobody."""
    deadline = time.monotonic() + (GRACE_SECONDS if grace is None else grace)
    while (alive := processes_of(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    for survivor in alive:
        try:
            os.kill(survivor.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return alive
