"""Wrong clocks for single workers: a few lines of C between a process and its time of day.

The server is started with the library preloaded. Which process is wrong by how many seconds stands
in a file that is shared with all of them, so that a clock can be set while its worker runs. Steady
clocks stay as they are, as they do when somebody sets a machine's time.
"""

import mmap
import struct
import subprocess
from pathlib import Path

from tests.waiting import PATIENCE

_ENTRY = struct.Struct("<qq")
_ENTRIES = 256

_LIBRARY = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define ENTRIES 256
struct entry { int64_t pid, seconds; };
static struct entry *table;

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("CHAOS_SKEW");
    int descriptor = file ? open(file, O_RDONLY) : -1;
    if (descriptor < 0) return;
    void *found = mmap(0, ENTRIES * sizeof(struct entry), PROT_READ, MAP_SHARED, descriptor, 0);
    if (found != MAP_FAILED) table = found;
    close(descriptor);
}

static int64_t skew(void) {
    int64_t own = getpid();
    for (int i = 0; table && i < ENTRIES && table[i].pid; i++)
        if (table[i].pid == own) return table[i].seconds;
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, clock, now);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += skew();
    return result;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    int result = clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return result;
}

time_t time(time_t *out) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (out) *out = exact.tv_sec;
    return exact.tv_sec;
}
"""


class SkewedClocks:
    """Clocks that can be set by process; `variables` are for the environment of the server."""

    def __init__(self, folder: Path) -> None:
        source, library = folder / "skew.c", folder / "skew.so"
        source.write_text(_LIBRARY)
        subprocess.run(
            ["cc", "-O2", "-Wall", "-shared", "-fPIC", "-o", library, source],
            check=True,
            timeout=PATIENCE,
        )
        self._file = folder / "skew"
        self._file.write_bytes(bytes(_ENTRIES * _ENTRY.size))
        with self._file.open("r+b") as shared:
            self._table = mmap.mmap(shared.fileno(), 0)
        self._places: dict[int, int] = {}
        self.variables = {"LD_PRELOAD": str(library), "CHAOS_SKEW": str(self._file)}

    def set(self, pid: int, seconds: int) -> None:
        """Let a process be wrong by so many seconds from now on."""
        place = self._places.setdefault(pid, len(self._places))
        assert place < _ENTRIES, "more processes than there is room for"
        # The seconds first: a reader finds the process only once they are there.
        struct.pack_into("<q", self._table, place * _ENTRY.size + 8, seconds)
        struct.pack_into("<q", self._table, place * _ENTRY.size, pid)
