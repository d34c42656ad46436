"""A global server and a local one, over the memory store."""

from collections.abc import AsyncIterator

import pytest

from discreet.state.memory import MemoryStore
from tests.families.fclub.servers import GLOBAL, LOCAL, Server, Wire


@pytest.fixture
async def hub(anyio_backend: str) -> AsyncIterator[Server]:
    server = await Server(MemoryStore()).open()
    await server.put(**GLOBAL)
    yield server
    await server.runtime.close()


@pytest.fixture
def wire(hub: Server) -> Wire:
    return Wire("shop-a", lambda: hub.runtime)


@pytest.fixture
async def shop(anyio_backend: str, wire: Wire) -> AsyncIterator[Server]:
    server = await Server(MemoryStore(), wire).open()
    await server.put(**LOCAL)
    yield server
    await server.runtime.close()
