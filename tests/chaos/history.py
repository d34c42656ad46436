"""What callers sent, and what was acknowledged: one record for each call that was begun."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Operation:
    """One call. `status` 0 is a call whose answer never came: nobody knows what became of it."""

    kind: str
    """recommend, feedback, or release: which model the worker answers from that was asked."""
    client: str
    began: float
    event_id: str | None = None
    """The caller's own event id, or the one that a 503 told."""
    ended: float = 0.0
    status: int = 0
    personalised: bool = False
    recommendation_id: str | None = None
    items: list[str] = field(default_factory=list)
    duplicate: bool | None = None
    retry_under: str | None = None
    """The event id that a 503 told."""
    release: int | None = None
    """The release that a worker answers from,"""
    stored: int | None = None
    """and the one that stood in the store afterwards; None if the store could not be asked."""
    model: str | None = None
    """A digest of the model that stood there."""


class History:
    """Collects operations from many threads."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.operations: list[Operation] = []
        self.faults: list[tuple[str, float, float]] = []
        self._lock = threading.Lock()

    def begin(self, kind: str, client: str, event_id: str | None = None) -> Operation:
        """Note that a call is about to be made."""
        one = Operation(kind, client, time.monotonic() - self.began, event_id)
        with self._lock:
            self.operations.append(one)
        return one

    def end(self, one: Operation, status: int, answer: dict[str, Any]) -> None:
        """Note what was acknowledged."""
        one.ended = time.monotonic() - self.began
        one.status = status
        if status == 200 and one.kind == "recommend":
            one.personalised = answer["personalised"]
            one.recommendation_id = answer["recommendation_id"]
            one.items = [item["id"] if isinstance(item, dict) else item for item in answer["items"]]
        elif status == 200 and one.kind == "release":
            one.release = answer["release"]
        elif status == 200:
            one.duplicate = answer["duplicate"]
        else:
            one.retry_under = answer.get("event_id")

    def fault(self, name: str, began: float) -> None:
        """Note what the nemesis did, from then until now."""
        self.faults.append((name, began - self.began, time.monotonic() - self.began))

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations)

    def write(self, file: Path) -> None:
        """Keep it as lines of JSON, so that a violation can be looked into."""
        with file.open("w") as out:
            for one in self.operations:
                out.write(json.dumps(asdict(one)) + "\n")
