"""What goes wrong: by seed, one thing after another, each undone before the next."""

import os
import random
import resource
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.chaos.history import History
from tests.chaos.proxy import CuttableProxy
from tests.chaos.skew import SkewedClocks
from tests.end_to_end.servers import Server
from tests.state.servers import ClusterOf6, eventually, in_step, settled
from tests.state.servers import Server as Valkey
from tests.waiting import wait_for

_SKEWS = ((100_000, 300_000), (60, 600))
"""Seconds by which a worker's clock is wrong, in turn: more than feedback is accepted for; less."""

Deed = Callable[[float], None]


class Nemesis:
    """Does harm to the workers of one server; those who know the store do more."""

    def __init__(self, server: Server, clocks: SkewedClocks, history: History) -> None:
        self._server = server
        self._clocks = clocks
        self._history = history
        self._rng = random.Random()
        self._skews = 0

    @property
    def deeds(self) -> Mapping[str, Deed]:
        """What it can do, by name; each takes about so many seconds."""
        return {
            "kill worker": self._kill_worker,
            "freeze worker": self._freeze_worker,
            "skew clock": self._skew_clock,
        }

    def strike(self, name: str, rng: random.Random) -> None:
        """Do one thing, and undo it."""
        began = time.monotonic()
        self._rng = rng
        self.deeds[name](rng.uniform(0.3, 1.5))
        self._history.fault(name, began)

    def _kill_worker(self, seconds: float) -> None:
        os.kill(min(self._server.workers), signal.SIGKILL)

    def _freeze_worker(self, seconds: float) -> None:
        worker = max(self._server.workers)
        os.kill(worker, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(worker, signal.SIGCONT)

    def _skew_clock(self, seconds: float) -> None:
        """Set one worker's clock anew, for as long as it lives."""
        least, most = _SKEWS[self._skews % 2]
        self._skews += 1
        skew = self._rng.choice((-1, 1)) * self._rng.randint(least, most)
        self._clocks.set(self._rng.choice(self._server.workers), skew)


class StoreNemesis(Nemesis):
    """Does harm to a single store as well, and to what lies between."""

    def __init__(
        self,
        server: Server,
        clocks: SkewedClocks,
        history: History,
        store: Valkey,
        proxy: CuttableProxy,
        folder: Path,
    ) -> None:
        super().__init__(server, clocks, history)
        self._store = store
        self._proxy = proxy
        self._folder = folder
        self._copies = 0

    @property
    def deeds(self) -> Mapping[str, Deed]:
        return {
            **super().deeds,
            "kill store": self._kill_store,
            "freeze store": self._freeze_store,
            "partition": self._partition,
            "full memory": self._fill_memory,
            "full disk": self._fill_disk,
            "roll back": self._roll_back,
        }

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

    def _fill_memory(self, seconds: float) -> None:
        self._store.do("CONFIG", "SET", "maxmemory", "1")
        time.sleep(seconds)
        self._store.do("CONFIG", "SET", "maxmemory", "0")

    def _fill_disk(self, seconds: float) -> None:
        """Let its file grow no more, in the middle of a write: it ends, as it does on a full disk.

        Then there is room again, and somebody starts it.
        """
        process = self._store.process
        assert process is not None
        files = self._store.folder.glob("appendonlydir/*.aof")
        most = max(file.stat().st_size for file in files) + self._rng.randrange(200)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
        wait_for("the store to find its disk full", self._store.gone)
        time.sleep(seconds / 3)
        self._store.start()

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


class ClusterNemesis(Nemesis):
    """Does harm to the masters of a cluster as well: their replicas take over."""

    def __init__(
        self, server: Server, clocks: SkewedClocks, history: History, six: ClusterOf6
    ) -> None:
        super().__init__(server, clocks, history)
        self._six = six

    @property
    def deeds(self) -> Mapping[str, Deed]:
        return {
            **super().deeds,
            "kill master": self._kill_master,
            "freeze master": self._freeze_master,
        }

    def _master(self) -> tuple[int, Valkey]:
        slot = self._rng.randrange(16_384)
        return slot, self._six.owner(slot)

    def _kill_master(self, seconds: float) -> None:
        slot, master = self._master()
        master.kill()
        self._replaced(slot, master)
        master.start()
        self._whole(master)

    def _freeze_master(self, seconds: float) -> None:
        slot, master = self._master()
        master.signal(signal.SIGSTOP)
        self._replaced(slot, master)
        master.signal(signal.SIGCONT)
        self._whole(master)

    def _replaced(self, slot: int, master: Valkey) -> None:
        eventually(lambda: self._six.owner(slot, but=master) is not master, "another master")

    def _whole(self, returned: Valkey) -> None:
        """Wait until the next one may fall: everybody is there, and replicas have caught up."""
        eventually(lambda: settled(returned) and in_step(returned), "the dead to return")
