"""The default store: a real Valkey server in a data directory, with nothing to install or run.

`with EmbeddedStore("data") as url:` starts it and gives the URL that `open_store` takes, in this
process and in any other of the same user. It runs under a keeper (see `keeper`), so it comes back
when it is killed, and goes when we do. Every acknowledged write is on disk.

The keeper stops when the process that started it *and every process forked from it* are gone, or
when `stop()` is called. So a server that forks workers starts the store before it forks.
"""

import hashlib
import os
import select
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import discreet
from discreet.errors import InvalidArgument, StoreUnavailable, StoreUnsuitable
from discreet.state import keeper

LONGEST_SOCKET = 100
"""Bytes: the kernel allows 107 on Linux and 103 elsewhere."""


class EmbeddedStore:
    """A server of our own; `start_timeout` covers the replay of what it had stored."""

    def __init__(self, data_dir: str | os.PathLike[str], *, start_timeout: float = 60.0) -> None:
        # A folder of its own, because the data directory may be shared and of any mode.
        self._folder = Path(os.path.abspath(data_dir)) / "valkey"
        self._socket = socket_for(self._folder)
        self._start_timeout = start_timeout
        self._keeper: subprocess.Popen[str] | None = None
        self._starter = 0

    @property
    def url(self) -> str:
        """Return where the server listens, whether or not it runs yet."""
        return f"unix://{quote(str(self._socket))}"

    @property
    def folder(self) -> Path:
        """Return where its files are: the append-only file and two logs."""
        return self._folder

    @property
    def brand_new(self) -> bool:
        """Tell whether nothing was ever stored here."""
        return not (self._folder / "appendonlydir").exists()

    @property
    def running(self) -> bool:
        """Tell whether the keeper is there; whether the server is, is the keeper's affair."""
        return self._keeper is not None and self._keeper.poll() is None

    def start(self) -> str:
        """Start the server and return its URL once it answers."""
        if self._keeper is not None:
            raise StoreUnavailable("the embedded store has been started already")
        private(self._folder)
        private(self._socket.parent)
        with open(self._folder / "keeper.log", "ab") as log:
            self._keeper = subprocess.Popen(  # noqa: S603  ourselves
                [
                    sys.executable,
                    "-P",  # whatever lies in the working directory is not ours to import
                    "-m",
                    "discreet.state.keeper",
                    "--data",
                    str(self._folder),
                    "--socket",
                    str(self._socket),
                    "--patience",
                    str(min(5.0, self._start_timeout / 2)),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._folder,
                env=environment(),
                text=True,
                start_new_session=True,  # a Ctrl-C is ours to handle; the store goes last
            )
        self._starter = os.getpid()
        try:
            self._await_ready(self._keeper)
        except BaseException:
            self.stop()
            raise
        return self.url

    def stop(self) -> None:
        """Stop the server; its data stay. A forked child that calls this changes nothing."""
        running, self._keeper = self._keeper, None
        if running is None or os.getpid() != self._starter:
            return
        running.terminate()  # closing its stdin would not do: forked workers may hold it as well
        try:
            running.wait(keeper.STOP_PATIENCE + 5)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
        for pipe in (running.stdin, running.stdout):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> str:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _await_ready(self, running: "subprocess.Popen[str]") -> None:
        assert running.stdout is not None
        deadline = time.monotonic() + self._start_timeout
        ready, _, _ = select.select([running.stdout], [], [], deadline - time.monotonic())
        if not ready:
            raise StoreUnavailable("the embedded store did not start in time")
        verdict, _, reason = running.stdout.readline().strip().partition(": ")
        if verdict == keeper.UNSUITABLE:
            raise StoreUnsuitable(reason)
        if verdict != keeper.READY:
            raise StoreUnavailable(reason or "the embedded store's keeper did not start")


def socket_for(folder: Path) -> Path:
    """Return the path of the socket: in the folder, or a short one where that is too long.

    It depends on the folder alone, so that the next keeper finds a server left behind by this one.
    """
    inside = folder / "valkey.sock"
    if len(os.fsencode(inside)) <= LONGEST_SOCKET:
        return inside
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"discreet-{os.geteuid()}-{digest}" / "valkey.sock"


def private(folder: Path) -> None:
    """Make a folder that only we can enter, or raise if it is somebody else's."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
            folder.chmod(0o700)
            return
    except OSError as error:
        raise InvalidArgument("data", f"cannot use {folder}: {error.strerror}") from None
    raise InvalidArgument("data", f"cannot use {folder}: it belongs to somebody else")


def environment() -> dict[str, str]:
    """Return our environment with the package importable from anywhere."""
    root = str(Path(discreet.__file__).resolve().parents[1])
    inherited = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{inherited}" if inherited else root}
