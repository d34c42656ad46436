"""Waiting for what has to happen, however busy the machine is.

A limit only turns a test that would hang into one that fails. Nothing that works comes near it,
so no test is decided by time.
"""

import http.client
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

PATIENCE = 180.0
"""Seconds to wait for what has to happen; it lies below the time that a test may take in all."""

PATIENT = {"DISCREET_STORE_TIMEOUT_SECONDS": "30", "DISCREET_BUSY_SECONDS": "10"}
"""What a server is told that has to answer: where others use all cores, its store is slow without
being gone, and its own answers are late without there being too many."""

Found = TypeVar("Found")


def wait_for(
    what: str,
    condition: Callable[[], Found],
    *,
    pause: float = 0.05,
    patience: float | None = None,
) -> Found:
    """Return the first result that counts as true; `pause` is between two looks."""
    deadline = time.monotonic() + (PATIENCE if patience is None else patience)
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(pause)
    return found


def join(*threads: threading.Thread) -> None:
    """Return once all of them have ended; whoever does not is named."""
    deadline = time.monotonic() + PATIENCE
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0.0))
    left = [thread.name for thread in threads if thread.is_alive()]
    assert not left, f"waited in vain: the end of {', '.join(left)}"


def wait_until_ready(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    """Return once a program that was started answers there with 200; whoever ended never will."""

    def ready() -> bool:
        code = process.poll()
        assert code is None, f"the program ended with {code}"
        return answers(url)

    try:
        wait_for(f"an answer from {url}", ready)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{log.read_text()}") from None


def answers(url: str) -> bool:
    """Tell whether somebody answers there with 200.

    By hand: a client of httpx reads all certificate authorities first, 20 ms of CPU for each look.
    """
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    try:
        connection.request("GET", parts.path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
