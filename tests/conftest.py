"""What all tests share: seeded properties, asyncio, what a test may need, no survivors."""

import gc
import os
import tempfile
from collections.abc import Iterator
from functools import cache

import pytest
from httpx._transports import default as httpx_transports
from hypothesis import HealthCheck, settings

from tests.requirements import (  # noqa: F401 - pytest finds hooks and fixtures by name
    REQUIREMENTS,
    chromium,
    data_set,
    pytest_runtest_setup,
    pytest_terminal_summary,
)
from tests.side_by_side import pytest_collection_modifyitems  # noqa: F401
from tests.survivors import OUTLIVED, wait_for_none

# Property tests draw the same examples everywhere, and a slow machine is no counterexample.
settings.register_profile(
    "discreet",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("discreet")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep what all test files bring along out of the way of the garbage collector.

    Modules live as long as the process. Whoever looks through memory, a test that calls
    `gc.collect()` above all, would look through hundreds of megabytes of them every time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def authorities_are_read_once() -> Iterator[None]:
    """Let all of httpx's clients share what it makes of the certificate authorities.

    It reads them anew for every client, 20 ms of CPU, and tests make a client for a question.
    """
    with pytest.MonkeyPatch.context() as patch:
        once = cache(httpx_transports.create_ssl_context)
        patch.setattr(httpx_transports, "create_ssl_context", once)
        yield


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run `@pytest.mark.anyio` tests, and async fixtures of any scope, on asyncio."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def no_survivors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fail the run if a process that a test started is still alive after the last test."""
    base = tmp_path_factory.getbasetemp()
    folder = base / "t"
    folder.mkdir()
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    yield
    tempfile.tempdir = None
    if before is None:
        del os.environ["TMPDIR"]
    else:
        os.environ["TMPDIR"] = before
    if REQUIREMENTS["procfs"].find() is None:
        return  # tests/test_survivors.py says aloud that this was left out
    if alive := wait_for_none(base):
        names = "\n".join(f"  {survivor.pid} {survivor.command}" for survivor in alive)
        pytest.fail(f"{OUTLIVED}:\n{names}", pytrace=False)
