"""The high-water mark: which store we answered from, and how far each of its shards had come.

The store's own word cannot tell that it went back in time, so the mark lies elsewhere: in a small
file in the data directory, which every worker maps into its memory. Noting a mark is a store into
that memory: it costs no system call, is seen by every worker at once, and outlives them all, also
kill -9. What a crash of the whole machine leaves of the last seconds is up to its kernel.

Where there is no folder to write to, each worker keeps its own mark, and it goes with the worker.

    bytes 0 to 7     what this file is
    bytes 8 to 15    the store's identity
    then 8 each      writes that each shard has acknowledged, in the machine's byte order
"""

import logging
import mmap
import os
import sys
from pathlib import Path

from discreet.errors import StoreUnsuitable
from discreet.state.stores import SHARDS

log = logging.getLogger(__name__)

IDENTITY_BYTES = 8
_MAGIC = b"dscrtHW1"
_SIZE = len(_MAGIC) + IDENTITY_BYTES + 8 * SHARDS


class HighWaterMarks:
    """The identity of the store, and the most writes that any worker here saw of each shard."""

    def __init__(self, file: Path | None = None) -> None:
        """Read the file if it is there. Raises `StoreUnsuitable` if it cannot be read."""
        self._file = file
        self._own = [0] * SHARDS
        self._shared: memoryview | None = None
        self._map: mmap.mmap | None = None
        self.identity: bytes | None = None
        if file is not None and file.exists():
            self._read(file)

    def seen(self, shard: int) -> int:
        """Return the most writes that were seen of a shard."""
        own = self._own[shard]
        return own if self._shared is None else max(own, self._shared[shard])

    def note(self, shard: int, writes: int) -> None:
        """Remember that a shard had come so far."""
        if writes > self._own[shard]:
            self._own[shard] = writes
            # Another worker may write at the same moment; whoever knows more writes it again.
            if self._shared is not None and self._shared[shard] < writes:
                self._shared[shard] = writes

    def assert_own(self) -> None:
        """Write again what this worker knows, where the file says less."""
        if self._shared is not None:
            for shard, writes in enumerate(self._own):
                if self._shared[shard] < writes:
                    self._shared[shard] = writes

    def adopt(self, identity: bytes, writes: "list[int]") -> None:
        """Carry this identity from now on, with these numbers or what was seen of it before."""
        known = identity == self.identity
        self._own = [
            max(count, self.seen(shard)) if known else count for shard, count in enumerate(writes)
        ]
        self.identity = identity
        if self._file is not None and not (known and self._shared is not None):
            self._write(self._file)
        self.assert_own()

    def close(self) -> None:
        """Let go of the file."""
        if self._shared is not None:
            self._shared.release()
            self._shared = None
        if self._map is not None:
            self._map.close()
            self._map = None

    def _read(self, file: Path) -> None:
        try:
            descriptor = os.open(file, os.O_RDWR)
            try:
                content = os.pread(descriptor, _SIZE + 1, 0)
                if len(content) != _SIZE or not content.startswith(_MAGIC):
                    raise OSError("it is not one")
                self._map = mmap.mmap(descriptor, _SIZE)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StoreUnsuitable(
                f"the high-water mark {file} cannot be used ({error.strerror or error}); if it is "
                "damaged, look whether the store is what it was, and remove the file"
            ) from None
        first = len(_MAGIC) + IDENTITY_BYTES
        self.identity = content[len(_MAGIC) : first]
        self._shared = memoryview(self._map)[first:].cast("Q")

    def _write(self, file: Path) -> None:
        """Replace the file as a whole; whoever maps the old one goes on with the old identity."""
        assert self.identity is not None
        numbers = b"".join(count.to_bytes(8, sys.byteorder) for count in self._own)
        temporary = file.with_name(f"{file.name}.{os.getpid()}")
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(
                os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb"
            ) as out:
                out.write(_MAGIC + self.identity + numbers)
                out.flush()
                os.fsync(out.fileno())
            os.replace(temporary, file)
        except OSError as error:
            log.warning(
                "the high-water mark of the store cannot be kept in %s (%s): a store that goes "
                "back in time while no worker runs will not be noticed; --data names a folder",
                file.parent,
                error.strerror,
            )
            self._file = None
            return
        self.close()
        self._read(file)


def marks_file(data_dir: Path, namespace: str, *, embedded: bool) -> Path:
    """Return where the mark of a namespace lies: one for the embedded store, one for any other."""
    kind = "embedded" if embedded else "store"
    return Path(os.path.abspath(data_dir)) / "fence" / f"{kind}-{namespace}"
