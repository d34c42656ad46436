"""Servers that the tests of the state share; those that hurt one start their own."""

from collections.abc import AsyncIterator, Iterator

import pytest

from discreet.state.embedded import EmbeddedStore
from discreet.state.redis_store import RedisStore, open_store
from tests.state.servers import Server, valkey


@pytest.fixture(scope="session")
def embedded_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with EmbeddedStore(tmp_path_factory.mktemp("embedded")) as url:
        yield url


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Valkey of the module's own."""
    with valkey(tmp_path_factory.mktemp("valkey") / "data") as running:
        yield running


@pytest.fixture
async def store(server: Server) -> AsyncIterator[RedisStore]:
    """A store over that server, emptied."""
    server.do("FLUSHALL")
    one = open_store(server.url, timeout=20)
    await one.open()
    yield one
    await one.close()
