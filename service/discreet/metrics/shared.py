"""Values of series in files that all workers read, and out of which they can be taken again.

prometheus-client keeps a worker's values in memory-mapped files, from which nothing is ever taken:
a recommender that is gone would stay, some kilobytes in every worker, for as long as that lives.
These are the same files, read by the same collector. What is not wanted any more is left out by
writing a file anew and putting it in the old one's place: whoever reads has one or the other.
"""

import json
import os
from collections.abc import Callable, Collection, Sequence
from threading import Lock
from typing import Any

from prometheus_client import values
from prometheus_client.mmap_dict import MmapedDict, mmap_key

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that names the folder of these files; without it there is one worker, and none."""


class SharedFile:
    """The values of one kind and one worker."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._values: Any = MmapedDict(name)  # type: ignore[no-untyped-call]

    def read(self, key: str) -> tuple[float, float]:
        """Return a value and its time; both are 0 at first."""
        found: tuple[float, float] = self._values.read_value(key)
        return found

    def write(self, key: str, value: float, time: float) -> None:
        """Replace a value."""
        self._values.write_value(key, value, time)

    def keep(self, wanted: Callable[[dict[str, str]], bool]) -> None:
        """Keep the values whose labels are wanted, and forget the others."""
        everything = list(self._values.read_all_values())
        kept = [entry for entry in everything if wanted(json.loads(entry[0])[2])]
        if len(kept) == len(everything):
            return
        # The collector does not take this name for one of its files.
        new = self._name + ".new"
        if os.path.exists(new):
            os.remove(new)
        fresh: Any = MmapedDict(new)  # type: ignore[no-untyped-call]
        for key, value, time in kept:
            fresh.write_value(key, value, time)
        os.replace(new, self._name)
        self.close()
        self._values = fresh

    def close(self) -> None:
        """Let go of the file, which stays."""
        self._values.close()


class SharedValue:
    """One value of a series, as prometheus-client wants it."""

    _multiprocess = True

    def __init__(
        self,
        kind: str,
        metric: str,
        name: str,
        labels: Sequence[str],
        label_values: Sequence[str],
        help_text: str,
        multiprocess_mode: str = "",
        **_: object,
    ) -> None:
        prefix = f"{kind}_{multiprocess_mode}" if kind == "gauge" else kind
        path = os.path.join(os.environ[FOLDER], f"{prefix}_{os.getpid()}.db")
        self._key = mmap_key(metric, name, list(labels), list(label_values), help_text)
        with _lock:
            if path not in _files:
                _files[path] = SharedFile(path)
            self._file = _files[path]
            self._value, self._time = self._file.read(self._key)

    def inc(self, amount: float) -> None:
        """Add to it."""
        with _lock:
            self._value += amount
            self._file.write(self._key, self._value, 0.0)

    def set(self, value: float, timestamp: float | None = None) -> None:
        """Replace it."""
        with _lock:
            self._value = value
            self._file.write(self._key, value, timestamp or 0.0)

    def get(self) -> float:
        """Return it."""
        return self._value

    def set_exemplar(self, exemplar: object) -> None:
        """Do nothing: several workers have none."""

    def get_exemplar(self) -> None:
        """Return none."""


_lock = Lock()
_files: dict[str, SharedFile] = {}


def in_use() -> bool:
    """Tell whether this process shares its values with others; from now on it does so here."""
    if FOLDER not in os.environ:
        return False
    values.ValueClass = SharedValue
    return True


def forget(recommenders: Collection[str]) -> None:
    """Take this worker's values of these recommenders out."""
    with _lock:
        for each in _files.values():
            each.keep(lambda labels: labels.get("recommender") not in recommenders)
