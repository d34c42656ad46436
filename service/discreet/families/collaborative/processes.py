"""Trainings in a process of their own: started from a thread, ended with their recommender."""

import logging
import os
import subprocess
import sys
from threading import Lock

from discreet.families.collaborative.similarities import (
    SIMILARITY_FIELDS,
    Ints,
    ItemSimilarities,
    unpack,
)
from discreet.families.collaborative.training import pack_profiles

log = logging.getLogger(__name__)

_PROGRAM = "discreet.families.collaborative.training"
_LONGEST_COMPLAINT = 2_000


class TrainingProcess:
    """Runs one training at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: subprocess.Popen[bytes] | None = None
        self._stopped = False

    @property
    def stopped(self) -> bool:
        """Tell whether `stop` was called."""
        return self._stopped

    def train(
        self, *, starts: Ints, slots: Ints, live: Ints, neighbours: int
    ) -> ItemSimilarities | None:
        """Return what the training finds (`training.fit`); None if it failed or was stopped."""
        content = pack_profiles(starts=starts, slots=slots, live=live)
        with self._lock:
            if self._stopped:
                return None
            process = self._running = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-P", "-m", _PROGRAM, str(neighbours)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment(),
            )
        with process:
            found, complaint = process.communicate(content)
        if self.stopped:
            return None
        if process.returncode != 0:
            text = complaint.decode(errors="replace")[-_LONGEST_COMPLAINT:]
            log.error("training ended with status %s: %s", process.returncode, text)
            return None
        try:
            return ItemSimilarities.of(unpack(found, SIMILARITY_FIELDS))
        except ValueError:
            log.exception("what training gave cannot be used")
            return None

    def stop(self) -> None:
        """End the training that runs, and begin no other."""
        with self._lock:
            self._stopped = True
            if self._running is not None:
                self._running.kill()


def environment() -> dict[str, str]:
    """Return the variables of the process: none of our secrets, and no more than one core."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DISCREET_")}
    return {**kept, "OMP_NUM_THREADS": "1"}
