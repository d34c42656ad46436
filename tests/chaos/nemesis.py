"""What goes wrong: by seed, one thing after another, each undone before the next."""

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tests.chaos.history import History
from tests.chaos.proxy import CuttableProxy
from tests.end_to_end.servers import Server
from tests.state.servers import Server as Valkey

FAULTS = ("kill worker", "freeze worker", "kill store", "freeze store", "partition", "full store",
          "roll back")  # fmt: skip


class Nemesis:
    """Does harm to one server, its store, and what lies between."""

    def __init__(
        self, server: Server, store: Valkey, proxy: CuttableProxy, history: History, folder: Path
    ) -> None:
        self._server = server
        self._store = store
        self._proxy = proxy
        self._history = history
        self._folder = folder
        self._copies = 0

    def strike(self, name: str, rng: random.Random) -> None:
        """Do one thing, and undo it."""
        began = time.monotonic()
        deeds: dict[str, Callable[[float], None]] = {
            "kill worker": self._kill_worker,
            "freeze worker": self._freeze_worker,
            "kill store": self._kill_store,
            "freeze store": self._freeze_store,
            "partition": self._partition,
            "full store": self._fill_store,
            "roll back": self._roll_back,
        }
        deeds[name](rng.uniform(0.3, 1.5))
        self._history.fault(name, began)

    def _kill_worker(self, seconds: float) -> None:
        os.kill(min(self._server.workers), signal.SIGKILL)

    def _freeze_worker(self, seconds: float) -> None:
        worker = max(self._server.workers)
        os.kill(worker, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(worker, signal.SIGCONT)

    def _kill_store(self, seconds: float) -> None:
        self._store.kill()
        time.sleep(seconds / 3)
        self._store.start()

    def _freeze_store(self, seconds: float) -> None:
        self._store.signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._store.signal(signal.SIGCONT)

    def _partition(self, seconds: float) -> None:
        self._proxy.cut()
        time.sleep(seconds)
        self._proxy.heal()

    def _fill_store(self, seconds: float) -> None:
        self._store.do("CONFIG", "SET", "maxmemory", "1")
        time.sleep(seconds)
        self._store.do("CONFIG", "SET", "maxmemory", "0")

    def copy(self) -> Path:
        """Return a copy of the store's files as they are now."""
        self._copies += 1
        to = self._folder / f"copy-{self._copies}"
        shutil.copytree(self._store.folder / "appendonlydir", to)
        return to

    def put_back(self, copy: Path) -> None:
        """Start the store from a copy."""
        self._store.kill()
        files = self._store.folder / "appendonlydir"
        shutil.rmtree(files)
        shutil.copytree(copy, files)
        self._store.start()

    def _roll_back(self, seconds: float) -> None:
        """Put an old copy back for a while, and then the right one."""
        old = self.copy()
        time.sleep(seconds)
        self._store.kill()
        right = self.copy()
        self.put_back(old)
        time.sleep(seconds)
        self.put_back(right)
