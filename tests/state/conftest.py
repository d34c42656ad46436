"""Servers that the tests of the state share; those that are hurt start their own."""

from collections.abc import AsyncIterator, Iterator

import pytest

from discreet.state.embedded import EmbeddedStore
from tests.state.peers import Peer, listening


@pytest.fixture(scope="session")
def embedded_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with EmbeddedStore(tmp_path_factory.mktemp("embedded")) as url:
        yield url


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    async with listening() as one:
        yield one
