"""Waiting for what has to happen, however busy the machine is.

A limit only turns a test that would hang into one that fails. Nothing that works comes near it,
so no test is decided by time.
"""

import time
from collections.abc import Callable
from typing import TypeVar

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
