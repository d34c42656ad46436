"""A demo is light: its processes import what answering needs, and little else."""

from pathlib import Path

import pytest
import startup

NOT_NEEDED = {
    # Commands, research and other people's devices.
    *("discreet.research", "discreet.audit", "discreet.hub", "discreet_client"),
    # What extras bring, or what somebody else's package would like to have.
    *("scipy", "implicit", "sklearn", "pandas", "pyarrow", "matplotlib", "opentelemetry.sdk"),
    # An HTTP client, without another instance to speak to, and what it draws with.
    *("httpx", "httpcore", "rich", "pygments"),
    # Parts of numpy and of Python that only tests and compilers need.
    *("numpy.f2py", "numpy.testing", "numpy.polynomial", "unittest", "pydoc", "distutils"),
}
MOST_MIB = 150


@pytest.mark.needs("procfs")
def test_a_server_imports_what_it_needs_and_stays_small(tmp_path: Path) -> None:
    listed = tmp_path / "imports"
    found = startup.start(imports=listed)
    lines = [line for line in listed.read_text().splitlines() if line.startswith("import time:")]
    names = {line.rsplit("|", 1)[1].strip() for line in lines}
    assert {"discreet.app", "discreet.families.contextual.learning", "numpy"} <= names
    prefixes = tuple(f"{one}." for one in NOT_NEEDED)
    assert {name for name in names if f"{name}.".startswith(prefixes)} == set()
    # Memory is what was mapped and touched: neither a busy machine nor luck changes it by much.
    assert len(found.workers) == startup.WORKERS
    assert max(worker.resident for worker in found.workers) < MOST_MIB
    assert all(0 < worker.proportional < worker.resident for worker in found.workers)
